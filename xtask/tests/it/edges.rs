//! Who may use whom. The table is the one in ARCHITECTURE.md; a new edge is a decision and changes both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::root;

const ALL_PRODUCT: &[&str] =
    &["builtins", "child", "daemon", "fetch", "harness", "manifest", "models", "protocol", "toolhost"];

const EDGES: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("builtins", &[]),
    ("child", &[]),
    ("manifest", &["builtins"]),
    ("toolhost", &["protocol", "child"]),
    ("models", &[]),
    ("fetch", &[]),
    ("harness", &["protocol", "manifest", "child", "models", "fetch"]),
    ("daemon", &["protocol", "builtins", "manifest", "models", "toolhost", "harness"]),
    ("cli", ALL_PRODUCT),
    ("testkit", &[]),
    (
        "bench",
        &[
            "builtins", "child", "cli", "daemon", "fetch", "harness", "manifest", "models", "protocol",
            "testkit", "toolhost",
        ],
    ),
    ("xtask", &["testkit"]),
];

/// Per package of ours: the packages of ours that it depends on, normally and for tests.
fn real_edges() -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |value: &serde_json::Value| value.as_str().unwrap().trim_start_matches("beeuni-").to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let mut edges = (BTreeSet::new(), BTreeSet::new());
            for dependency in package["dependencies"].as_array().unwrap() {
                if dependency["path"].is_null() {
                    continue;
                }
                let side = if dependency["kind"] == "dev" { &mut edges.1 } else { &mut edges.0 };
                side.insert(name(&dependency["name"]));
            }
            (name(&package["name"]), edges)
        })
        .collect()
}

#[test]
fn every_edge_is_in_the_table() {
    let table: BTreeMap<&str, BTreeSet<String>> =
        EDGES.iter().map(|(room, uses)| (*room, uses.iter().map(|s| (*s).to_owned()).collect())).collect();
    let real = real_edges();
    let rooms: BTreeSet<&str> = real.keys().map(String::as_str).collect();
    assert_eq!(
        rooms,
        table.keys().copied().collect(),
        "a room appeared or went: change EDGES and ARCHITECTURE.md"
    );
    for (room, (normal, dev)) in &real {
        let extra: Vec<_> = normal.difference(&table[room.as_str()]).collect();
        assert!(extra.is_empty(), "{room} may not use {extra:?}; see the table in ARCHITECTURE.md");
        let extra: Vec<_> =
            dev.iter().filter(|used| *used != "testkit" && !table[room.as_str()].contains(*used)).collect();
        assert!(extra.is_empty(), "{room}'s tests may not use {extra:?}: only testkit is free for all");
    }
}

#[test]
fn architecture_shows_the_same_table() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for (room, uses) in EDGES {
        if matches!(*room, "cli" | "bench" | "xtask") {
            continue;
        }
        let uses = if uses.is_empty() { "–".to_owned() } else { uses.join(", ") };
        let row = map
            .lines()
            .find(|line| line.starts_with(&format!("| `crates/{room}` |")))
            .unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for crates/{room}"));
        let cell = row.split('|').nth(3).unwrap().trim();
        assert_eq!(cell, uses, "ARCHITECTURE.md, row crates/{room}");
    }
}

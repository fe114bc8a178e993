//! What is embedded, and the TypeScript's own checks: `bun test` and `tsc`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::Command;

use beeuni_builtins::{ALL, get};

fn room() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn house() -> PathBuf {
    room().join("../..").canonicalize().unwrap()
}

/// The Bun of the tests: `BEEUNI_BUN`, else the one that `cargo xtask setup` installed.
fn bun() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("BEEUNI_BUN") {
        return Some(named.into());
    }
    let packages = house().join("runtime/node_modules/@oven").read_dir().ok()?;
    packages.flatten().map(|package| package.path().join("bin/bun")).find(|bun| bun.is_file())
}

/// Runs a program in this room and fails with what it printed.
fn passes(program: &Path, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).current_dir(room()).output().unwrap();
    assert!(
        output.status.success(),
        "{} {arguments:?}: {}\n{}{}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}

#[test]
fn the_embedded_bytes_are_the_files_in_fixed_order() {
    let names: Vec<_> = ALL.iter().map(|builtin| builtin.name).collect();
    assert_eq!(names, ["web_search", "image_search", "scrape_webpage", "memory", "show"]);
    for builtin in &ALL {
        let file = room().join(format!("tools/{}.ts", builtin.name));
        assert_eq!(std::fs::read(&file).unwrap(), builtin.source.as_bytes(), "{}", file.display());
        assert_eq!(get(builtin.name), Some(builtin));
    }
    assert_eq!(std::fs::read_dir(room().join("tools")).unwrap().count(), ALL.len());
    assert_eq!(get("bash"), None);
    assert_eq!(get(""), None);
}

#[test]
fn e2_the_sources_import_only_node_modules() {
    for builtin in &ALL {
        for line in builtin.source.lines() {
            let Some((_, from)) = line.split_once(" from '") else { continue };
            if line.starts_with("import ") || line.starts_with('}') {
                assert!(from.starts_with("node:"), "{}: {line}", builtin.name);
            }
        }
        assert!(!builtin.source.contains("require("), "{}", builtin.name);
        assert!(!builtin.source.contains("import("), "{}", builtin.name);
    }
}

#[test]
fn the_tools_pass_their_own_tests() {
    let Some(bun) = bun() else {
        eprintln!("skipped: no Bun here; run `cargo xtask setup`");
        return;
    };
    passes(&bun, &["test"]);
}

#[test]
fn the_tools_are_strictly_typed() {
    let tsc = house().join("node_modules/.bin/tsc");
    if !tsc.is_file() {
        eprintln!("skipped: no TypeScript here; run `cargo xtask setup`");
        return;
    }
    passes(&tsc, &["--noEmit", "--project", "."]);
}

#[test]
fn the_web_tools_share_their_lines_about_services() {
    // E2 makes each tool one file, so the same code stands three times: a fault mended in one is mended in all.
    const BEGIN: &str = "// ---- How this tool reaches its service";
    const END: &str = "function text(value: unknown): string {";
    let shared = |name: &str| {
        let source = beeuni_builtins::get(name).unwrap().source;
        let from = source.find(BEGIN).unwrap_or_else(|| panic!("{name} has no line {BEGIN:?}"));
        let to = from + source[from..].find(END).unwrap_or_else(|| panic!("{name} has no {END:?} after it"));
        &source[from..to]
    };
    for name in ["image_search", "scrape_webpage"] {
        assert_eq!(
            shared(name),
            shared("web_search"),
            "{name} and web_search reach their services differently"
        );
    }
}

//! Rules about files. Each failure says what to do.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::root;

/// The most lines of a source file.
const MAX_LINES: usize = 600;

/// The most lines of a `main.rs`.
const MAX_MAIN: usize = 20;

/// Where something may be printed: the command line's one place, and the programs that are no product.
const MAY_PRINT: [&str; 4] = ["crates/cli/src/ui.rs", "crates/bench/", "xtask/", "crates/testkit/"];

/// Every file that git tracks or would add, with its text; binary files are left out.
fn files() -> Vec<(String, String)> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("the house rules are checked in a git checkout");
    assert!(output.status.success(), "git ls-files failed");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(PathBuf::from)
        .filter_map(|path| Some((path.to_str()?.to_owned(), fs::read_to_string(root().join(&path)).ok()?)))
        .collect()
}

/// Collects the lines of tracked files that break a rule, as `file:line: text`.
fn offenders(applies: impl Fn(&str) -> bool, breaks: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| applies(path)) {
        for (number, line) in text.lines().enumerate() {
            if breaks(line) {
                found.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    found
}

fn is_source(path: &str) -> bool {
    [".rs", ".ts", ".tsx"].iter().any(|ending| path.ends_with(ending))
}

fn is_product(path: &str) -> bool {
    path.ends_with(".rs") && path.starts_with("crates/") && !path.contains("/tests/")
}

#[test]
fn files_are_short() {
    for (path, text) in files().iter().filter(|(path, _)| is_source(path)) {
        let lines = text.lines().count();
        let most = if path.ends_with("/main.rs") && path.contains("/src/") { MAX_MAIN } else { MAX_LINES };
        assert!(lines <= most, "{path} has {lines} lines, {most} are the most: split it by what it is about");
    }
}

#[test]
fn no_room_is_a_warehouse() {
    for (path, _) in files() {
        for name in ["utils", "util", "common", "helpers", "helper", "misc"] {
            let warehouse = path.split('/').any(|part| part == name || part.split('.').next() == Some(name));
            assert!(!warehouse, "{path}: name the room after what it is about, not `{name}`");
        }
    }
}

#[test]
fn only_the_ui_prints() {
    let prints = |line: &str| {
        let line = line.trim_start();
        !line.starts_with("//")
            && ["println!(", "eprintln!(", "print!(", "eprint!(", "clippy::print_std"]
                .iter()
                .any(|m| line.contains(m))
    };
    let found =
        offenders(|path| is_product(path) && !MAY_PRINT.iter().any(|ok| path.starts_with(ok)), prints);
    assert!(found.is_empty(), "print through crates/cli/src/ui.rs:\n{}", found.join("\n"));
}

#[test]
fn unsafe_stays_in_child() {
    let is_unsafe = |line: &str| {
        let code = line.split("//").next().unwrap_or("");
        code.contains("unsafe {")
            || code.contains("unsafe fn")
            || code.contains("unsafe impl")
            || code.contains("allow(unsafe_code)")
    };
    let found = offenders(
        |path| path.ends_with(".rs") && !path.starts_with("crates/child/") && !path.starts_with("xtask/"),
        is_unsafe,
    );
    assert!(found.is_empty(), "unsafe code belongs into crates/child:\n{}", found.join("\n"));
}

#[test]
fn sql_stays_in_store() {
    let sql = |line: &str| {
        ["SELECT ", "INSERT INTO ", "DELETE FROM ", "CREATE TABLE "].iter().any(|word| line.contains(word))
    };
    let found = offenders(|path| is_product(path) && !path.contains("/store/"), sql);
    assert!(found.is_empty(), "SQL belongs into a `store/` folder:\n{}", found.join("\n"));
}

#[test]
fn no_test_is_switched_off() {
    let off = |line: &str| {
        let line = line.trim();
        line.starts_with("#[ignore") || line.contains("test.skip(") || line.contains(".only(")
    };
    let found = offenders(|path| is_source(path) && path != "xtask/tests/it/house.rs", off);
    assert!(found.is_empty(), "a test that cannot run here says so and returns:\n{}", found.join("\n"));
}

#[test]
fn typescript_is_not_assembled_in_rust() {
    let typescript = |line: &str| line.contains("export default {\\n") || line.contains("import {\\n");
    let found = offenders(is_product, typescript);
    assert!(found.is_empty(), "TypeScript lives in .ts files:\n{}", found.join("\n"));
}

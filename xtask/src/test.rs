//! `cargo xtask test`: everything that CI checks, in the order in which it fails fastest.

use std::path::Path;

use anyhow::Result;

use crate::run::{command, step};
use crate::setup;

/// Our TypeScript, a project each.
const TYPESCRIPT: [&str; 3] = ["crates/builtins", "crates/toolhost/host", "crates/bench/peers"];

/// Runs every check; the first that fails ends it.
pub fn run(root: &Path) -> Result<()> {
    step("cargo fmt --check", command(root, "cargo", &["fmt", "--all", "--check"]))?;
    let installed = setup::run(root)?;
    for project in TYPESCRIPT {
        let tsc = root.join("node_modules/.bin/tsc");
        step(
            &format!("tsc {project}"),
            command(root, &tsc.to_string_lossy(), &["--noEmit", "--project", project]),
        )?;
    }
    let clippy = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step("cargo clippy", command(root, "cargo", &clippy))?;
    let mut tests = command(root, "cargo", &["test", "--locked", "--workspace"]);
    tests.env("BEEUNI_BUN", &installed.bun);
    step("cargo test", tests)
}

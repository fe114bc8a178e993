//! `cargo xtask bench`: builds the speed table in release mode and runs it.

use std::path::Path;

use anyhow::Result;

use crate::{run, setup};

/// Runs the rows whose name contains `filter`.
pub fn run(root: &Path, filter: Option<&str>) -> Result<()> {
    let installed = setup::run(root)?;
    let beeuni = run::build(root, "beeuni-cli", "beeuni", true)?;
    let bench = run::build(root, "beeuni-bench", "beeuni-bench", true)?;
    let mut command = run::command(root, &bench.to_string_lossy(), filter.as_slice());
    command.env("BEEUNI_BUN", installed.bun).env("BEEUNI_PROGRAM", beeuni);
    run::step("the speed table", command)
}

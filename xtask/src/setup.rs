//! `cargo xtask setup`: what the tests and the demo need beside cargo.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::run;

/// What was installed.
pub struct Installed {
    /// The `beeuni` program, debug build.
    pub beeuni: PathBuf,
    /// The pinned Bun.
    pub bun: PathBuf,
}

/// Installs our TypeScript tools with npm and the pinned Bun with `beeuni setup`. Running it again changes nothing.
pub fn run(root: &Path) -> Result<Installed> {
    let npm = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    run::step("npm ci (TypeScript, for the type checks)", run::command(root, "npm", &npm))?;
    let beeuni = run::build(root, "beeuni-cli", "beeuni", false)?;
    run::say("\n── beeuni setup (the pinned Bun)");
    let printed = run::output("beeuni setup", run::command(root, &beeuni.to_string_lossy(), &["setup"]))?;
    let bun = printed.lines().next().map(PathBuf::from).unwrap_or_default();
    anyhow::ensure!(bun.is_file(), "beeuni setup printed no path of a program: {printed:?}");
    Ok(Installed { beeuni, bun })
}

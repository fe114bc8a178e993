//! `beeuni validate --no-load` on a large project, as a program from start to end.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::table::{figure, heading, median, show};

/// How often it is tried.
const TIMES: usize = 15;

/// 1,000 tools in 50 imported files.
pub fn run() -> Result<()> {
    let beeuni = std::env::var_os("BEEUNI_PROGRAM").map(PathBuf::from);
    let beeuni = beeuni.context("BEEUNI_PROGRAM is not set: run this as `cargo xtask bench`")?;
    let folder = tempfile::tempdir()?;
    let root = folder.path();
    fs::create_dir_all(root.join("teams"))?;
    fs::create_dir_all(root.join("tools"))?;
    fs::write(root.join("beeuni.yaml"), "tools:\n  show: beeuni:show\nimports: [teams/]\n")?;
    for file in 0..50 {
        let mut text = "tools:\n".to_owned();
        for tool in 0..20 {
            writeln!(text, "  tool_{file}_{tool}: tools/t_{file}_{tool}.ts")?;
            fs::write(root.join(format!("tools/t_{file}_{tool}.ts")), "export default {}\n")?;
        }
        fs::write(root.join(format!("teams/team_{file:02}.yaml")), text)?;
    }
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let start = Instant::now();
        let output = Command::new(&beeuni).args(["validate", "--no-load"]).current_dir(root).output()?;
        times.push(start.elapsed());
        anyhow::ensure!(
            output.status.success(),
            "validate failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    heading("validate --no-load, the whole program");
    figure("1,000 tools in 50 files, p50", &show(median(times)), "≤ 50 ms");
    Ok(())
}

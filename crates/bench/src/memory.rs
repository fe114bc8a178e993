//! How much memory a live session costs: private bytes of its processes, with another Bun alive that shares the rest.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use beeuni_child::Spawner;

use crate::echo::{Stage, bun};
use crate::table::{figure, heading};

/// Private bytes of this process and of all that it started, in kB. Each pages only once.
fn private() -> Result<u64> {
    let mut total = 0;
    for pid in family()? {
        // A process that ends meanwhile counts nothing.
        let Ok(rollup) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else { continue };
        total += rollup
            .lines()
            .filter(|line| line.starts_with("Private_"))
            .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
            .sum::<u64>();
    }
    Ok(total)
}

/// This process and its descendants.
fn family() -> Result<Vec<u32>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")) else {
            continue;
        };
        let after = stat.rsplit_once(") ").context("a strange stat")?.1;
        parents
            .push((pid, after.split(' ').nth(1).and_then(|parent| parent.parse::<u32>().ok()).unwrap_or(0)));
    }
    let mut family = vec![std::process::id()];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    Ok(family)
}

/// Measures with no tool, and with six loaded.
pub async fn run(spawner: &Spawner) -> Result<()> {
    let bun = bun()?;
    let echo = ("echo", include_str!("../tools/echo.ts"));
    let other = Stage::open(spawner, &bun, &[echo]).await?;
    let before = private()?;
    let builtins = beeuni_builtins::ALL.iter().map(|builtin| (builtin.name, builtin.source));
    let six: Vec<(&str, &str)> = builtins.chain([echo]).collect();
    let session = Stage::open(spawner, &bun, &six).await?;
    let with_six = private()?;
    heading("Private memory of a session's tools (another session alive)");
    figure(
        "six tools loaded and a warm spare",
        &format!("{:.1} MB", (with_six - before) as f64 / 1024.0),
        "≤ 35 MB",
    );
    drop(session);
    drop(other);
    Ok(())
}

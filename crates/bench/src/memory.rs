//! How much memory a live session costs: private bytes of `beeuni run` and of all that it started, with another Bun alive
//! that shares the rest, as on a machine with more than one session.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use beeuni_child::{Spawner, Spec};
use beeuni_testkit::model::ScriptedModel;

use crate::echo::{Stage, bun, project};
use crate::table::{figure, heading};

/// How long a session may take to be where it is measured.
const DEADLINE: Duration = Duration::from_secs(30);

/// Private bytes of these processes, in MB. One that ends meanwhile counts nothing.
fn private(pids: &[u32]) -> f64 {
    let of = |pid: &u32| -> u64 {
        let Ok(rollup) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else { return 0 };
        let private = rollup.lines().filter(|line| line.starts_with("Private_"));
        private.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
    };
    pids.iter().map(of).sum::<u64>() as f64 / 1024.0
}

/// A process and its descendants.
fn family(root: u32) -> Result<Vec<u32>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")) else {
            continue;
        };
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        parents.push((pid, parent.unwrap_or(0)));
    }
    let mut family = vec![root];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    Ok(family)
}

/// Waits until so many processes of a family are Bun.
async fn wait_for_buns(root: u32, wanted: usize) -> Result<Vec<u32>> {
    let start = Instant::now();
    loop {
        let family = family(root)?;
        let is_bun =
            |pid: &&u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "bun\n");
        let buns = family.iter().filter(is_bun).count();
        if buns == wanted {
            return Ok(family);
        }
        anyhow::ensure!(start.elapsed() < DEADLINE, "{buns} Bun processes run, {wanted} were awaited");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Measures a session in the middle of a turn: with six tools loaded, and with all of them asleep.
pub async fn run(spawner: &Spawner) -> Result<()> {
    let beeuni = std::env::var_os("BEEUNI_PROGRAM").map(PathBuf::from);
    let beeuni = beeuni.context("BEEUNI_PROGRAM is not set: run this as `cargo xtask bench`")?;
    let bun = bun()?;
    let echo = ("echo", include_str!("../tools/echo.ts"));
    let _other = Stage::open(spawner, &bun, &[echo]).await?;
    let model = ScriptedModel::start().await;
    let builtins = beeuni_builtins::ALL.iter().map(|builtin| (builtin.name, builtin.source));
    let six: Vec<(&str, &str)> = builtins.chain([echo]).collect();
    let folder = project(&six)?;
    let checkout = folder.path().join("project");
    let manifest = checkout.join("beeuni.yaml");
    heading("Private memory of a live `beeuni run` (another session alive)");
    for (what, limits, buns, target) in [
        ("six tools loaded, and the warm spare", "", 7, "≤ 35 MB"),
        ("tools asleep", "limits: {idle: 1}\n", 0, "≤ 12 MB"),
    ] {
        let text = fs::read_to_string(&manifest)?;
        fs::write(&manifest, format!("{text}{limits}"))?;
        let mut spec = Spec::new(&beeuni, &checkout);
        spec.args = ["run", "--harness", "experimental", "--prompt", "HANG"].map(OsString::from).into();
        spec.env = BTreeMap::from([
            ("HOME".into(), folder.path().into()),
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("BEEUNI_BUN".into(), bun.clone().into_os_string()),
            ("BEEUNI_MODEL".into(), "scripted/scripted-1".into()),
            ("BEEUNI_MODEL_URL".into(), model.openai_url().into()),
        ]);
        spec.limits.memory = u64::MAX;
        let seen = model.requests().len();
        let child = spawner.spawn(spec).await?;
        model.wait_for(|requests| requests.len() > seen).await;
        let family = wait_for_buns(child.pid(), buns).await?;
        figure(what, &format!("{:.1} MB", private(&family)), target);
    }
    Ok(())
}

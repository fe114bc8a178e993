//! From nothing to the first tool's answer: tool host, process, module, call.

use std::time::Instant;

use anyhow::Result;
use beeuni_child::Spawner;
use tokio_util::sync::CancellationToken;

use crate::echo::{Stage, bun};
use crate::table::{figure, heading, median, show};

/// How often it is tried.
const TIMES: usize = 15;

/// One module, and the five Beeuni tools beside it.
pub async fn run(spawner: &Spawner) -> Result<()> {
    let bun = bun()?;
    let echo = ("echo", include_str!("../tools/echo.ts"));
    let builtins = beeuni_builtins::ALL.iter().map(|builtin| (builtin.name, builtin.source));
    let six: Vec<(&str, &str)> = builtins.chain([echo]).collect();
    heading("First answer from a cold start (manifest read, tools loaded, one call; no model)");
    for (what, modules, target) in [("one tool", &[echo][..], "≤ 60 ms"), ("six tools", &six[..], "≤ 60 ms")]
    {
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let start = Instant::now();
            let stage = Stage::open(spawner, &bun, modules).await?;
            stage.call("echo", "{}", CancellationToken::new()).await?;
            times.push(start.elapsed());
        }
        figure(&format!("{what}, p50"), &show(median(times)), target);
    }
    Ok(())
}

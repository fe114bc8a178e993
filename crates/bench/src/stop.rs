//! Rows about stopping a tool that does not listen.

use std::time::{Duration, Instant};

use anyhow::Result;
use beeuni_child::Spawner;
use tokio_util::sync::CancellationToken;

use crate::echo::{Stage, bun};
use crate::table::{figure, heading, median, show};

/// How often each is tried.
const TIMES: usize = 10;

/// From the stop of a looping call to the caller's answer, and to the next answer of the same tool.
pub async fn run(spawner: &Spawner) -> Result<()> {
    let stage = Stage::open(spawner, &bun()?, &[("loop", include_str!("../tools/loop.ts"))]).await?;
    let (mut answered, mut usable) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let cancel = CancellationToken::new();
        let looping = stage.call("loop", r#"{"forever":true}"#, cancel.clone());
        let stop = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let start = Instant::now();
            cancel.cancel();
            start
        };
        let (stopped, start) = tokio::join!(looping, stop);
        anyhow::ensure!(stopped.is_err(), "a looping tool answered");
        answered.push(start.elapsed());
        stage.call("loop", "{}", CancellationToken::new()).await?;
        usable.push(start.elapsed());
    }
    heading("A tool that loops for ever, stopped");
    figure("stop to the caller's answer, p50", &show(median(answered)), "≤ 1 ms");
    figure("stop to the same tool's next answer, p50", &show(median(usable)), "≤ 15 ms");
    Ok(())
}

//! The list of rows.

use anyhow::Result;
use beeuni_child::Spawner;

use crate::{calls, cold, memory, stop, validate};

/// Runs the rows whose name contains the first argument; all without one.
pub fn run() -> Result<()> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let wanted = |name: &str| name.contains(&filter);
    println!("Times are of this machine and this run: read the ratios.");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let spawner = Spawner::start()?;
        // Memory first: the other rows leave buffers behind.
        if wanted("memory") {
            memory::run(&spawner).await?;
        }
        if wanted("calls") {
            calls::run(&spawner).await?;
        }
        if wanted("stop") {
            stop::run(&spawner).await?;
        }
        if wanted("cold") {
            cold::run(&spawner).await?;
        }
        anyhow::Ok(())
    })?;
    if wanted("validate") {
        validate::run()?;
    }
    Ok(())
}

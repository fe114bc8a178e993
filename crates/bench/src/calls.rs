//! Rows about calls: the same echo through the tool host, through newline-JSON on pipes, and through fetch.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use beeuni_child::Spawner;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::echo::{Stage, bun};
use crate::peers::{Fetch, Ndjson};
use crate::table::{Round, compare, condense, heading};

/// What is measured: a name, our tool, its arguments, calls in flight, calls a round.
struct Workload {
    name: &'static str,
    tool: &'static str,
    args: String,
    in_flight: usize,
    calls: usize,
}

fn workloads() -> Vec<Workload> {
    let echo = |name, size: usize, in_flight, calls| Workload {
        name,
        tool: "echo",
        args: format!("{{\"text\":\"{}\"}}", "x".repeat(size)),
        in_flight,
        calls,
    };
    let args = r#"{"bytes":1000000}"#.to_owned();
    vec![
        echo("100 B there and back, one in flight", 100, 1, 2_000),
        echo("100 B there and back, 16 in flight", 100, 16, 8_000),
        echo("100 B there and back, 64 in flight", 100, 64, 16_000),
        echo("10 KB there and back, one in flight", 10_000, 1, 1_000),
        echo("10 KB there and back, 64 in flight", 10_000, 64, 4_000),
        echo("1 MB arguments, short answer, one in flight", 1_000_000, 1, 60),
        Workload {
            name: "1 MB output, saved to a file and cut, one in flight",
            tool: "big",
            args,
            in_flight: 1,
            calls: 60,
        },
    ]
}

/// Rounds that count; one more warms up.
const ROUNDS: usize = 5;

/// Runs `calls` calls of `call`, `in_flight` at once, and takes each one's time.
async fn round<F, R>(calls: usize, in_flight: usize, call: F) -> Result<Round>
where
    F: Fn() -> R + Clone + Send + 'static,
    R: Future<Output = Result<String>> + Send,
{
    let start = Instant::now();
    let workers: Vec<_> = (0..in_flight)
        .map(|worker| {
            let call = call.clone();
            let share = calls / in_flight + usize::from(worker < calls % in_flight);
            tokio::spawn(async move {
                let mut times = Vec::with_capacity(share);
                for _ in 0..share {
                    let start = Instant::now();
                    call().await?;
                    times.push(start.elapsed());
                }
                Ok::<_, anyhow::Error>(times)
            })
        })
        .collect();
    let mut times = Vec::with_capacity(calls);
    for worker in workers {
        times.extend(worker.await??);
    }
    Ok(Round { calls: times, whole: start.elapsed() })
}

/// Runs the rows; contenders take turns within one run, so that the machine's mood hits all alike.
pub async fn run(spawner: &Spawner) -> Result<()> {
    let bun = bun()?;
    let modules = [("echo", include_str!("../tools/echo.ts")), ("big", include_str!("../tools/big.ts"))];
    let stage = Arc::new(Stage::open(spawner, &bun, &modules).await?);
    let ndjson = Ndjson::start(spawner, &bun).await?;
    let mut fetch = Fetch::start(spawner, &bun).await?;
    heading(
        "Calls (ours with access rule, secrets, sandbox and bounded output; the peers with none of them)",
    );
    for Workload { name, tool, args, in_flight, calls } in workloads() {
        let raw: Arc<RawValue> = Arc::from(RawValue::from_string(args.clone())?);
        let args: Arc<str> = args.into();
        let mut rounds: [Vec<Round>; 3] = Default::default();
        for number in 0..=ROUNDS {
            let ours = {
                let (stage, args) = (stage.clone(), args.clone());
                move || {
                    let (stage, args) = (stage.clone(), args.clone());
                    async move { stage.call(tool, &args, CancellationToken::new()).await }
                }
            };
            let lines = {
                let (ndjson, raw) = (ndjson.clone(), raw.clone());
                move || {
                    let (ndjson, raw) = (ndjson.clone(), raw.clone());
                    async move { ndjson.call(&raw).await }
                }
            };
            let one = [
                round(calls, in_flight, ours).await?,
                round(calls, in_flight, lines).await?,
                fetch.round(&raw, calls, in_flight).await?,
            ];
            if number > 0 {
                rounds.iter_mut().zip(one).for_each(|(rounds, round)| rounds.push(round));
            }
        }
        let [ours, lines, fetched] = &rounds;
        compare(
            name,
            &[
                condense("beeuni, experimental path", ours),
                condense("newline-JSON on pipes", lines),
                condense("fetch to a Bun server", fetched),
            ],
        );
    }
    Ok(())
}

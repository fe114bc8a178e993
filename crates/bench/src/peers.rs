//! The peers: the same echo, hosted the way others do it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use beeuni_child::{Child, Spawner, Spec, Stdin};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use crate::table::Round;

/// Where the peers' scripts lie.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}

/// Starts one of the scripts in Bun, without a sandbox: the peers get every advantage.
async fn start(spawner: &Spawner, bun: &Path, name: &str) -> Result<Child> {
    let mut spec = Spec::new(bun, script("").as_path());
    spec.args = vec![script(name).into_os_string()];
    spec.env = BTreeMap::from([("PATH".into(), OsString::from("/usr/bin:/bin"))]);
    spec.stdin = Stdin::Piped;
    spec.limits.memory = 4 << 30;
    spawner.spawn(spec).await.with_context(|| format!("cannot start the peer {name}"))
}

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<String>>>>;

/// One JSON object a line, over pipes.
pub struct Ndjson {
    stdin: tokio::sync::Mutex<pipe::Sender>,
    waiting: Waiting,
    next: std::sync::atomic::AtomicU64,
    _child: Child,
}

#[derive(serde::Deserialize)]
struct Answer {
    id: u64,
    result: String,
}

impl Ndjson {
    /// Starts the peer and its reader.
    pub async fn start(spawner: &Spawner, bun: &Path) -> Result<Arc<Ndjson>> {
        let mut child = start(spawner, bun, "ndjson.ts").await?;
        let stdin = child.stdin.take().context("no standard input")?;
        let stdout = child.stdout.take().context("no standard output")?;
        let waiting = Waiting::default();
        let answers = waiting.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::with_capacity(1 << 16, stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let Ok(answer) = serde_json::from_str::<Answer>(&line) else { return };
                let waiter = answers.lock().unwrap_or_else(PoisonError::into_inner).remove(&answer.id);
                if let Some(waiter) = waiter {
                    let _ = waiter.send(answer.result);
                }
            }
        });
        let next = 1.into();
        Ok(Arc::new(Ndjson { stdin: stdin.into(), waiting, next, _child: child }))
    }

    /// One call.
    pub async fn call(&self, args: &RawValue) -> Result<String> {
        let id = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        let line = format!("{{\"id\":{id},\"args\":{}}}\n", args.get());
        self.stdin.lock().await.write_all(line.as_bytes()).await?;
        Ok(answer.await?)
    }
}

/// A Bun program that calls another one with fetch.
pub struct Fetch {
    url: String,
    stdin: pipe::Sender,
    answers: Lines<BufReader<pipe::Receiver>>,
    _children: [Child; 2],
}

impl Fetch {
    /// Starts server and client.
    pub async fn start(spawner: &Spawner, bun: &Path) -> Result<Fetch> {
        let mut server = start(spawner, bun, "server.ts").await?;
        let stdout = server.stdout.take().context("no standard output")?;
        let port = BufReader::new(stdout).lines().next_line().await?.context("the server ended")?;
        let mut client = start(spawner, bun, "fetch.ts").await?;
        let stdin = client.stdin.take().context("no standard input")?;
        let stdout = client.stdout.take().context("no standard output")?;
        let url = format!("http://127.0.0.1:{}/beeuni/tools/echo", port.trim());
        Ok(Fetch { url, stdin, answers: BufReader::new(stdout).lines(), _children: [server, client] })
    }

    /// One round; the client itself takes the times.
    pub async fn round(&mut self, args: &RawValue, calls: usize, in_flight: usize) -> Result<Round> {
        let round =
            serde_json::json!({ "url": self.url, "args": args, "calls": calls, "in_flight": in_flight });
        let start = Instant::now();
        self.stdin.write_all(format!("{round}\n").as_bytes()).await?;
        let line = self.answers.next_line().await?.context("the client ended")?;
        let whole = start.elapsed();
        let nanos: Vec<f64> = serde_json::from_str(&line)?;
        Ok(Round {
            calls: nanos.into_iter().map(|nanos| Duration::from_nanos(nanos as u64)).collect(),
            whole,
        })
    }
}

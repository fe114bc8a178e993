//! Real Bun processes with real modules, good and bad.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod calling;
mod crashes;
mod house;
mod loading;
mod reload;
mod secrets;
mod stopping;
mod together;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use beeuni_child::Spawner;
use beeuni_toolhost::{
    BunProgram, Call, CallFailure, Config, Level, LoadReport, Log, ModuleSpec, Source, ToolHost, ToolLimits,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A tool host over a temporary checkout.
struct Room {
    folder: TempDir,
    host: Arc<ToolHost>,
    log: Arc<Lines>,
    env: Arc<BTreeMap<String, String>>,
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn record(&self, _: Level, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

impl Lines {
    fn all(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }
}

/// A room, or `None` with a loud line when there is no Bun.
fn room() -> Option<Room> {
    let folder = tempfile::Builder::new().prefix("toolhost-").tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["checkout/tools", "tmp"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    let log = Arc::new(Lines::default());
    let host = ToolHost::start(config(&folder, log.clone())?).unwrap();
    let env = Arc::new([("GREETING".to_owned(), "hello".to_owned())].into());
    Some(Room { folder, host, log, env })
}

/// How a room's host is set up.
fn config(folder: &TempDir, log: Arc<Lines>) -> Option<Config> {
    let Some(bun) = beeuni_testkit::bun() else {
        eprintln!("skipped: no Bun; run `npm ci` in runtime/ or set BEEUNI_BUN");
        return None;
    };
    let root = folder.path().canonicalize().unwrap();
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    let process_env = [
        ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("HOME".to_owned(), text(root.join("tmp"))),
        ("TMPDIR".to_owned(), text(root.join("tmp"))),
        ("TZ".to_owned(), "UTC".to_owned()),
    ];
    Some(Config {
        bun: BunProgram { path: bun, env: BTreeMap::new() },
        spawner: Spawner::start().unwrap(),
        checkout: root.join("checkout"),
        temp: root.join("tmp"),
        state: root.join("state"),
        spill: root.join("spill"),
        process_env: process_env.into(),
        sandbox: true,
        log,
    })
}

/// A good tool around the body of `execute`.
fn tool(body: &str) -> String {
    format!(
        "export default {{ description: 'd', parameters: {{ type: 'object' }}, async execute(args: any, context: any) {{ {body} }} }}"
    )
}

fn spec(name: &str) -> ModuleSpec {
    let source = Source::File(format!("tools/{name}.ts").into());
    ModuleSpec { name: name.into(), source, limits: ToolLimits::default() }
}

impl Room {
    fn at(&self, file: impl AsRef<Path>) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("checkout").join(file)
    }

    fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        let path = self.at(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes `tools/<name>.ts` for each and loads them all.
    async fn load(&self, tools: &[(&str, String)]) -> LoadReport {
        for (name, text) in tools {
            self.write(&format!("tools/{name}.ts"), text);
        }
        self.reload(&tools.iter().map(|(name, _)| *name).collect::<Vec<_>>()).await
    }

    async fn reload(&self, names: &[&str]) -> LoadReport {
        self.load_specs(names.iter().map(|name| spec(name)).collect()).await
    }

    async fn load_specs(&self, specs: Vec<ModuleSpec>) -> LoadReport {
        self.host.load(&self.at(""), specs).await
    }

    fn request(&self, tool: &str, arguments: impl Into<Vec<u8>>) -> Call {
        Call {
            tool: tool.into(),
            arguments: arguments.into(),
            session: "ses_1".into(),
            agent: "beeuni".into(),
            directory: "/workspace".into(),
            env: self.env.clone(),
            cancel: CancellationToken::new(),
        }
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, CallFailure> {
        self.host.call(self.request(tool, arguments)).await
    }

    /// Begins a call in the background.
    fn begin(&self, call: Call) -> tokio::task::JoinHandle<Result<String, CallFailure>> {
        let host = self.host.clone();
        tokio::spawn(async move { host.call(call).await })
    }

    fn has_logged(&self, text: &str) -> bool {
        self.log.all().contains(text)
    }
}

/// Waits until a condition holds; fails when it has not for far longer than it should take.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never came true: {what}");
}

fn ok(text: &str) -> Result<String, CallFailure> {
    Ok(text.to_owned())
}

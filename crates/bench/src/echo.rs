//! Our side of the table: a real project, its tools behind the daemon's door, as the experimental harness calls them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use beeuni_child::Spawner;
use beeuni_daemon::checkout::{Folder, MANIFEST};
use beeuni_daemon::{Door, Environment, Hosting};
use beeuni_harness::{ToolCall, Tools as _};
use beeuni_manifest::{Harness, read};
use beeuni_toolhost::{BunProgram, TracingLog};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A project with the bench's tools, opened.
pub struct Stage {
    /// The hosted tools.
    pub door: Arc<Door>,
    _folder: TempDir,
}

/// Writes a project with these modules; the manifest lists them under their file names.
pub fn project(modules: &[(&str, &str)]) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    let tools = folder.path().join("project/tools");
    fs::create_dir_all(&tools)?;
    let mut manifest = "tools:\n".to_owned();
    for (name, text) in modules {
        fs::write(tools.join(format!("{name}.ts")), text)?;
        manifest.push_str(&format!("  {name}: tools/{name}.ts\n"));
    }
    fs::write(folder.path().join("project").join(MANIFEST), manifest)?;
    for name in ["tmp", "host", "out"] {
        fs::create_dir(folder.path().join(name))?;
    }
    Ok(folder)
}

/// What a session of that project is hosted with.
pub fn hosting(folder: &Path, spawner: &Spawner, bun: &Path) -> Result<Hosting> {
    let folder = folder.canonicalize()?;
    let temp = folder.join("tmp");
    let shell = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let environment = Environment::new(&shell, &Default::default(), BTreeMap::new(), &temp.to_string_lossy());
    Ok(Hosting {
        bun: BunProgram { path: bun.to_owned(), env: BTreeMap::new() },
        spawner: spawner.clone(),
        checkout: folder.join("project"),
        temp,
        state: folder.join("host"),
        spill: folder.join("out"),
        sandbox: true,
        log: Arc::new(TracingLog),
        environment,
    })
}

impl Stage {
    /// Loads the modules; each must load.
    pub async fn open(spawner: &Spawner, bun: &Path, modules: &[(&str, &str)]) -> Result<Stage> {
        let folder = project(modules)?;
        let hosting = hosting(folder.path(), spawner, bun)?;
        let files = Folder::open(&hosting.checkout)?;
        let judged = read(&files, MANIFEST, &Default::default());
        let (door, report) =
            Door::open(hosting, Arc::new(judged.manifest), Harness::Experimental, None).await?;
        anyhow::ensure!(report.failed.is_empty(), "did not load: {:?}", report.failed);
        Ok(Stage { door, _folder: folder })
    }

    /// One call.
    pub async fn call(&self, name: &str, arguments: &str, cancel: CancellationToken) -> Result<String> {
        let call = ToolCall {
            session: "bench".to_owned(),
            session_agent: "beeuni".to_owned(),
            agent: "beeuni".to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            cancel,
        };
        self.door.call(call).await.map_err(anyhow::Error::from)
    }
}

/// The Bun that `cargo xtask bench` names.
pub fn bun() -> Result<PathBuf> {
    beeuni_testkit::bun().context("no Bun: run this as `cargo xtask bench`")
}

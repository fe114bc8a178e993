//! The tool host: the table of loaded tools, and how it is replaced.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use beeuni_protocol::host::Load;
use futures::future::join_all;
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout_at};

use crate::bound::Bounder;
use crate::call::{Call, CallFailure};
use crate::config::{Config, ModuleSpec};
use crate::guard::holder;
use crate::load::{FailedTool, LoadReport, LoadedTool, is_unchanged, order, shown_path};
use crate::log::CleanLog;
use crate::redact::Redactor;
use crate::start::Launcher;
use crate::tool::{Condition, Tool};

/// Why there is no tool host.
#[derive(Debug, Error)]
pub enum HostError {
    /// The private folder does not serve.
    #[error("the tool host's folder {} does not serve: {source}", folder.display())]
    State {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Tools could overwrite the host's own program.
    #[error(
        "the tool host's folder {} lies in {}, where tools may write; choose another folder for it, or set TMPDIR to \
         a folder outside the checkout",
        folder.display(), writable.display()
    )]
    Writable {
        /// The folder.
        folder: PathBuf,
        /// What tools may write.
        writable: PathBuf,
    },
}

/// So many modules are loaded at once. On few cores more would only fill memory.
const AT_ONCE: usize = 16;
/// A module that takes longer lets the next one begin beside it: it most likely waits for something.
const PATIENCE: Duration = Duration::from_secs(1);
/// What has not loaded by then is left out, however many modules there are.
const WHOLE_LOAD: Duration = Duration::from_secs(30);

/// Loads modules and calls them. Dropping it ends every process of it that no call needs.
pub struct ToolHost {
    launcher: Arc<Launcher>,
    table: RwLock<Arc<Table>>,
    /// One load at a time.
    loading: tokio::sync::Mutex<()>,
    bounder: Bounder,
}

#[derive(Default)]
struct Table {
    tools: HashMap<String, Arc<Tool>>,
    report: LoadReport,
}

/// How the tool host is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Every tool that the last load named: those that loaded, then those that did not.
    pub tools: Vec<ToolStatus>,
    /// One sentence for each thing that the sandbox goes without.
    pub notes: Vec<String>,
}

/// How one tool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolStatus {
    /// The tool.
    pub name: String,
    /// How it is.
    pub state: ToolState,
}

/// How a tool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolState {
    /// Its process runs.
    Ready,
    /// Its process has ended; the next call starts it.
    Asleep,
    /// It did not load, and why.
    Failed(String),
    /// It crashed too often, and what the last crash was.
    Quarantined(String),
}

/// The note when [`Config::sandbox`] is off.
const UNCONFINED: &str = "The sandbox is switched off: a tool can do whatever this user can.";

impl ToolHost {
    /// A host without tools. Must be called inside a tokio runtime.
    pub fn start(config: Config) -> Result<Arc<ToolHost>, HostError> {
        let log = CleanLog { log: config.log.clone(), redactor: Arc::<Redactor>::default() };
        if !config.sandbox {
            log.warn(&format!("[tools] {UNCONFINED}"));
        }
        let bounder = Bounder::new(config.spill.clone());
        let folder = config.state.clone();
        if let Some(writable) = holder(&folder, [&config.checkout, &config.temp]) {
            return Err(HostError::Writable { folder, writable });
        }
        let launcher = Launcher::new(config, log).map_err(|source| HostError::State { folder, source })?;
        Ok(Arc::new(ToolHost {
            launcher: Arc::new(launcher),
            table: RwLock::default(),
            loading: tokio::sync::Mutex::default(),
            bounder,
        }))
    }

    /// Takes the place of all secret values known before; they are kept out of the log and of reasons from now on.
    pub fn set_secrets(&self, values: impl IntoIterator<Item = String>) {
        self.launcher.log.redactor.set(values);
    }

    /// Makes `modules` the tools of this host, in their order. Also the reload: a tool whose root, limits and files are
    /// what they were keeps its process and its state; any other gets a new process, and calls that are under way end
    /// in the old one, however long they take. Until all are loaded the old ones serve. Loads run one after another.
    ///
    /// Files of modules are relative to `root`, an absolute path. A module that does not load never keeps another from
    /// loading or makes it wait; all that did not are named in one log record (M7). One module has 15 s, the whole
    /// load 30 s, whatever the modules do.
    pub async fn load(&self, root: &Path, modules: Vec<ModuleSpec>) -> LoadReport {
        let _loading = self.loading.lock().await;
        // One name for the root, so that paths that Bun resolves lie below it.
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let old = self.table();
        let places = Semaphore::new(AT_ONCE);
        let deadline = Instant::now() + WHOLE_LOAD;
        let outcomes = modules.into_iter().map(|spec| async {
            let (name, path) = (spec.name.clone(), shown_path(&spec));
            let loading = self.load_in_turn(spec, &root, &old, &places);
            timeout_at(deadline, loading).await.unwrap_or_else(|_| {
                let reason = format!("all tools together did not load within {} s", WHOLE_LOAD.as_secs());
                Err(FailedTool { name, path, reason })
            })
        });
        let outcomes = join_all(outcomes).await;
        let mut table = Table::default();
        for outcome in outcomes {
            match outcome {
                Ok(tool) => {
                    let name = tool.spec.name.clone();
                    if table.tools.insert(name.clone(), tool.clone()).is_none() {
                        table.report.loaded.push(Arc::new(LoadedTool::new(&name, &tool.loaded())));
                    }
                }
                Err(failed) => table.report.failed.push(failed),
            }
        }
        let report = table.report.clone();
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        if let Some(record) = report.record() {
            self.launcher.log.warn(&record);
        }
        self.launcher.refill(root);
        report
    }

    /// Loads once there is a place, which is given up when it takes long.
    async fn load_in_turn(
        &self,
        spec: ModuleSpec,
        root: &Path,
        old: &Table,
        places: &Semaphore,
    ) -> Result<Arc<Tool>, FailedTool> {
        let place = places.acquire().await;
        let mut loading = pin!(self.load_one(spec, root, old));
        tokio::select! {
            outcome = &mut loading => return outcome,
            () = sleep(PATIENCE) => drop(place),
        }
        loading.await
    }

    async fn load_one(&self, spec: ModuleSpec, root: &Path, old: &Table) -> Result<Arc<Tool>, FailedTool> {
        let (name, path) = (spec.name.clone(), shown_path(&spec));
        let failed = |reason: String| {
            let reason = self.launcher.log.clean_reason(&reason);
            FailedTool { name: name.clone(), path: path.clone(), reason }
        };
        let running = old.tools.get(&name).cloned();
        let (root, state) = (root.to_owned(), self.launcher.config.state.clone());
        // Files are read on a thread that may wait: a checkout can lie on a slow disk.
        let judged = spawn_blocking(move || -> Result<(ModuleSpec, Load, Option<Arc<Tool>>), String> {
            let order = order(&spec, &root, &state)?;
            let unchanged = running.filter(|tool| is_unchanged(tool, &spec, &order));
            Ok((spec, order, unchanged))
        });
        let (spec, order, unchanged) =
            judged.await.unwrap_or_else(|error| Err(error.to_string())).map_err(&failed)?;
        match unchanged {
            Some(tool) => Ok(tool),
            None => {
                Tool::load(spec, order, self.launcher.clone()).await.map_err(|error| failed(error.message))
            }
        }
    }

    /// Whether a tool of that name can be called.
    pub fn is_loaded(&self, tool: &str) -> bool {
        self.table().tools.contains_key(tool)
    }

    /// What the last load gave.
    pub fn report(&self) -> LoadReport {
        self.table().report.clone()
    }

    /// Runs one call and bounds what comes back, result or error (M3, M5). Dropping the future stops the call.
    pub async fn call(&self, call: Call) -> Result<String, CallFailure> {
        let Some(tool) = self.table().tools.get(&call.tool).cloned() else {
            return Err(CallFailure::NotLoaded(call.tool));
        };
        let name = tool.clone();
        match tool.call(call).await {
            Ok(text) => Ok(self.bound(&name.spec.name, text).await),
            Err(CallFailure::Tool(text)) => Err(CallFailure::Tool(self.bound(&name.spec.name, text).await)),
            Err(failure) => Err(failure),
        }
    }

    /// Bounds any text as M5 says; see [`Bounder::bound`].
    pub async fn bound(&self, tool: &str, text: String) -> String {
        if !Bounder::is_long(&text) {
            return text;
        }
        let (bounder, tool) = (self.bounder.clone(), tool.to_owned());
        let bounded = spawn_blocking(move || bounder.bound(&tool, text)).await;
        bounded.unwrap_or_else(|_| "[The output could not be bounded.]".to_owned())
    }

    /// How every tool is.
    pub fn status(&self) -> Status {
        let table = self.table();
        let loaded = table.report.loaded.iter().filter_map(|loaded| table.tools.get(&loaded.name));
        let mut tools: Vec<ToolStatus> = loaded
            .map(|tool| ToolStatus {
                name: tool.spec.name.clone(),
                state: match tool.condition() {
                    Condition::Ready => ToolState::Ready,
                    Condition::Asleep => ToolState::Asleep,
                    Condition::Quarantined(last) => ToolState::Quarantined(last),
                },
            })
            .collect();
        tools.extend(table.report.failed.iter().map(|failed| ToolStatus {
            name: failed.name.clone(),
            state: ToolState::Failed(failed.reason.clone()),
        }));
        let notes = if self.launcher.config.sandbox {
            beeuni_child::probe().notes
        } else {
            vec![UNCONFINED.to_owned()]
        };
        Status { tools, notes }
    }

    fn table(&self) -> Arc<Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

//! The one door to the hosted tools: who may call what is judged here, for every harness and every caller, and here a call
//! gets its secrets.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use beeuni_builtins::Builtin;
use beeuni_harness::{CallError, HostedTool, ToolCall, Tools};
use beeuni_manifest::{Harness, Manifest, Selection, ToolEntry, ToolSource, Verdict};
use beeuni_toolhost::{
    Bounder, BunProgram, Call, CallFailure, Config, HostError, LoadReport, Log, ModuleSpec, Source, Spawner,
    Status, ToolHost, ToolLimits,
};

use crate::environment::Environment;

/// What a box gives the tool host.
#[derive(Clone)]
pub struct Hosting {
    /// The Bun that runs modules.
    pub bun: BunProgram,
    /// Starts the processes.
    pub spawner: Spawner,
    /// The project's checkout.
    pub checkout: PathBuf,
    /// The box's temporary folder.
    pub temp: PathBuf,
    /// A private folder for the host's own files; tools cannot write there.
    pub state: PathBuf,
    /// Where long outputs are saved.
    pub spill: PathBuf,
    /// Whether tools are confined.
    pub sandbox: bool,
    /// Who hears about what modules print and what fails.
    pub log: Arc<dyn Log>,
    /// Variables and secrets.
    pub environment: Environment,
}

/// A `context.env`, shared by the calls that see it.
type Vars = Arc<BTreeMap<String, String>>;

/// The hosted tools of one project, behind their access rule.
pub struct Door {
    host: Arc<ToolHost>,
    modules: Vec<ModuleSpec>,
    /// The modules that did not load, with what their files held then.
    failed: Mutex<HashMap<String, Option<u64>>>,
    checkout: PathBuf,
    manifest: Arc<Manifest>,
    harness: Harness,
    environment: Environment,
    bounder: Bounder,
    directory: String,
    /// One shared value per agent and session, so that a tool's process is sent an environment once.
    contexts: Mutex<HashMap<(String, String), Vars>>,
}

impl Door {
    /// Starts a tool host and loads what a session of this project gets. With `only`, that one tool alone.
    pub async fn open(
        hosting: Hosting,
        manifest: Arc<Manifest>,
        harness: Harness,
        only: Option<&str>,
    ) -> Result<(Arc<Door>, LoadReport), HostError> {
        let Hosting { bun, spawner, checkout, temp, state, spill, sandbox, log, environment } = hosting;
        let host = ToolHost::start(Config {
            bun,
            spawner,
            checkout: checkout.clone(),
            temp,
            state,
            spill: spill.clone(),
            process_env: environment.process(),
            sandbox,
            log,
        })?;
        host.set_secrets(environment.private_values().iter().cloned());
        let tools = manifest.session_tools().into_iter();
        let modules = tools.filter(|tool| only.is_none_or(|only| tool.name == only));
        let modules: Vec<ModuleSpec> = modules.filter_map(|tool| module(tool, &manifest)).collect();
        let report = host.load(&checkout, modules.clone()).await;
        let door = Door {
            host,
            failed: Mutex::new(fingerprints(&modules, &report, &checkout)),
            modules,
            manifest,
            harness,
            environment,
            bounder: Bounder::new(spill),
            directory: checkout.to_string_lossy().into_owned(),
            checkout,
            contexts: Mutex::default(),
        };
        Ok((Arc::new(door), report))
    }

    /// Loads again what has other contents than before; the rest keeps its process. Calls that run end on the old code. A
    /// module that did not load is tried again when its own file has changed: one that hangs must not delay every turn.
    pub async fn refresh(&self) {
        let modules: Vec<ModuleSpec> = {
            let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            let is_worth_it = |module: &&ModuleSpec| {
                failed.get(&module.name).is_none_or(|seen| *seen != fingerprint(module, &self.checkout))
            };
            self.modules.iter().filter(is_worth_it).cloned().collect()
        };
        let report = self.host.load(&self.checkout, modules.clone()).await;
        let again = fingerprints(&modules, &report, &self.checkout);
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.retain(|name, _| !modules.iter().any(|module| module.name == *name));
        failed.extend(again);
    }

    /// How every tool is.
    pub fn status(&self) -> Status {
        self.host.status()
    }

    fn grants(&self, agent: &str) -> &Selection {
        self.manifest.agents.get(agent).map_or(&Selection::None, |agent| &agent.value.secrets)
    }

    fn context(&self, session: &str, agent: &str) -> Vars {
        let key = (session.to_owned(), agent.to_owned());
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.entry(key).or_insert_with(|| self.environment.context(self.grants(agent), session)).clone()
    }
}

/// What the files of the modules that did not load hold now.
fn fingerprints(
    modules: &[ModuleSpec],
    report: &LoadReport,
    checkout: &Path,
) -> HashMap<String, Option<u64>> {
    let failed =
        report.failed.iter().filter_map(|failed| modules.iter().find(|module| module.name == failed.name));
    failed.map(|module| (module.name.clone(), fingerprint(module, checkout))).collect()
}

/// A mark of a module file's contents; `None` when it cannot be read.
fn fingerprint(module: &ModuleSpec, checkout: &Path) -> Option<u64> {
    let Source::File(path) = &module.source else { return None };
    let path = checkout.join(path);
    // Asked before reading: a pipe would wait for a writer for ever.
    if !fs::metadata(&path).ok()?.is_file() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    fs::read(path).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}

/// What the tool host loads for an entry. A Beeuni tool comes out of this program (L7).
fn module(tool: ToolEntry, manifest: &Manifest) -> Option<ModuleSpec> {
    let source = match tool.source {
        ToolSource::Module(path) => Source::File(path.into()),
        ToolSource::Beeuni => {
            let Builtin { name, source } = beeuni_builtins::get(&tool.name)?;
            Source::Text { file: format!("{name}.ts"), text: source }
        }
    };
    let limits = manifest.limits.of(&tool.name);
    let paths = |paths: Vec<String>| paths.into_iter().map(PathBuf::from).collect();
    let limits = ToolLimits {
        memory: limits.memory,
        processes: limits.processes,
        files: limits.files,
        call_time: limits.call_time.map(Duration::from_secs),
        idle: limits.idle.map(Duration::from_secs),
        network: limits.network,
        read: paths(limits.read),
        write: paths(limits.write),
    };
    Some(ModuleSpec { name: tool.name, source, limits })
}

#[async_trait]
impl Tools for Door {
    fn list(&self) -> Vec<HostedTool> {
        let report = self.host.report();
        let hosted = report.loaded.iter().map(|tool| HostedTool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        });
        hosted.collect()
    }

    async fn call(&self, call: ToolCall) -> Result<String, CallError> {
        if !self.host.is_loaded(&call.name) {
            return Err(CallError::NotFound(call.name));
        }
        let verdict = self.manifest.may_use(self.harness, &call.session_agent, &call.agent, &call.name);
        if verdict != Verdict::Visible {
            return Err(CallError::Denied { agent: call.agent, tool: call.name });
        }
        let env = self.context(&call.session, &call.agent);
        let outcome = self.host.call(Call {
            tool: call.name,
            arguments: call.arguments.into_bytes(),
            session: call.session,
            agent: call.agent,
            directory: self.directory.clone(),
            env,
            cancel: call.cancel,
        });
        outcome.await.map_err(|failure| match failure {
            CallFailure::NotLoaded(name) => CallError::NotFound(name),
            CallFailure::Tool(message) => CallError::Tool(message),
            CallFailure::Aborted => CallError::Aborted,
            other => CallError::Host(other.to_string()),
        })
    }

    fn bound(&self, tool: &str, text: String) -> String {
        self.bounder.bound(tool, text)
    }

    fn environment(&self, session: &str, agent: &str) -> BTreeMap<String, String> {
        self.environment.shell(self.grants(agent), session)
    }
}

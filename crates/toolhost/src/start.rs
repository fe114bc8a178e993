//! Starting a Bun process and having it import a module, each within a deadline; the warm spare.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use beeuni_child::{Limits, Sandbox, Spec};
use beeuni_protocol::host::{Load, LoadFailed, Loaded};
use socket2::SockRef;
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use crate::config::{Config, ToolLimits};
use crate::log::CleanLog;
use crate::process::Process;

/// The program that runs in each tool process.
const HOST: &str = include_str!("../host/host.ts");
/// How Bun is started: nothing in the checkout may change what it does before the module is imported.
const FLAGS: [&str; 3] = ["--no-env-file", "--config=/dev/null", "--no-install"];
/// A process is up, or given up, after this.
const READY: Duration = Duration::from_secs(5);
/// Bytes that a channel holds in each direction.
const SEND_BUFFER: usize = 2 << 20;
/// A spare is started so long after it is wanted.
const SPARE_AFTER: Duration = Duration::from_millis(250);
/// A module is imported, or left out, after this.
const LOAD: Duration = Duration::from_secs(10);

/// Starts processes.
pub(crate) struct Launcher {
    pub(crate) config: Config,
    pub(crate) log: CleanLog,
    /// Held by every process that serves a tool; the spare is kept only while there is one.
    awake: Arc<()>,
    spare: Mutex<Option<Spare>>,
}

/// A started process that has imported nothing yet.
struct Spare {
    root: PathBuf,
    process: Process,
}

/// A process that serves a tool.
pub(crate) struct Started {
    pub(crate) process: Arc<Process>,
    pub(crate) loaded: Loaded,
    pub(crate) awake: Arc<()>,
}

impl Launcher {
    /// Writes the host's files into the private folder.
    pub(crate) fn new(config: Config, log: CleanLog) -> io::Result<Launcher> {
        crate::bound::own_folder(&config.state)?;
        let launcher = Launcher { config, log, awake: Arc::new(()), spare: Mutex::default() };
        // Renamed into place: a host that starts right now reads the old text or the new one.
        let new = launcher.config.state.join("host.ts.new");
        fs::write(&new, HOST)?;
        fs::rename(new, launcher.host())?;
        Ok(launcher)
    }

    fn host(&self) -> PathBuf {
        self.config.state.join("host.ts")
    }

    /// Starts a process and has it import a module.
    pub(crate) async fn launch(&self, order: &Load, limits: &ToolLimits) -> Result<Started, LoadFailed> {
        let root = Path::new(&order.root);
        let process = match self.take_spare(root, limits) {
            Some(process) => process,
            None => self.start(root, limits).await.map_err(|reason| self.failed(reason))?,
        };
        match timeout(LOAD, process.load(order)).await {
            Ok(Ok(Ok(loaded))) => {
                Ok(Started { process: Arc::new(process), loaded, awake: self.awake.clone() })
            }
            Ok(Ok(Err(mut failed))) => {
                failed.message = self.log.clean_reason(&failed.message);
                Err(failed)
            }
            Ok(Err(_)) => {
                let how = process.end().and_then(|end| end.fault());
                let how = how.unwrap_or_else(|| "ended".to_owned());
                Err(self.failed(format!("the module's process {how} while loading")))
            }
            Err(_) => Err(self.failed(format!("it did not finish loading within {} s", LOAD.as_secs()))),
        }
    }

    pub(crate) fn failed(&self, message: String) -> LoadFailed {
        LoadFailed { message: self.log.clean_reason(&message), files: Vec::new() }
    }

    async fn start(&self, root: &Path, limits: &ToolLimits) -> Result<Process, String> {
        let cannot = |error: &dyn std::fmt::Display| format!("its process could not be started: {error}");
        let (ours, theirs) = StdStream::pair().map_err(|error| cannot(&error))?;
        ours.set_nonblocking(true).map_err(|error| cannot(&error))?;
        theirs.set_nonblocking(true).map_err(|error| cannot(&error))?;
        // A smaller buffer would have a large text go through in many turns. Less is only slower.
        for end in [&ours, &theirs] {
            let _ = SockRef::from(end).set_send_buffer_size(SEND_BUFFER);
        }
        let stream = UnixStream::from_std(ours).map_err(|error| cannot(&error))?;
        let mut spec = self.spec(root, limits);
        spec.channel = Some(theirs.into());
        let child = self.config.spawner.spawn(spec).await.map_err(|error| cannot(&error))?;
        let (process, ready) = Process::new(child, stream, self.log.clone());
        match timeout(READY, ready).await {
            Ok(Ok(())) => Ok(process),
            Ok(Err(_)) => {
                let how = process.end().and_then(|end| end.fault()).unwrap_or_else(|| "ended".to_owned());
                Err(cannot(&format!("Bun {how}")))
            }
            Err(_) => Err(cannot(&format!("Bun was not ready within {} s", READY.as_secs()))),
        }
    }

    fn spec(&self, root: &Path, limits: &ToolLimits) -> Spec {
        let config = &self.config;
        let mut spec = Spec::new(&config.bun.path, &config.checkout);
        spec.args = FLAGS.iter().map(Into::into).chain([self.host().into()]).collect();
        let env = config.process_env.iter().chain(&config.bun.env);
        spec.env = env.map(|(name, value)| (name.into(), value.into())).collect();
        spec.sandbox = config.sandbox.then(|| Sandbox {
            read: [vec![config.state.clone(), root.to_owned()], limits.read.clone()].concat(),
            write: [vec![config.checkout.clone(), config.temp.clone()], limits.write.clone()].concat(),
            network: limits.network.unwrap_or(true),
        });
        let usual = Limits::default();
        spec.limits = Limits {
            memory: limits.memory.unwrap_or(usual.memory),
            processes: limits.processes.or(usual.processes),
            files: limits.files.unwrap_or(usual.files),
            ..usual
        };
        spec
    }

    fn take_spare(&self, root: &Path, limits: &ToolLimits) -> Option<Process> {
        if !limits.is_plain() {
            return None;
        }
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        (spare.root == root && spare.process.end().is_none()).then_some(spare.process)
    }

    /// Sees to it that a spare for this root waits, if any tool is awake. Returns at once.
    pub(crate) fn refill(self: &Arc<Self>, root: PathBuf) {
        let launcher = self.clone();
        tokio::spawn(async move {
            let wanted = |launcher: &Launcher, spare: &Option<Spare>| {
                launcher.is_awake()
                    && spare.as_ref().is_none_or(|spare| spare.root != root || spare.process.end().is_some())
            };
            if !wanted(&launcher, &launcher.spare.lock().unwrap_or_else(PoisonError::into_inner)) {
                return;
            }
            // The first calls come right after a load: they need the machine more. A host that goes meanwhile is let go.
            let waiting = Arc::downgrade(&launcher);
            drop(launcher);
            sleep(SPARE_AFTER).await;
            let Some(launcher) = waiting.upgrade() else { return };
            if let Ok(process) = launcher.start(&root, &ToolLimits::default()).await {
                let mut spare = launcher.spare.lock().unwrap_or_else(PoisonError::into_inner);
                if wanted(&launcher, &spare) {
                    *spare = Some(Spare { root: root.clone(), process });
                }
            }
        });
    }

    /// Lets the spare go when every tool is asleep.
    pub(crate) fn rest(&self) {
        if !self.is_awake() {
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    fn is_awake(&self) -> bool {
        Arc::strong_count(&self.awake) > 1
    }
}

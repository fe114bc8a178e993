//! What the tool host is given: programs, folders and limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use beeuni_child::Spawner;

use crate::log::Log;

/// The Bun that runs modules.
#[derive(Clone, Debug)]
pub struct BunProgram {
    /// The program's file.
    pub path: PathBuf,
    /// What it needs to act as Bun, such as `BUN_BE_BUN=1` for OpenCode's own program.
    pub env: BTreeMap<String, String>,
}

/// Everything that stays the same for the life of a [`crate::ToolHost`].
#[derive(Clone)]
pub struct Config {
    /// The Bun that runs modules.
    pub bun: BunProgram,
    /// Starts the processes.
    pub spawner: Spawner,
    /// The project's checkout: working folder of every tool process, which may write there.
    pub checkout: PathBuf,
    /// The box's temporary folder; tools may write there. `TMPDIR` of `process_env` should name it.
    pub temp: PathBuf,
    /// A private folder of mode 0700 that tools cannot write, for the host's own files. Not inside the two above.
    pub state: PathBuf,
    /// Where long outputs are saved whole; made with mode 0700 when needed.
    pub spill: PathBuf,
    /// `process.env` of every module: PATH, HOME, LANG, TZ, TMPDIR, proxy and CA variables, never a secret.
    pub process_env: BTreeMap<String, String>,
    /// Whether tool processes are confined.
    pub sandbox: bool,
    /// Who hears about what modules print and what fails.
    pub log: Arc<dyn Log>,
}

/// One module to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleSpec {
    /// The tool's name.
    pub name: String,
    /// Where the module is.
    pub source: Source,
    /// Limits of its process.
    pub limits: ToolLimits,
}

/// Where a module is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, relative to the root that is given at each load.
    File(PathBuf),
    /// A module inside this program.
    Text {
        /// A plain file name, such as `show.ts`.
        file: String,
        /// The module's text.
        text: &'static str,
    },
}

/// Limits of a tool's process. `None` and empty mean the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolLimits {
    /// Memory of the process and what it starts, in bytes (512 MiB).
    pub memory: Option<u64>,
    /// Processes of the user id (no limit).
    pub processes: Option<u64>,
    /// Open files of one process (1024).
    pub files: Option<u64>,
    /// How long one call may take (no limit).
    pub call_time: Option<Duration>,
    /// How long a process may be idle before it ends (10 minutes).
    pub idle: Option<Duration>,
    /// Whether it may use the network (yes).
    pub network: Option<bool>,
    /// Further absolute paths to read.
    pub read: Vec<PathBuf>,
    /// Further absolute paths to read and write.
    pub write: Vec<PathBuf>,
}

/// How long a process may be idle when its limits do not say.
pub(crate) const IDLE: Duration = Duration::from_secs(600);

impl ToolLimits {
    /// Whether a process with the default sandbox and resource limits serves: times are ours to watch.
    pub(crate) fn is_plain(&self) -> bool {
        *self == ToolLimits { call_time: self.call_time, idle: self.idle, ..ToolLimits::default() }
    }
}

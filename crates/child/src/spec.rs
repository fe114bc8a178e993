//! What a caller says about a child before it starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// A child to start.
#[derive(Debug)]
pub struct Spec {
    /// A path, or a bare name that is looked up in `PATH` of [`Spec::env`].
    pub program: PathBuf,
    /// Arguments after the program's name. Never put a secret here: every process can read them.
    pub args: Vec<OsString>,
    /// The complete environment; nothing is inherited.
    pub env: BTreeMap<OsString, OsString>,
    /// Working directory of the child; must exist.
    pub cwd: PathBuf,
    /// What the child reads from descriptor 0.
    pub stdin: Stdin,
    /// Becomes descriptor 3 of the child. All other descriptors are closed when it starts.
    pub channel: Option<OwnedFd>,
    /// What the child may reach; `None` leaves it all rights of this process.
    pub sandbox: Option<Sandbox>,
    /// What the child may use up.
    pub limits: Limits,
}

impl Spec {
    /// A child without arguments, environment, input, channel or sandbox, and with the default limits.
    pub fn new(program: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Spec {
        Spec {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: cwd.into(),
            stdin: Stdin::Null,
            channel: None,
            sandbox: None,
            limits: Limits::default(),
        }
    }
}

/// What a child reads from descriptor 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdin {
    /// Nothing: end of file at once.
    #[default]
    Null,
    /// What the parent writes to [`crate::Child::stdin`].
    Piped,
}

/// What a confined child may reach, beyond the system's own programs, libraries and public settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    /// Files and folders it may read and execute. A path that does not exist is passed over.
    pub read: Vec<PathBuf>,
    /// Files and folders it may also write, create in and remove from.
    pub write: Vec<PathBuf>,
    /// Whether it may open IPv4 and IPv6 sockets.
    pub network: bool,
}

/// What a child may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of the child and its descendants together, in bytes; past it the whole group is killed.
    pub memory: u64,
    /// Processes of the user id; applied only when that is not root's, which the kernel never limits.
    pub processes: Option<u64>,
    /// Open descriptors of one process.
    pub files: u64,
    /// Size of one written file, in bytes.
    pub file_size: u64,
}

impl Default for Limits {
    /// 512 MiB of memory, no limit on processes, 1024 descriptors, files up to 1 GiB. Core dumps are always off.
    fn default() -> Limits {
        Limits { memory: 512 << 20, processes: None, files: 1024, file_size: 1 << 30 }
    }
}

//! A running child and how it ended.

use crate::fork::Started;
use crate::{stem, sys};
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::unix::pipe;
use tokio::sync::watch;

/// A running child. Dropping it kills it with all that it started; it is reaped in the background.
#[derive(Debug)]
pub struct Child {
    /// Writes to the child's descriptor 0, when [`crate::Stdin::Piped`] was asked for.
    pub stdin: Option<pipe::Sender>,
    /// Reads what the child writes to descriptor 1.
    pub stdout: Option<pipe::Receiver>,
    /// Reads what the child writes to descriptor 2.
    pub stderr: Option<pipe::Receiver>,
    pub(crate) hold: Hold,
}

impl Child {
    /// The child's process id, which is also the id of its group and session.
    pub fn pid(&self) -> u32 {
        self.hold.pid as u32
    }

    /// Waits until the child has ended and says how. May be asked by several tasks and more than once.
    ///
    /// What the child left behind, in whatever group or session, is killed before this returns.
    pub async fn wait(&self) -> Exit {
        let mut exit = self.hold.exit.clone();
        let ended = exit.wait_for(Option::is_some).await.ok().and_then(|seen| seen.clone());
        // The sender goes away unsent only when the runtime shuts down, which kills the child.
        ended.unwrap_or(Exit { code: None, signal: Some(libc::SIGKILL), out_of_memory: None })
    }

    /// Kills the child and, at the latest with its end, all that it started. Does nothing when it has ended.
    pub fn kill(&self) {
        self.hold.group.signal(libc::SIGKILL);
    }

    /// Asks the child and all of its process group to end (SIGTERM). Does nothing when it has ended.
    pub fn terminate(&self) {
        self.hold.group.signal(libc::SIGTERM);
    }
}

/// The part of a child that ends it when dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) pid: i32,
    pub(crate) group: Arc<Group>,
    pub(crate) exit: watch::Receiver<Option<Exit>>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.group.signal(libc::SIGKILL);
    }
}

/// The process group of one child.
#[derive(Debug)]
pub(crate) struct Group {
    /// The leader, as long as it is not reaped and so the id cannot mean another process.
    id: Mutex<Option<i32>>,
    /// Whether the leader is a stem, which does what the signal asks for.
    stem: bool,
}

impl Group {
    pub(crate) fn new(started: Started) -> Group {
        Group { id: Mutex::new(Some(started.leader)), stem: started.leader != started.program }
    }

    pub(crate) fn has_stem(&self) -> bool {
        self.stem
    }

    pub(crate) fn signal(&self, signal: i32) {
        if let Some(id) = *self.id.lock().unwrap_or_else(PoisonError::into_inner) {
            match (self.stem, signal) {
                (false, _) => sys::signal_group(id, signal),
                (true, libc::SIGKILL) => sys::signal_process(id, stem::END),
                (true, _) => sys::signal_process(id, signal),
            }
        }
    }

    /// Forgets the id and, before anyone can look at it again, gives it back to the system.
    pub(crate) fn close<T>(&self, reap: impl FnOnce() -> T) -> T {
        let mut id = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        *id = None;
        reap()
    }
}

/// How a child ended. Exactly one of `code` and `signal` is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, when the child ended by itself.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// The limit in bytes, when it was killed for passing [`crate::Limits::memory`].
    pub out_of_memory: Option<u64>,
}

impl Exit {
    /// Reads a status from `waitpid`; `None` is a status that somebody else took.
    pub(crate) fn from_status(status: Option<i32>, out_of_memory: Option<u64>) -> Exit {
        let status = status.map(ExitStatus::from_raw);
        Exit {
            code: status.and_then(|status| status.code()),
            signal: status.map_or(Some(libc::SIGKILL), |status| status.signal()),
            out_of_memory,
        }
    }

    /// Whether the child ended by itself with code 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.out_of_memory, self.code, self.signal) {
            (Some(limit), _, _) => write!(f, "was killed for using more than {} MiB of memory", limit >> 20),
            (None, Some(code), _) => write!(f, "exited with code {code}"),
            (None, None, Some(signal)) => match signal_name(signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
            (None, None, None) => write!(f, "ended"),
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

//! The one thread that starts every child.

use crate::child::{Child, Exit};
use crate::spec::{Spec, Stdin};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

/// Starts children. Clones share one thread, which ends with the last clone and the last child.
///
/// The kernel ends a child when the *thread* that started it ends, so all are started by this one.
#[derive(Debug, Clone)]
pub struct Spawner {
    requests: mpsc::Sender<Request>,
    runtime: Handle,
}

/// Why there is no spawner.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It must be started from inside a tokio runtime, which then waits for the children.
    #[error("the spawner must be started inside a tokio runtime")]
    NoRuntime,
    /// The system gave no thread.
    #[error("no thread for starting children: {0}")]
    Thread(io::Error),
}

/// Why a child did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// No such file, or no such name in `PATH`.
    #[error("cannot start {}: there is no such program", program.display())]
    Missing {
        /// The program that was asked for.
        program: PathBuf,
    },
    /// The file is there and is not a program this user may run.
    #[error("cannot start {}: it is not an executable file", program.display())]
    NotExecutable {
        /// The program that was asked for.
        program: PathBuf,
    },
    /// The working directory is missing or is not a folder.
    #[error("cannot start {}: {} is not a folder it can work in", program.display(), cwd.display())]
    Cwd {
        /// The program that was asked for.
        program: PathBuf,
        /// The working directory that was asked for.
        cwd: PathBuf,
    },
    /// The system refused; the source says why.
    #[error("cannot start {}: {source}", program.display())]
    System {
        /// The program that was asked for.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The spawner's thread has ended.
    #[error("cannot start {}: the spawner has stopped", program.display())]
    Stopped {
        /// The program that was asked for.
        program: PathBuf,
    },
}

struct Request {
    spec: Spec,
    reply: oneshot::Sender<Result<Started, SpawnError>>,
}

struct Started {
    process: std::process::Child,
}

impl Spawner {
    /// Starts the thread. Must be called inside a tokio runtime.
    pub fn start() -> Result<Spawner, StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let (requests, inbox) = mpsc::channel::<Request>();
        std::thread::Builder::new()
            .name("spawner".to_owned())
            .spawn(move || {
                for Request { spec, reply } in inbox {
                    // A caller that gave up drops the reply, and with it the child.
                    let _ = reply.send(start(spec));
                }
            })
            .map_err(StartError::Thread)?;
        Ok(Spawner { requests, runtime })
    }

    /// Starts a child.
    pub async fn spawn(&self, spec: Spec) -> Result<Child, SpawnError> {
        let program = spec.program.clone();
        let stopped = |_| SpawnError::Stopped { program: program.clone() };
        let (reply, started) = oneshot::channel();
        self.requests.send(Request { spec, reply }).map_err(|_| SpawnError::Stopped { program: program.clone() })?;
        let Started { mut process } = started.await.map_err(stopped)??;
        let system = |source| SpawnError::System { program: program.clone(), source };
        let _guard = self.runtime.enter();
        let stdin = process.stdin.take().map(|p| pipe::Sender::from_owned_fd(p.into())).transpose().map_err(system)?;
        let stdout =
            process.stdout.take().map(|p| pipe::Receiver::from_owned_fd(p.into())).transpose().map_err(system)?;
        let stderr =
            process.stderr.take().map(|p| pipe::Receiver::from_owned_fd(p.into())).transpose().map_err(system)?;
        let pid = process.id();
        let group = Arc::new(Group { leader: Mutex::new(Some(pid as i32)) });
        let (report, exit) = watch::channel(None);
        let pidfd = pidfd(pid).map_err(system)?;
        let (requests, owned) = (self.requests.clone(), Arc::clone(&group));
        self.runtime.spawn(async move {
            let _keeps_the_thread = requests;
            if let Ok(fd) = watched(pidfd) {
                let _ = fd.readable().await;
            }
            let mut leader = owned.leader.lock().unwrap_or_else(PoisonError::into_inner);
            kill_group(pid as i32, libc::SIGKILL);
            let status = process.wait();
            *leader = None;
            let (code, signal) = status.map_or((None, Some(libc::SIGKILL)), |s| (s.code(), s.signal()));
            report.send_replace(Some(Exit { code, signal, out_of_memory: None }));
        });
        Ok(Child { stdin, stdout, stderr, pid, group, exit })
    }
}

/// The process group of one child.
#[derive(Debug)]
pub(crate) struct Group {
    /// The id, as long as the child is not reaped and so the id cannot mean another process.
    leader: Mutex<Option<i32>>,
}

impl Group {
    pub(crate) fn signal(&self, signal: i32) {
        if let Some(id) = *self.leader.lock().unwrap_or_else(PoisonError::into_inner) {
            kill_group(id, signal);
        }
    }
}

#[allow(unsafe_code)]
fn kill_group(id: i32, signal: i32) {
    // SAFETY: kill touches no memory of ours.
    unsafe { libc::kill(-id, signal) };
}

#[allow(unsafe_code)]
fn watched(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd stays open and the same for as long as the AsyncFd that owns it.
    unsafe { AsyncFd::register(pidfd) }.map_err(io::Error::from)
}

#[allow(unsafe_code)]
fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: pidfd_open touches no memory of ours, and the descriptor it returns is owned by nobody else.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as i32)) }
    }
}

#[allow(unsafe_code, clippy::disallowed_methods)]
fn start(spec: Spec) -> Result<Started, SpawnError> {
    let Spec { program, args, env, cwd, stdin, channel, .. } = spec;
    if !cwd.is_dir() {
        return Err(SpawnError::Cwd { program, cwd });
    }
    let mut command = Command::new(&program);
    command.args(args).env_clear().envs(env).current_dir(cwd);
    command.stdin(if stdin == Stdin::Piped { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let parent = std::process::id() as i32;
    // SAFETY: only async-signal-safe system calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != parent {
                libc::_exit(1);
            }
            libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as i32);
            if let Some(fd) = &channel {
                if fd.as_raw_fd() == 3 {
                    libc::fcntl(3, libc::F_SETFD, 0);
                } else {
                    libc::dup2(fd.as_raw_fd(), 3);
                }
            }
            Ok(())
        });
    }
    match command.spawn() {
        Ok(process) => Ok(Started { process }),
        Err(source) => Err(match source.kind() {
            io::ErrorKind::NotFound => SpawnError::Missing { program },
            io::ErrorKind::PermissionDenied => SpawnError::NotExecutable { program },
            _ => SpawnError::System { program, source },
        }),
    }
}

//! Starting children: judging the request, and handing it to the one thread that forks.

use crate::child::Child;
use crate::fork::{Plan, Step};
use crate::keeper::{Keeper, Request};
use crate::sandbox::Confinement;
use crate::spec::{Spec, Stdin};
use crate::sys;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Starts children. Clones share one thread, which ends with the last clone and the last child.
///
/// The kernel ends a child when the *thread* that started it ends, so all are started by this one.
#[derive(Debug, Clone)]
pub struct Spawner {
    keeper: mpsc::Sender<Request>,
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

/// Why a child did not start. Each says which program.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// No such file, or no such name in `PATH` of the child's environment.
    #[error("cannot start {}: there is no such program", program.display())]
    Missing {
        /// The program that was asked for.
        program: PathBuf,
    },
    /// The file is there and is not a program this user may run.
    #[error("cannot start {}: it is not a program this user may run", program.display())]
    NotExecutable {
        /// The program that was asked for.
        program: PathBuf,
    },
    /// The file is there; the interpreter or loader that it names is not.
    #[error("cannot start {}: the interpreter it names is missing", program.display())]
    NoInterpreter {
        /// The program that was asked for.
        program: PathBuf,
    },
    /// The working directory is missing, is not a folder or may not be entered.
    #[error("cannot start {}: {} is not a folder it can work in", program.display(), cwd.display())]
    Cwd {
        /// The program that was asked for.
        program: PathBuf,
        /// The working directory that was asked for.
        cwd: PathBuf,
    },
    /// Text that no process can be given.
    #[error("cannot start {}: {what}", program.display())]
    Malformed {
        /// The program that was asked for.
        program: PathBuf,
        /// What is wrong, and with which argument or variable. Never a variable's value.
        what: String,
    },
    /// The system refused one step of the start.
    #[error("cannot start {}: {step}: {source}", program.display())]
    System {
        /// The program that was asked for.
        program: PathBuf,
        /// What did not work.
        step: &'static str,
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

impl Spawner {
    /// Starts the thread. Must be called inside a tokio runtime with I/O and time enabled.
    pub fn start() -> Result<Spawner, StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let (keeper, inbox) = mpsc::channel();
        std::thread::Builder::new()
            .name("spawner".to_owned())
            .spawn(move || Keeper::new(runtime).run(&inbox))
            .map_err(StartError::Thread)?;
        Ok(Spawner { keeper })
    }

    /// Ends all children and what they started, and waits until they are gone. Starts none from then on, also not
    /// for a clone of this spawner.
    ///
    /// To be called before the program ends: what is left then is ended too, but a moment after the program.
    pub async fn shut_down(&self) {
        let (done, finished) = oneshot::channel();
        // A thread that is gone has ended everything before.
        if self.keeper.send(Request::ShutDown(done)).is_ok() {
            let _ = finished.await;
        }
    }

    /// Starts a child. It runs its program when this returns. Dropping the future ends the child.
    pub async fn spawn(&self, spec: Spec) -> Result<Child, SpawnError> {
        let (program, cwd) = (spec.program.clone(), spec.cwd.clone());
        let system = |step: Step, source| SpawnError::System {
            program: program.clone(),
            step: step.describe(),
            source,
        };
        let stopped = || SpawnError::Stopped { program: program.clone() };
        let (plan, pipes) = plan(spec)?;
        let (reply, started) = oneshot::channel();
        let request = Request::Start { plan: Box::new(plan), keeper: self.keeper.clone(), reply };
        self.keeper.send(request).map_err(|_| stopped())?;
        let hold = started.await.map_err(|_| stopped())?.map_err(|(step, source)| {
            let program = program.clone();
            match (step, source.raw_os_error()) {
                (Step::Folder, _) => SpawnError::Cwd { program, cwd },
                (Step::Exec, Some(libc::ENOENT)) => SpawnError::NoInterpreter { program },
                (Step::Exec, Some(libc::ENOEXEC)) => SpawnError::NotExecutable { program },
                _ => system(step, source),
            }
        })?;
        let reader = |end: io::PipeReader| pipe::Receiver::from_owned_fd(end.into());
        let writer = |end: io::PipeWriter| pipe::Sender::from_owned_fd(end.into());
        let failed = |source| system(Step::Descriptors, source);
        Ok(Child {
            stdin: pipes.stdin.map(writer).transpose().map_err(failed)?,
            stdout: Some(reader(pipes.stdout).map_err(failed)?),
            stderr: Some(reader(pipes.stderr).map_err(failed)?),
            hold,
        })
    }
}

/// This side's ends.
struct Pipes {
    stdin: Option<io::PipeWriter>,
    stdout: io::PipeReader,
    stderr: io::PipeReader,
}

fn plan(spec: Spec) -> Result<(Plan, Pipes), SpawnError> {
    let Spec { program, args, env, cwd, stdin, channel, sandbox, limits } = spec;
    if !cwd.is_dir() {
        return Err(SpawnError::Cwd { program, cwd });
    }
    let (path, file) = find(&program, env.get(OsStr::new("PATH")), &cwd)?;
    let malformed = |what: String| SpawnError::Malformed { program: program.clone(), what };
    let system = |step: Step| {
        let program = program.clone();
        move |source| SpawnError::System { program, step: step.describe(), source }
    };

    let mut argv =
        vec![text(program.as_os_str(), || "its name holds a zero byte".into()).map_err(malformed)?];
    for (index, arg) in args.iter().enumerate() {
        argv.push(text(arg, || format!("argument {} holds a zero byte", index + 1)).map_err(malformed)?);
    }
    let mut variables = Vec::with_capacity(env.len());
    for (name, value) in &env {
        let wrong = |what: &str| format!("environment variable {:?} {what}", name.to_string_lossy());
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return Err(malformed(wrong("has a name that is empty or holds `=`")));
        }
        let both = [name.as_bytes(), b"=", value.as_bytes()].concat();
        variables.push(text(OsStr::from_bytes(&both), || wrong("holds a zero byte")).map_err(malformed)?);
    }
    let folder =
        text(cwd.as_os_str(), || "its working directory holds a zero byte".into()).map_err(malformed)?;

    let confinement = sandbox.map(|sandbox| Confinement::new(&sandbox, &path)).transpose();
    let confinement = confinement.map_err(system(Step::Landlock))?;
    let (descriptors, pipes) = descriptors(stdin, channel).map_err(system(Step::Descriptors))?;
    // Only a filter on system calls keeps a child in its session.
    let stem = confinement.as_ref().is_none_or(|confinement| confinement.filters.is_empty());
    let plan = Plan {
        stem,
        program: file,
        args: argv,
        env: variables,
        cwd: folder,
        descriptors,
        limits,
        confinement,
        dies_with_parent: true,
    };
    Ok((plan, pipes))
}

fn text(value: &OsStr, wrong: impl FnOnce() -> String) -> Result<CString, String> {
    CString::new(value.as_bytes()).map_err(|_| wrong())
}

/// The child's descriptors from 0 on, and this side's ends of them.
fn descriptors(stdin: Stdin, channel: Option<OwnedFd>) -> io::Result<(Vec<OwnedFd>, Pipes)> {
    let (input, writer) = match stdin {
        Stdin::Null => (OwnedFd::from(File::open("/dev/null")?), None),
        Stdin::Piped => io::pipe().map(|(reader, writer)| (reader.into(), Some(writer)))?,
    };
    let (stdout, output) = io::pipe()?;
    let (stderr, errors) = io::pipe()?;
    let theirs = [input, output.into(), errors.into()].into_iter().chain(channel);
    let theirs = theirs.map(|fd| sys::move_up(fd.as_fd())).collect::<io::Result<Vec<_>>>()?;
    Ok((theirs, Pipes { stdin: writer, stdout, stderr }))
}

/// Finds the program's file as a shell would: a name with a slash is a path, any other is looked up.
fn find(program: &Path, search: Option<&OsString>, cwd: &Path) -> Result<(PathBuf, CString), SpawnError> {
    let folders: Vec<PathBuf> = match program.as_os_str().as_bytes().contains(&b'/') {
        true => vec![PathBuf::new()],
        false => search.map(|path| std::env::split_paths(path).collect()).unwrap_or_default(),
    };
    let mut seen = false;
    for folder in folders {
        let path = cwd.join(folder).join(program);
        if !path.is_file() {
            seen |= path.exists();
            continue;
        }
        seen = true;
        if let Ok(file) = CString::new(path.clone().into_os_string().into_vec())
            && sys::may_execute(&file)
        {
            return Ok((path, file));
        }
    }
    let program = program.to_owned();
    Err(if seen { SpawnError::NotExecutable { program } } else { SpawnError::Missing { program } })
}

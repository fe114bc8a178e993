//! The process that ends what is left of the children's sessions when this process is gone.
//!
//! A child itself dies with its parent by the kernel's hand; what it started does not. No code of ours runs at
//! a SIGKILL, so the sessions are told to a small shell, which acts when the pipe from here breaks. It is there for
//! children that cannot leave their session; the others have a stem.

use crate::fork::Plan;
use crate::spec::Limits;
use crate::sys;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};

/// Reads `+ <session>` and `- <session>`, and at the end of its input kills the sessions that are left, until it
/// finds no process of theirs. A process may have put anything into its name, lines and brackets too, so the
/// fields are counted from the last bracket on: state, parent, group, session.
const SCRIPT: &std::ffi::CStr = c"set -f
while read -r sign session; do
  rest=; for one in $all; do [ $one = $session ] || rest=\"$rest $one\"; done
  all=$rest; [ $sign = - ] || all=\"$all $session\"
done
[ -n \"$all\" ] || exit 0
strike() {
  found=
  set +f; set -- /proc/[0-9]*; set -f
  for folder; do
    line=; while read -r part; do line=\"$line $part\"; done <$folder/stat
    set -- ${line##*) }
    case \" $all \" in *\" $4 \"*)
      [ $1 = Z ] || [ $1 = X ] || { kill -9 ${folder#/proc/} && found=1; }
    esac
  done
  [ $found ]
}
for one in $all; do kill -9 -$one; done
round=0; while strike && [ $round -lt 1000 ]; do round=$((round + 1)); done";

/// A running warden. Dropping it ends the process, which by then has nothing to kill, and reaps it.
#[derive(Debug)]
pub(crate) struct Warden {
    pid: i32,
    /// Taken only when dropped.
    pipe: Option<PipeWriter>,
}

impl Warden {
    /// Starts the process for these sessions. `None` where there is no shell: children then still die, their descendants may not.
    pub(crate) fn start(sessions: impl Iterator<Item = i32>) -> Option<Warden> {
        let (plan, pipe) = plan().ok()?;
        let pid = plan.run().ok()?.leader;
        let mut warden = Warden { pid, pipe: Some(pipe) };
        sessions.map(|session| warden.add(session)).collect::<io::Result<Vec<_>>>().ok()?;
        Some(warden)
    }

    /// Tells of a new session.
    pub(crate) fn add(&mut self, session: i32) -> io::Result<()> {
        self.tell('+', session)
    }

    /// Tells that a session is no more, before its id can mean another one.
    pub(crate) fn remove(&mut self, session: i32) -> io::Result<()> {
        self.tell('-', session)
    }

    fn tell(&mut self, sign: char, session: i32) -> io::Result<()> {
        // One write of so few bytes is never cut in two.
        self.pipe.as_mut().map_or(Ok(()), |pipe| pipe.write_all(format!("{sign} {session}\n").as_bytes()))
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        drop(self.pipe.take());
        sys::reap(self.pid);
    }
}

fn plan() -> io::Result<(Plan, PipeWriter)> {
    let (reader, pipe) = io::pipe()?;
    let nowhere = || File::options().write(true).open("/dev/null").map(OwnedFd::from);
    let theirs = [OwnedFd::from(reader), nowhere()?, nowhere()?];
    let plan = Plan {
        program: c"/bin/sh".to_owned(),
        args: vec![c"beeuni-warden".to_owned(), c"-c".to_owned(), SCRIPT.to_owned()],
        env: Vec::new(),
        cwd: c"/".to_owned(),
        descriptors: theirs.iter().map(|fd| sys::move_up(fd.as_fd())).collect::<io::Result<_>>()?,
        limits: Limits { memory: u64::MAX, ..Limits::default() },
        confinement: None,
        dies_with_parent: false,
        stem: false,
    };
    Ok((plan, pipe))
}

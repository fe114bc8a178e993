//! The process that ends the children's descendants when this process is killed.
//!
//! A child itself dies with its parent by the kernel's hand; what it started does not. No code of ours runs at
//! a SIGKILL, so the groups are told to a small shell, which acts when the pipe from here breaks.

use crate::fork::Plan;
use crate::spec::Limits;
use crate::sys;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};

/// Reads `+ <group>` and `- <group>`, and at the end of its input kills the groups that are left.
const SCRIPT: &std::ffi::CStr = c"while read -r sign group; do
  rest=; for one in $all; do [ $one = $group ] || rest=\"$rest $one\"; done
  all=$rest; [ $sign = - ] || all=\"$all $group\"
done
for one in $all; do kill -9 -$one; done";

/// A running warden. Dropping it ends the process, which by then has nothing to kill, and reaps it.
#[derive(Debug)]
pub(crate) struct Warden {
    pid: i32,
    /// Taken only when dropped.
    pipe: Option<PipeWriter>,
}

impl Warden {
    /// Starts the process. `None` where there is no shell: children then still die, their descendants may not.
    pub(crate) fn start() -> Option<Warden> {
        let (plan, pipe) = plan().ok()?;
        let pid = plan.run().ok()?;
        Some(Warden { pid, pipe: Some(pipe) })
    }

    /// Tells of a new group.
    pub(crate) fn add(&mut self, group: i32) -> io::Result<()> {
        self.tell('+', group)
    }

    /// Tells that a group is no more, before its id can mean another one.
    pub(crate) fn remove(&mut self, group: i32) -> io::Result<()> {
        self.tell('-', group)
    }

    fn tell(&mut self, sign: char, group: i32) -> io::Result<()> {
        // One write of so few bytes is never cut in two.
        self.pipe.as_mut().map_or(Ok(()), |pipe| pipe.write_all(format!("{sign} {group}\n").as_bytes()))
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
    };
    Ok((plan, pipe))
}

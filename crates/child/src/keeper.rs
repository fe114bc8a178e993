//! The one thread that starts, watches and reaps every child.

use crate::child::{Exit, Group, Hold};
use crate::fork::{Plan, Step};
use crate::procfs::{self, Stat};
use crate::sys;
use crate::warden::Warden;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

/// How often memory is looked at while a child works, and while none does.
const BUSY: Duration = Duration::from_millis(50);
const QUIET: Duration = Duration::from_millis(200);
/// How often the machine's processes are searched for new descendants, after a child has worked and otherwise.
const SEARCH_BUSY: Duration = Duration::from_millis(200);
const SEARCH_QUIET: Duration = Duration::from_secs(5);
/// Most rounds of killing what a child left behind; each finds what was forked during the one before.
const SWEEPS: usize = 1000;

/// What the thread is asked to do.
#[derive(Debug)]
pub(crate) enum Request {
    /// Start a child.
    Start {
        plan: Box<Plan>,
        /// Kept until the child has ended, so that the thread lives as long.
        keeper: Sender<Request>,
        reply: oneshot::Sender<Result<Hold, (Step, io::Error)>>,
    },
    /// A child has ended and waits to be reaped.
    Ended(i32),
    /// End all children, answer, and start no more.
    ShutDown(oneshot::Sender<()>),
}

/// Tells the thread that a child has ended, also when the runtime drops the task that waits for it.
struct Tell {
    keeper: Sender<Request>,
    pid: i32,
}

impl Drop for Tell {
    fn drop(&mut self) {
        // Without a thread there is no child either.
        let _ = self.keeper.send(Request::Ended(self.pid));
    }
}

/// The thread's own state: it alone forks and reaps, so an id it holds always means the same process.
#[derive(Debug)]
pub(crate) struct Keeper {
    runtime: Handle,
    /// Started with the first child that has no stem.
    warden: Option<Warden>,
    /// Whether no more children are to be started.
    closed: bool,
    children: HashMap<i32, Running>,
    /// What ended children left behind and we may have adopted: processes, and groups as negative numbers.
    adopted: Vec<i32>,
    searched: Option<Instant>,
    /// Sum of [`Stat::work`] over all children at the last look.
    work: u64,
    /// Whether no child has worked between the last two looks.
    quiet: bool,
    /// Whether any child has worked, and so may have started a process, since the last search.
    unsearched: bool,
}

#[derive(Debug)]
struct Running {
    limit: u64,
    /// The child and the descendants seen so far.
    processes: Vec<Stat>,
    group: Arc<Group>,
    exit: watch::Sender<Option<Exit>>,
    out_of_memory: bool,
}

impl Keeper {
    pub(crate) fn new(runtime: Handle) -> Keeper {
        let (children, adopted) = (HashMap::new(), Vec::new());
        Keeper {
            runtime,
            warden: None,
            closed: false,
            children,
            adopted,
            searched: None,
            work: 0,
            quiet: false,
            unsearched: false,
        }
    }

    /// Works until the last sender is gone, then ends what is left.
    pub(crate) fn run(mut self, inbox: &Receiver<Request>) {
        loop {
            let request = match self.pause() {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(pause) => inbox.recv_timeout(pause),
            };
            match request {
                // The caller learns of it by the answer that never comes.
                Ok(Request::Start { .. }) if self.closed => {}
                Ok(Request::Start { plan, keeper, reply }) => {
                    // A caller that gave up meanwhile drops what is sent, and that kills the child.
                    let _ = reply.send(self.start(&plan, keeper));
                }
                Ok(Request::Ended(pid)) => self.end(pid),
                Ok(Request::ShutDown(done)) => {
                    self.closed = true;
                    self.end_all();
                    // A caller that no longer waits has what it asked for all the same.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.end_all();
    }

    fn end_all(&mut self) {
        // All are told first, so that they end side by side.
        self.children.values().for_each(|running| running.group.signal(libc::SIGKILL));
        for pid in self.children.keys().copied().collect::<Vec<_>>() {
            self.end(pid);
        }
        // Dropping it waits for its end.
        self.warden = None;
    }

    fn pause(&self) -> Option<Duration> {
        let watching = self.children.values().any(Running::is_watched);
        match watching || !self.adopted.is_empty() {
            false => None,
            true => Some(if self.quiet { QUIET } else { BUSY }),
        }
    }

    fn start(&mut self, plan: &Plan, keeper: Sender<Request>) -> Result<Hold, (Step, io::Error)> {
        let started = plan.run()?;
        let leader = started.leader;
        // The id is new, so nothing old has it any more.
        self.adopted.retain(|target| target.abs() != leader);
        (self.quiet, self.unsearched) = (false, true);
        let group = Arc::new(Group::new(started));
        let (report, exit) = watch::channel(None);
        let running = Running {
            limit: plan.limits.memory,
            processes: Stat::read(started.program).into_iter().collect(),
            group: Arc::clone(&group),
            exit: report,
            out_of_memory: false,
        };
        self.children.insert(leader, running);
        if !plan.stem {
            self.tell_warden(leader);
        }
        let tell = Tell { keeper, pid: leader };
        self.runtime.spawn(async move {
            until_ended(leader).await;
            drop(tell);
        });
        Ok(Hold { pid: started.program, group, exit })
    }

    fn tell_warden(&mut self, session: i32) {
        if self.warden.as_mut().is_none_or(|warden| warden.add(session).is_err()) {
            // It may be the second one, after something killed the first: it has to know of them all.
            let stemless = self.children.iter().filter(|(_, running)| !running.group.has_stem());
            self.warden = Warden::start(stemless.map(|(&leader, _)| leader));
        }
    }

    /// Ends all that a child left behind, and reaps it. The child itself is killed if it still runs.
    fn end(&mut self, pid: i32) {
        let Some(running) = self.children.remove(&pid) else { return };
        running.group.signal(libc::SIGKILL);
        let strays = sweep(pid, &running.processes);
        self.warden.take_if(|warden| warden.remove(pid).is_err());
        let status = running.group.close(|| sys::reap(pid));
        self.adopted.extend(strays.into_iter().chain([-pid]).filter(|&target| !sys::reap_adopted(target)));
        let limit = running.out_of_memory.then_some(running.limit);
        running.exit.send_replace(Some(Exit::from_status(status, limit)));
    }

    /// Reads the memory of every child and kills those over their limit.
    fn look(&mut self) {
        self.adopted.retain(|&target| !sys::reap_adopted(target));
        let mut work = 0;
        for running in self.children.values_mut().filter(|running| running.is_watched()) {
            running.refresh();
            work += running.processes.iter().map(|process| process.work).sum::<u64>();
        }
        self.quiet = work == self.work;
        self.work = work;
        self.unsearched |= !self.quiet;
        let every = if self.unsearched { SEARCH_BUSY } else { SEARCH_QUIET };
        if self.searched.is_none_or(|at| at.elapsed() >= every) {
            let all = procfs::all();
            for (&pid, running) in &mut self.children {
                running.discover(pid, &all);
            }
            self.searched = Some(Instant::now());
            self.unsearched = false;
        }
        for running in self.children.values_mut().filter(|running| running.is_watched()) {
            if running.memory() > running.limit {
                running.out_of_memory = true;
                running.group.signal(libc::SIGKILL);
            }
        }
    }
}

/// Waits until a child is a zombie. It stays one until the thread reaps it.
async fn until_ended(pid: i32) {
    if let Ok(process) = sys::pidfd(pid).and_then(sys::watched)
        && process.readable().await.is_ok()
    {
        return;
    }
    // A kernel before 5.3 has to be asked.
    while !sys::has_ended(pid) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Running {
    fn is_watched(&self) -> bool {
        self.limit != u64::MAX && !self.out_of_memory
    }

    fn refresh(&mut self) {
        let now = |known: &Stat| Stat::read(known.pid).filter(|found| found.is_same(known));
        self.processes = self.processes.iter().filter_map(now).collect();
    }

    /// Adds the processes that are in the child's session or descend from its leader or a known one. A stem is
    /// not among them.
    fn discover(&mut self, leader: i32, all: &[Stat]) {
        loop {
            let known = self.processes.len();
            for found in all {
                let of_ours = |known: &Stat| known.pid == found.parent;
                if !self.processes.iter().any(|process| process.pid == found.pid)
                    && found.pid != leader
                    && (found.session == leader
                        || found.parent == leader
                        || self.processes.iter().any(of_ours))
                {
                    self.processes.push(*found);
                }
            }
            if self.processes.len() == known {
                return;
            }
        }
    }

    /// Bytes in use. Pages shared between processes are counted once for each, unless that would pass the
    /// limit: only then is the slow and exact number worth its price.
    fn memory(&self) -> u64 {
        let page = sys::page_size();
        let resident = |process: &Stat| process.pages.saturating_mul(page);
        let rough: u64 = self.processes.iter().map(resident).sum();
        if rough <= self.limit {
            return rough;
        }
        let exact =
            |process: &Stat| procfs::proportional_memory(process.pid).unwrap_or_else(|| resident(process));
        self.processes.iter().map(exact).sum()
    }
}

/// Kills every process of a session but its leader, which is about to be reaped and so still holds the id, and
/// the known descendants that have left it. Returns whom it killed.
fn sweep(leader: i32, known: &[Stat]) -> Vec<i32> {
    let mut killed = Vec::new();
    let mut targets: Vec<Stat> = known.to_vec();
    for _ in 0..SWEEPS {
        targets.extend(procfs::in_session(leader));
        // One that was killed and is still there can start nothing any more.
        targets.retain(|process| process.pid != leader && !killed.contains(&process.pid));
        if targets.is_empty() {
            break;
        }
        for target in targets.drain(..) {
            // The descriptor is taken before the second look, so the signal cannot reach a newcomer.
            if let Ok(process) = sys::pidfd(target.pid)
                && Stat::read(target.pid).is_some_and(|found| found.is_same(&target))
            {
                sys::kill_by_pidfd(&process);
                killed.push(target.pid);
            }
        }
    }
    killed.sort_unstable();
    killed.dedup();
    killed
}

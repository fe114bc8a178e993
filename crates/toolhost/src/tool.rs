//! One tool: which process serves it, how many calls wait, and what happens after a crash.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use beeuni_protocol::host::{CallMeta, Load, LoadFailed, Loaded};
use tokio::runtime::Handle;
use tokio::sync::oneshot::Receiver;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::call::{Call, CallFailure};
use crate::config::{IDLE, ModuleSpec};
use crate::load::order;
use crate::process::{Answer, End, NotSent, Process};
use crate::start::{Launcher, Started};

/// Calls of one tool that run at once, and that wait for one of those to end.
const RUNNING: usize = 64;
const WAITING: usize = 256;
/// How long a stopped call may take to see its signal.
const GRACE: Duration = Duration::from_millis(250);
/// While a stopped call is in a process, a new call goes there only if it shows life within this.
const PROMPT: Duration = Duration::from_millis(5);
/// A process that kept other calls past a grace is asked so often, and must answer within this.
const PING_EVERY: Duration = Duration::from_secs(1);
const PING_ANSWER: Duration = Duration::from_secs(2);
/// The wait before the start after the first, second, … crash within [`MEMORY`].
const BACKOFF: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(5)];
/// After so many crashes within [`MEMORY`] a tool is quarantined.
const CRASHES: usize = 5;
const MEMORY: Duration = Duration::from_secs(60);

/// A loaded tool.
pub(crate) struct Tool {
    pub(crate) spec: ModuleSpec,
    pub(crate) order: Load,
    launcher: Arc<Launcher>,
    slot: Mutex<Slot>,
    /// Held by the one call that starts the process.
    starting: tokio::sync::Mutex<()>,
    running: Semaphore,
    waiting: AtomicUsize,
}

struct Slot {
    serving: Option<Serving>,
    /// What the process said when it was started last.
    loaded: Arc<Loaded>,
    last_used: Instant,
    crashes: VecDeque<Instant>,
    last_crash: String,
    quarantined: bool,
}

struct Serving {
    process: Arc<Process>,
    _awake: Arc<()>,
}

/// How a tool is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Ready,
    Asleep,
    Quarantined(String),
}

impl Tool {
    /// Starts the first process of a tool.
    pub(crate) async fn load(
        spec: ModuleSpec,
        order: Load,
        launcher: Arc<Launcher>,
    ) -> Result<Arc<Tool>, LoadFailed> {
        let started = launcher.launch(&order, &spec.limits).await?;
        let slot = Slot {
            serving: None,
            loaded: Arc::new(started.loaded.clone()),
            last_used: Instant::now(),
            crashes: VecDeque::new(),
            last_crash: String::new(),
            quarantined: false,
        };
        let tool = Arc::new(Tool {
            spec,
            order,
            launcher,
            slot: Mutex::new(slot),
            starting: tokio::sync::Mutex::default(),
            running: Semaphore::new(RUNNING),
            waiting: AtomicUsize::new(0),
        });
        tool.adopt(started);
        Ok(tool)
    }

    pub(crate) fn loaded(&self) -> Arc<Loaded> {
        self.slot().loaded.clone()
    }

    pub(crate) fn condition(&self) -> Condition {
        let slot = self.slot();
        if slot.quarantined {
            Condition::Quarantined(slot.last_crash.clone())
        } else if slot.serving.as_ref().is_some_and(|serving| serving.process.end().is_none()) {
            Condition::Ready
        } else {
            Condition::Asleep
        }
    }

    /// Runs one call to its end. Dropping the future stops the call.
    pub(crate) async fn call(self: Arc<Self>, call: Call) -> Result<String, CallFailure> {
        let name = || self.spec.name.clone();
        let cancel = call.cancel.clone();
        if cancel.is_cancelled() {
            return Err(CallFailure::Aborted);
        }
        let limit = self.spec.limits.call_time;
        let out_of_time = async {
            match limit {
                Some(limit) => {
                    sleep(limit).await;
                    CallFailure::TimedOut { tool: name(), limit }
                }
                None => std::future::pending().await,
            }
        };
        let run = async {
            let _permit = self.permit().await?;
            let (mut sent, answer) = self.send(call).await?;
            let answer = answer.await;
            sent.answered = true;
            match answer {
                Ok(Answer::Result(text)) => Ok(text),
                Ok(Answer::Error(text)) => Err(CallFailure::Tool(text)),
                Ok(Answer::Ended(End::Crashed(how))) => Err(CallFailure::Crashed { tool: name(), how }),
                Ok(Answer::Ended(End::OutOfMemory(limit))) => {
                    Err(CallFailure::OutOfMemory { tool: name(), limit })
                }
                Ok(Answer::Ended(End::Protocol(what))) => Err(CallFailure::Protocol { tool: name(), what }),
                Ok(Answer::Ended(End::Unresponsive | End::Stopped)) | Err(_) => {
                    Err(CallFailure::Unresponsive(name()))
                }
            }
        };
        // An answer that is there counts, even when the stop comes at the same moment.
        tokio::select! {
            biased;
            outcome = run => outcome,
            () = cancel.cancelled() => Err(CallFailure::Aborted),
            late = out_of_time => Err(late),
        }
    }

    async fn permit(&self) -> Result<SemaphorePermit<'_>, CallFailure> {
        if let Ok(permit) = self.running.try_acquire() {
            return Ok(permit);
        }
        let overloaded = || CallFailure::Overloaded(self.spec.name.clone());
        let place = Place::take(&self.waiting).ok_or_else(overloaded)?;
        let permit = self.running.acquire().await.map_err(|_| overloaded())?;
        drop(place);
        Ok(permit)
    }

    /// Sends the call to the process, which is started when there is none. What was sent once is not sent again.
    async fn send(self: &Arc<Self>, call: Call) -> Result<(Sent, Receiver<Answer>), CallFailure> {
        let meta =
            CallMeta { session_id: call.session, agent: call.agent, directory: call.directory, env: 0 };
        loop {
            if let Some(process) = self.current() {
                // A call must not be lost to a loop that somebody just stopped and that is not yet ended.
                if process.is_doubtful() && !matches!(timeout(PROMPT, process.ping()).await, Ok(Ok(()))) {
                    self.retire(&process);
                    continue;
                }
                match process.begin(meta.clone(), &call.env, &call.arguments) {
                    Ok((id, answer)) => {
                        let sent = Sent {
                            tool: self.clone(),
                            process,
                            id,
                            answered: false,
                            runtime: Handle::current(),
                        };
                        return Ok((sent, answer));
                    }
                    Err(NotSent::TooLong) => return Err(CallFailure::TooLong(self.spec.name.clone())),
                    Err(NotSent::Ended) => {}
                }
            }
            self.start().await?;
        }
    }

    fn current(&self) -> Option<Arc<Process>> {
        let mut slot = self.slot();
        slot.last_used = Instant::now();
        slot.serving.as_ref().map(|serving| serving.process.clone())
    }

    /// Starts the process unless another call just did. Waits as long as the crashes before ask for.
    async fn start(self: &Arc<Self>) -> Result<(), CallFailure> {
        let _starting = self.starting.lock().await;
        let wake = {
            let mut slot = self.slot();
            if slot.serving.as_ref().is_some_and(|serving| serving.process.end().is_none()) {
                return Ok(());
            }
            if slot.quarantined {
                let (tool, last) = (self.spec.name.clone(), slot.last_crash.clone());
                return Err(CallFailure::Quarantined { tool, crashes: CRASHES, last });
            }
            slot.forget_old_crashes();
            let wait = slot.crashes.len().checked_sub(1).map(|index| BACKOFF[index.min(BACKOFF.len() - 1)]);
            slot.crashes.back().zip(wait).map(|(last, wait)| *last + wait)
        };
        if let Some(wake) = wake {
            sleep_until(wake).await;
        }
        // A module that is gone is told in the words of a load; Bun's own would name files of this machine.
        let (spec, root) = (self.spec.clone(), PathBuf::from(&self.order.root));
        let state = self.launcher.config.state.clone();
        let judged = spawn_blocking(move || order(&spec, &root, &state)).await;
        let launched = match judged.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(order) => self.launcher.launch(&order, &self.spec.limits).await,
            Err(reason) => Err(self.launcher.failed(reason)),
        };
        match launched {
            Ok(started) => {
                self.slot().loaded = Arc::new(started.loaded.clone());
                self.adopt(started);
                self.launcher.refill(PathBuf::from(&self.order.root));
                Ok(())
            }
            Err(failed) => {
                self.crashed(&failed.message);
                let (tool, reason) = (self.spec.name.clone(), failed.message);
                Err(CallFailure::NotStarted { tool, reason })
            }
        }
    }

    fn adopt(self: &Arc<Self>, started: Started) {
        let Started { process, awake, .. } = started;
        let tool = Arc::downgrade(self);
        process.on_end(Box::new(move |end| {
            if let (Some(tool), Some(fault)) = (tool.upgrade(), end.fault()) {
                tool.crashed(&fault);
            }
        }));
        tokio::spawn(put_to_sleep(Arc::downgrade(self), Arc::downgrade(&process)));
        let mut slot = self.slot();
        slot.last_used = Instant::now();
        slot.serving = Some(Serving { process, _awake: awake });
    }

    fn crashed(&self, how: &str) {
        let mut slot = self.slot();
        slot.forget_old_crashes();
        slot.crashes.push_back(Instant::now());
        slot.last_crash = how.to_owned();
        if slot.crashes.len() >= CRASHES && !slot.quarantined {
            slot.quarantined = true;
            let name = &self.spec.name;
            self.launcher
                .log
                .warn(&format!("[tools] {name} is switched off after {CRASHES} crashes in a minute"));
        }
    }

    /// New calls go to another process from now on.
    fn retire(&self, process: &Arc<Process>) {
        let mut slot = self.slot();
        if slot.serving.as_ref().is_some_and(|serving| Arc::ptr_eq(&serving.process, process)) {
            slot.serving = None;
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn forget_old_crashes(&mut self) {
        let now = Instant::now();
        self.crashes.retain(|crash| now.duration_since(*crash) < MEMORY);
    }
}

/// A place in the queue.
struct Place<'a>(&'a AtomicUsize);

impl Place<'_> {
    fn take(waiting: &AtomicUsize) -> Option<Place<'_>> {
        let place = Place(waiting);
        // Counted first, so that two callers cannot both take the last place.
        (waiting.fetch_add(1, Ordering::Relaxed) < WAITING).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call that is in a process. Dropped without an answer, it stops the call.
struct Sent {
    tool: Arc<Tool>,
    process: Arc<Process>,
    id: u32,
    answered: bool,
    runtime: Handle,
}

impl Drop for Sent {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        self.process.abandon(self.id);
        let (tool, process, id) = (self.tool.clone(), self.process.clone(), self.id);
        self.runtime.spawn(async move { after_stop(&tool, process, id).await });
    }
}

/// Sees a stopped call out: it ends by itself, or its process does.
async fn after_stop(tool: &Tool, process: Arc<Process>, id: u32) {
    let grace = Instant::now() + GRACE;
    sleep_until(grace).await;
    if !process.is_open(id) {
        return;
    }
    tool.retire(&process);
    if process.end_if_unwanted() {
        return;
    }
    // From here on only the other calls hold the process: it ends with the last of them.
    let process = {
        let weak = Arc::downgrade(&process);
        drop(process);
        weak
    };
    loop {
        let Some(pong) = process.upgrade().map(|process| process.ping()) else { return };
        if timeout(PING_ANSWER, pong).await.is_err() {
            if let Some(process) = process.upgrade() {
                process.end_unresponsive();
            }
            return;
        }
        sleep(PING_EVERY).await;
    }
}

/// Ends a process that had no call for as long as its limits say.
async fn put_to_sleep(tool: Weak<Tool>, process: Weak<Process>) {
    loop {
        let wake = {
            let (Some(tool), Some(process)) = (tool.upgrade(), process.upgrade()) else { return };
            let mut slot = tool.slot();
            let idle = tool.spec.limits.idle.unwrap_or(IDLE);
            let wake = slot.last_used + idle;
            if Instant::now() < wake {
                wake
            } else if !process.is_idle() {
                Instant::now() + idle
            } else {
                let ours = |serving: &Serving| Arc::ptr_eq(&serving.process, &process);
                let serving =
                    if slot.serving.as_ref().is_some_and(ours) { slot.serving.take() } else { None };
                drop(slot);
                drop(serving);
                tool.launcher.rest();
                return;
            }
        };
        sleep_until(wake).await;
    }
}

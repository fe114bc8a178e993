//! One Bun process: frames out, frames in, and how it ends.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use beeuni_child::{Child, Exit};
use beeuni_protocol::frame::{Decoder, Frame};
use beeuni_protocol::host::{CallMeta, Env, Kind, Load, LoadFailed, Loaded, call_head};
use bytes::BufMut as _;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::log::{CleanLog, Tail, pump};
use crate::outbox::Outbox;

/// A frame that does not grow for so long has been cut off.
const STALLED: Duration = Duration::from_secs(5);
/// While more calls are open, those that begin at the same time go out in one write.
const MANY: usize = 4;
/// How long a process may live on after it closed its channel, and what it printed after it ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The process keeps so many environments (`ENVS` in host.ts).
const ENVS: usize = 16;

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself: words such as `exited with code 7`.
    Crashed(String),
    /// Killed for its memory; the limit in bytes.
    OutOfMemory(u64),
    /// Killed because it broke a rule of the channel.
    Protocol(String),
    /// Ended by us because it no longer turned.
    Unresponsive,
    /// Ended by us because nobody needs it.
    Stopped,
}

impl End {
    /// Words for the log and for a load's reason; `None` when it is no fault of the module.
    pub(crate) fn fault(&self) -> Option<String> {
        match self {
            End::Crashed(how) => Some(how.clone()),
            End::OutOfMemory(limit) => {
                Some(format!("was killed for using more than {} MiB of memory", limit >> 20))
            }
            End::Protocol(what) => Some(format!("was ended: {what}")),
            End::Unresponsive | End::Stopped => None,
        }
    }
}

/// What a call gets.
#[derive(Debug)]
pub(crate) enum Answer {
    Result(String),
    Error(String),
    Ended(End),
}

/// Why a call was not sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    Ended,
    TooLong,
}

type OnEnd = Box<dyn FnOnce(&End) + Send>;
pub(crate) type LoadOutcome = Result<Loaded, LoadFailed>;

/// A handle on a process. Dropping the last one ends the process, which is how an old one drains: the calls in it
/// hold it.
pub(crate) struct Process {
    channel: Arc<Channel>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.channel.stop.cancel();
    }
}

/// What the handle, the supervising task and the log pumps share.
struct Channel {
    stream: UnixStream,
    state: Mutex<State>,
    /// Wakes the supervisor when bytes are left to write.
    unsent: Notify,
    stop: CancellationToken,
    name: OnceLock<String>,
    log: CleanLog,
}

#[derive(Default)]
struct State {
    outbox: Outbox,
    last_id: u32,
    /// `None` is a call that nobody waits for any more.
    calls: HashMap<u32, Option<oneshot::Sender<Answer>>>,
    /// How many of `calls` are `None`.
    stopped: usize,
    pings: HashMap<u32, oneshot::Sender<()>>,
    envs: Vec<(Arc<BTreeMap<String, String>>, u32)>,
    last_env: u32,
    ready: Option<oneshot::Sender<()>>,
    load: Option<oneshot::Sender<LoadOutcome>>,
    on_end: Option<OnEnd>,
    unresponsive: bool,
    /// It was asked to end: no call may be sent any more.
    closing: bool,
    end: Option<End>,
}

impl Process {
    /// Takes over a child whose descriptor 3 is the other end of `stream`. The receiver fires when Bun is up.
    pub(crate) fn new(child: Child, stream: UnixStream, log: CleanLog) -> (Process, oneshot::Receiver<()>) {
        let (ready, is_ready) = oneshot::channel();
        let state = State { ready: Some(ready), ..State::default() };
        let channel = Arc::new(Channel {
            stream,
            state: Mutex::new(state),
            unsent: Notify::new(),
            stop: CancellationToken::new(),
            name: OnceLock::new(),
            log,
        });
        tokio::spawn(channel.clone().supervise(child));
        (Process { channel }, is_ready)
    }

    /// Has it import a module. Once per process.
    pub(crate) fn load(&self, order: &Load) -> oneshot::Receiver<LoadOutcome> {
        let (sender, receiver) = oneshot::channel();
        let _ = self.channel.name.set(order.name.clone());
        let mut state = self.channel.state();
        if state.end.is_none()
            && let Ok(payload) = serde_json::to_vec(order)
        {
            state.load = Some(sender);
            let _ = state.outbox.push(Kind::Load, 0, &[&payload]);
            self.channel.flush(&mut state);
        }
        receiver
    }

    /// Sends a call. The receiver gets exactly one answer.
    pub(crate) fn begin(
        &self,
        mut meta: CallMeta,
        env: &Arc<BTreeMap<String, String>>,
        arguments: &[u8],
    ) -> Result<(u32, oneshot::Receiver<Answer>), NotSent> {
        let mut state = self.channel.state();
        if state.closing || state.end.is_some() {
            return Err(NotSent::Ended);
        }
        meta.env = state.env(env)?;
        let head = call_head(&meta).map_err(|_| NotSent::TooLong)?;
        let id = state.next_id();
        state.outbox.push(Kind::Call, id, &[&head, arguments]).map_err(|_| NotSent::TooLong)?;
        let (sender, receiver) = oneshot::channel();
        state.calls.insert(id, Some(sender));
        if state.calls.len() > MANY {
            self.channel.unsent.notify_one();
        } else {
            self.channel.flush(&mut state);
        }
        Ok((id, receiver))
    }

    /// Fires a call's signal; its answer is no longer wanted.
    pub(crate) fn abandon(&self, id: u32) {
        let mut state = self.channel.state();
        if let Some(answer) = state.calls.get_mut(&id) {
            *answer = None;
            state.stopped += 1;
            let _ = state.outbox.push(Kind::Abort, id, &[]);
            self.channel.flush(&mut state);
        }
    }

    /// Whether a call has not been answered by the process.
    pub(crate) fn is_open(&self, id: u32) -> bool {
        self.channel.state().calls.contains_key(&id)
    }

    /// Ends it when nobody waits for any call in it; takes no call from then on.
    pub(crate) fn end_if_unwanted(&self) -> bool {
        let mut state = self.channel.state();
        if state.calls.values().any(Option::is_some) {
            return false;
        }
        state.closing = true;
        self.channel.stop.cancel();
        true
    }

    /// Whether a stopped call is still in it, so that it may no longer turn.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.channel.state().stopped > 0
    }

    /// Whether no call is in it at all.
    pub(crate) fn is_idle(&self) -> bool {
        self.channel.state().calls.is_empty()
    }

    /// Asks for a sign of life; the receiver fails when the process ends.
    pub(crate) fn ping(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.channel.state();
        if state.end.is_none() {
            let id = state.next_id();
            state.pings.insert(id, sender);
            let _ = state.outbox.push(Kind::Ping, id, &[]);
            self.channel.flush(&mut state);
        }
        receiver
    }

    /// Ends a process that no longer turns; its calls are told so.
    pub(crate) fn end_unresponsive(&self) {
        let mut state = self.channel.state();
        (state.unresponsive, state.closing) = (true, true);
        self.channel.stop.cancel();
    }

    /// How it ended, if it has.
    pub(crate) fn end(&self) -> Option<End> {
        self.channel.state().end.clone()
    }

    /// Runs when the process ends, before its calls are answered; at once when it has ended.
    pub(crate) fn on_end(&self, act: OnEnd) {
        let mut state = self.channel.state();
        match state.end.clone() {
            None => state.on_end = Some(act),
            Some(end) => {
                drop(state);
                act(&end);
            }
        }
    }
}

impl State {
    fn next_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if !self.calls.contains_key(&self.last_id) && !self.pings.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    /// The number by which the process knows an environment; sends it when it does not.
    fn env(&mut self, env: &Arc<BTreeMap<String, String>>) -> Result<u32, NotSent> {
        let known = |(known, _): &&(Arc<_>, u32)| Arc::ptr_eq(known, env) || known == env;
        if let Some((_, number)) = self.envs.iter().find(known) {
            return Ok(*number);
        }
        let number = self.last_env.wrapping_add(1);
        let payload =
            serde_json::to_vec(&Env { number, vars: (**env).clone() }).map_err(|_| NotSent::TooLong)?;
        self.outbox.push(Kind::Env, 0, &[&payload]).map_err(|_| NotSent::TooLong)?;
        self.last_env = number;
        // The process overwrites the oldest, so the same one is forgotten here.
        if self.envs.len() == ENVS {
            self.envs.remove(0);
        }
        self.envs.push((env.clone(), number));
        Ok(number)
    }
}

impl Channel {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush(&self, state: &mut State) {
        if state.outbox.flush(&self.stream) {
            self.unsent.notify_one();
        }
    }

    fn tool_name(&self) -> String {
        self.name.get().cloned().unwrap_or_else(|| "(spare)".to_owned())
    }

    async fn supervise(self: Arc<Self>, mut child: Child) {
        let tail = Arc::new(Tail::default());
        let mut pumps = tokio::task::JoinSet::new();
        if let Some(stdout) = child.stdout.take() {
            let name = self.clone();
            pumps.spawn(pump(stdout, move || name.tool_name(), self.log.clone(), None));
        }
        if let Some(stderr) = child.stderr.take() {
            let name = self.clone();
            pumps.spawn(pump(stderr, move || name.tool_name(), self.log.clone(), Some(tail.clone())));
        }
        let end = self.watch(&child).await;
        self.finish(&end);
        let printed = async { while pumps.join_next().await.is_some() {} };
        // A stray that left the group may hold the pipes open for ever.
        let _ = timeout(LAST_WORDS, printed).await;
        pumps.abort_all();
        // A spare has no module yet: what keeps it from starting keeps a load from it too, and is told there.
        if let (Some(fault), Some(name)) = (end.fault(), self.name.get()) {
            let tail = tail.text();
            let tail = if tail.is_empty() { tail } else { format!("; the end of its stderr:\n{tail}") };
            self.log.warn(&format!("[tools] {name} {fault}{tail}"));
        }
    }

    async fn watch(&self, child: &Child) -> End {
        let mut reader = Reader::default();
        let seen = tokio::select! {
            fault = reader.run(self) => Some(fault),
            _ = child.wait() => None,
            () = self.stop.cancelled() => None,
        };
        // Asked after the wait: where it ends and is not needed any more at the same time, its end is no crash.
        if self.stop.is_cancelled() {
            child.kill();
            child.wait().await;
            return if self.state().unresponsive { End::Unresponsive } else { End::Stopped };
        }
        match seen {
            Some(Fault::Broken(what)) => {
                child.kill();
                let exit = child.wait().await;
                exit.out_of_memory.map_or(End::Protocol(what), End::OutOfMemory)
            }
            Some(Fault::Closed) => match timeout(LAST_WORDS, child.wait()).await {
                Ok(exit) => ended(&exit),
                Err(_) => {
                    child.kill();
                    child.wait().await;
                    End::Protocol("it closed its channel to the host".to_owned())
                }
            },
            // What was answered before the end is an answer.
            None => {
                let _ = reader.read(self);
                ended(&child.wait().await)
            }
        }
    }

    fn finish(&self, end: &End) {
        let (calls, act) = {
            let mut state = self.state();
            state.end = Some(end.clone());
            state.pings.clear();
            state.ready = None;
            state.load = None;
            (std::mem::take(&mut state.calls), state.on_end.take())
        };
        if let Some(act) = act {
            act(end);
        }
        for answer in calls.into_values().flatten() {
            let _ = answer.send(Answer::Ended(end.clone()));
        }
    }

    /// Acts on one frame.
    fn take(&self, frame: Frame) -> Result<(), Fault> {
        let broken = |what: &str| Fault::Broken(format!("it wrote {what} to its channel to the host"));
        let Some(kind) = Kind::from_byte(frame.kind) else {
            return Err(broken("a frame of an unknown kind"));
        };
        let mut state = self.state();
        match kind {
            Kind::Result | Kind::Error => {
                let Some(answer) = state.calls.remove(&frame.id) else {
                    return Err(broken("an answer to no call"));
                };
                state.stopped -= usize::from(answer.is_none());
                drop(state);
                let text = String::from_utf8(frame.payload).map_err(|_| broken("text that is not UTF-8"))?;
                if let Some(answer) = answer {
                    let text = if kind == Kind::Result { Answer::Result(text) } else { Answer::Error(text) };
                    let _ = answer.send(text);
                }
            }
            Kind::Pong => match state.pings.remove(&frame.id) {
                Some(ping) => drop(ping.send(())),
                None => return Err(broken("an answer to no ping")),
            },
            Kind::Ready => match state.ready.take() {
                Some(ready) => drop(ready.send(())),
                None => return Err(broken("a second greeting")),
            },
            Kind::Loaded | Kind::LoadFailed => {
                let Some(load) = state.load.take() else { return Err(broken("an answer to no load")) };
                drop(state);
                let wrong = |_| broken("a malformed answer to its load");
                let outcome = if kind == Kind::Loaded {
                    Ok(serde_json::from_slice(&frame.payload).map_err(wrong)?)
                } else {
                    Err(serde_json::from_slice(&frame.payload).map_err(wrong)?)
                };
                let _ = load.send(outcome);
            }
            Kind::Background => {
                drop(state);
                let text = String::from_utf8_lossy(&frame.payload);
                self.log.warn(&format!("[tools] {}: outside any call: {text}", self.tool_name()));
            }
            Kind::Load | Kind::Call | Kind::Env | Kind::Abort | Kind::Ping => {
                return Err(broken("a frame of the wrong direction"));
            }
        }
        Ok(())
    }
}

fn ended(exit: &Exit) -> End {
    exit.out_of_memory.map_or_else(|| End::Crashed(exit.to_string()), End::OutOfMemory)
}

/// Why reading stopped.
enum Fault {
    Closed,
    Broken(String),
}

struct Reader {
    decoder: Decoder,
    chunk: Vec<u8>,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader { decoder: Decoder::default(), chunk: vec![0; 64 << 10] }
    }
}

impl Reader {
    /// Reads and writes until the channel closes or breaks.
    async fn run(&mut self, channel: &Channel) -> Fault {
        let mut deadline = Instant::now() + STALLED;
        loop {
            let unsent = !channel.state().outbox.is_empty();
            let interest = if unsent { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            let ready = tokio::select! {
                biased;
                ready = channel.stream.ready(interest) => ready,
                () = channel.unsent.notified() => {
                    // Other callers that are about to send go into the same write.
                    yield_now().await;
                    channel.flush(&mut channel.state());
                    continue;
                }
                () = sleep_until(deadline), if self.decoder.is_mid_frame() => {
                    return Fault::Broken("it left a message to the host unfinished".to_owned());
                }
            };
            let Ok(ready) = ready else { return Fault::Closed };
            if ready.is_writable() {
                channel.flush(&mut channel.state());
            }
            if ready.is_readable() || ready.is_read_closed() {
                deadline = Instant::now() + STALLED;
                if let Err(fault) = self.read(channel) {
                    return fault;
                }
            }
        }
    }

    /// Reads what is there.
    fn read(&mut self, channel: &Channel) -> Result<(), Fault> {
        loop {
            let read = match self.decoder.missing() {
                Some((payload, missing)) => channel.stream.try_read_buf(&mut payload.limit(missing)),
                None => channel.stream.try_read(&mut self.chunk).inspect(|count| {
                    self.decoder.push(&self.chunk[..*count]);
                }),
            };
            match read {
                Ok(0) => return Err(Fault::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(Fault::Closed),
            }
            loop {
                match self.decoder.next_frame() {
                    Ok(Some(frame)) => channel.take(frame)?,
                    Ok(None) => break,
                    Err(error) => {
                        return Err(Fault::Broken(format!("it broke its channel to the host: {error}")));
                    }
                }
            }
        }
    }
}

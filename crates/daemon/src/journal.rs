//! The record of what happened in a session: numbered, without secrets, on disk, and readable while it grows.
//!
//! A reader pulls from the file at its own pace, so a slow one costs no memory and misses nothing.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use beeuni_harness::Listener;
use beeuni_harness::native::conversation::INTERRUPTED_CALL;
use beeuni_protocol::event::{Event, EventBody, FinishReason, ToolStatus};
use beeuni_toolhost::Redactor;
use tokio::sync::watch;

use crate::secrets::{StreamFilter, hide};

/// The journal's file in a session's folder.
pub(crate) const EVENTS: &str = "events.jsonl";

/// Milliseconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The journal of one session and its subagents' child sessions.
pub struct Journal {
    path: PathBuf,
    opened_at: u64,
    clock: Clock,
    secrets: Redactor,
    state: Mutex<State>,
    written: watch::Sender<Written>,
}

/// How far readers may read, and why no more can come.
#[derive(Clone, Debug)]
struct Written {
    length: u64,
    broken: Option<Arc<str>>,
}

struct State {
    file: File,
    seq: u64,
    length: u64,
    /// Text is held back only as long as it may be the beginning of a secret.
    streams: HashMap<(String, bool), StreamFilter>,
    broken: Option<Arc<str>>,
}

impl Journal {
    /// Opens the journal at `path`, creating it with mode 0600. A last line that a kill cut off is dropped, and a turn
    /// that a kill left open is told as interrupted, with its calls.
    pub fn open(path: &Path, secrets: Redactor, clock: Clock) -> io::Result<Arc<Journal>> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let kept = whole_lines(&mut file)?;
        file.set_len(kept.length)?;
        let state = State { file, seq: kept.seq, length: kept.length, streams: HashMap::new(), broken: None };
        let (written, _) = watch::channel(Written { length: kept.length, broken: None });
        let journal = Journal {
            path: path.to_owned(),
            opened_at: kept.seq,
            clock,
            secrets,
            state: Mutex::new(state),
            written,
        };
        journal.tell_interrupted(kept);
        Ok(Arc::new(journal))
    }

    /// Ends what a kill left open, so that every start in the journal has its end.
    fn tell_interrupted(&self, kept: Kept) {
        let now = (self.clock)();
        for ((session, call_id), (name, started)) in kept.open_calls {
            let body = EventBody::ToolFinished {
                call_id,
                name,
                status: ToolStatus::Aborted,
                output: INTERRUPTED_CALL.to_owned(),
                duration_ms: now.saturating_sub(started),
            };
            self.event(&session, body);
        }
        for (session, turn) in kept.open_turns {
            let body = EventBody::TurnFinished { turn, reason: FinishReason::Interrupted, error: None };
            self.event(&session, body);
        }
    }

    /// The number of the last event that was there when it was opened; what an interruption added comes after it.
    pub fn opened_at(&self) -> u64 {
        self.opened_at
    }

    /// The number of the last event; 0 when there is none.
    pub fn last_seq(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).seq
    }

    /// Reads what comes after event `seq`, then waits for more.
    pub fn reader(&self, seq: u64) -> io::Result<Reader> {
        let file = BufReader::new(File::open(&self.path)?);
        Ok(Reader { file, read: 0, after: seq, ready: VecDeque::new(), written: self.written.subscribe() })
    }

    fn append(&self, state: &mut State, session: &str, body: EventBody) {
        let event = Event { seq: state.seq + 1, time: (self.clock)(), session: session.to_owned(), body };
        let written = serde_json::to_vec(&event).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            state.file.write_all(&line)?;
            Ok(line.len() as u64)
        });
        match written {
            Ok(length) => {
                state.seq += 1;
                state.length += length;
            }
            Err(error) => {
                // A half-written line must not swallow the next event.
                let _ = state.file.set_len(state.length);
                state.broken = Some(error.to_string().into());
            }
        }
    }

    /// Passes a piece of streamed text on, without what may still become a secret.
    fn stream(&self, state: &mut State, session: &str, reasoning: bool, text: &str) {
        let filter = state.streams.entry((session.to_owned(), reasoning)).or_default();
        let text = filter.push(&self.secrets, text);
        self.append_text(state, session, reasoning, text);
    }

    /// Gives out what was held back; text comes before whatever follows it.
    fn flush(&self, state: &mut State, session: &str) {
        for reasoning in [true, false] {
            if let Some(filter) = state.streams.remove(&(session.to_owned(), reasoning)) {
                let text = filter.finish(&self.secrets);
                self.append_text(state, session, reasoning, text);
            }
        }
    }

    fn append_text(&self, state: &mut State, session: &str, reasoning: bool, text: String) {
        if text.is_empty() {
            return;
        }
        let body = if reasoning { EventBody::ReasoningDelta { text } } else { EventBody::TextDelta { text } };
        self.append(state, session, body);
    }
}

impl Listener for Journal {
    fn event(&self, session: &str, body: EventBody) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match body {
            EventBody::TextDelta { text } => self.stream(&mut state, session, false, &text),
            EventBody::ReasoningDelta { text } => self.stream(&mut state, session, true, &text),
            body => {
                self.flush(&mut state, session);
                let body = hide(&self.secrets, body);
                self.append(&mut state, session, body);
            }
        }
        self.written.send_replace(Written { length: state.length, broken: state.broken.clone() });
    }
}

/// What a journal on disk holds.
#[derive(Default)]
struct Kept {
    length: u64,
    seq: u64,
    open_turns: BTreeMap<String, u64>,
    last_agent: Option<String>,
    /// By session and call: the tool's name, and when it began.
    open_calls: BTreeMap<(String, String), (String, u64)>,
}

/// Reads a journal's whole lines.
fn whole_lines(file: &mut File) -> io::Result<Kept> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::new(file);
    let mut kept = Kept::default();
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let Ok(event) = serde_json::from_slice::<Event>(&line) else { break };
        if line.last() != Some(&b'\n') {
            break;
        }
        kept.length += line.len() as u64;
        kept.seq = event.seq;
        match event.body {
            EventBody::TurnStarted { turn, agent, .. } => {
                // A subagent's session is named after the one that it belongs to.
                if !event.session.contains('~') {
                    kept.last_agent = Some(agent);
                }
                kept.open_turns.insert(event.session, turn);
            }
            EventBody::TurnFinished { .. } => {
                kept.open_turns.remove(&event.session);
            }
            EventBody::ToolStarted { call_id, name, .. } => {
                kept.open_calls.insert((event.session, call_id), (name, event.time));
            }
            EventBody::ToolFinished { call_id, .. } => {
                kept.open_calls.remove(&(event.session, call_id));
            }
            _ => {}
        }
        line.clear();
    }
    Ok(kept)
}

/// The agent that led the last turn of the session kept in this folder.
pub fn last_agent(folder: &Path) -> Option<String> {
    let mut file = File::open(folder.join(EVENTS)).ok()?;
    whole_lines(&mut file).ok()?.last_agent
}

/// Reads a journal's events in order, each once.
pub struct Reader {
    file: BufReader<File>,
    read: u64,
    after: u64,
    ready: VecDeque<Event>,
    written: watch::Receiver<Written>,
}

impl Reader {
    /// The next event; waits for it. `None` once the journal is closed and read, an error once it can no longer be
    /// written: what would be waited for may be lost.
    pub async fn next(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let written = self.written.borrow_and_update().clone();
            if written.length > self.read {
                self.fill(written.length)?;
            } else if let Some(reason) = written.broken {
                return Err(io::Error::other(format!("events can no longer be kept on disk: {reason}")));
            } else if self.written.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    /// Takes one event off the file, so that a long backlog is never in memory.
    fn fill(&mut self, written: u64) -> io::Result<()> {
        let mut line = Vec::new();
        while self.read < written && self.ready.is_empty() {
            line.clear();
            let count = self.file.by_ref().take(written - self.read).read_until(b'\n', &mut line)?;
            if count == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the journal became shorter"));
            }
            self.read += count as u64;
            let event: Event = serde_json::from_slice(&line)?;
            if event.seq > self.after {
                self.ready.push_back(event);
            }
        }
        Ok(())
    }
}

/// Creates the folder for a session's state, open to its user alone.
pub fn private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(folder: &Path, secrets: &[&str]) -> Arc<Journal> {
        let redactor = Redactor::default();
        redactor.set(secrets.iter().map(|secret| (*secret).to_owned()));
        Journal::open(&folder.join("events.jsonl"), redactor, Arc::new(|| 7)).unwrap()
    }

    fn text(text: &str) -> EventBody {
        EventBody::TextDelta { text: text.into() }
    }

    async fn next(reader: &mut Reader) -> (u64, EventBody) {
        let event = reader.next().await.unwrap().unwrap();
        (event.seq, event.body)
    }

    #[tokio::test]
    async fn readers_see_each_event_once_from_any_number() {
        let folder = tempfile::tempdir().unwrap();
        let journal = journal(folder.path(), &[]);
        for piece in ["a", "b", "c"] {
            journal.event("s", text(piece));
        }
        let mut all = journal.reader(0).unwrap();
        let mut late = journal.reader(2).unwrap();
        assert_eq!(next(&mut all).await, (1, text("a")));
        assert_eq!(next(&mut late).await, (3, text("c")));
        let waiting = tokio::spawn(async move { next(&mut late).await });
        journal.event("s", text("d"));
        assert_eq!(waiting.await.unwrap(), (4, text("d")));
        assert_eq!(next(&mut all).await, (2, text("b")));
    }

    #[tokio::test]
    async fn a_cut_line_is_dropped_and_numbers_go_on() {
        let folder = tempfile::tempdir().unwrap();
        journal(folder.path(), &[]).event("s", text("a"));
        let path = folder.path().join("events.jsonl");
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(br#"{"seq":2,"time":7,"sess"#).unwrap();
        let journal = journal(folder.path(), &[]);
        assert_eq!(journal.last_seq(), 1);
        journal.event("s", text("b"));
        let mut reader = journal.reader(0).unwrap();
        assert_eq!(next(&mut reader).await, (1, text("a")));
        assert_eq!(next(&mut reader).await, (2, text("b")));
    }

    #[tokio::test]
    async fn a_turn_that_was_cut_off_is_told_as_interrupted() {
        let folder = tempfile::tempdir().unwrap();
        let started =
            |turn| EventBody::TurnStarted { turn, agent: "a".into(), model: "m".into(), prompt: "p".into() };
        let finished = |turn, reason| EventBody::TurnFinished { turn, reason, error: None };
        let before = journal(folder.path(), &[]);
        before.event("s", started(1));
        before.event("s", finished(1, FinishReason::Stop));
        before.event("s", started(2));
        let call = |id: &str| EventBody::ToolStarted {
            call_id: id.into(),
            name: "t".into(),
            arguments: "{}".into(),
        };
        let ended = |id: &str, status, output: &str| EventBody::ToolFinished {
            call_id: id.into(),
            name: "t".into(),
            status,
            output: output.into(),
            duration_ms: 0,
        };
        before.event("s", call("done"));
        before.event("s", ended("done", ToolStatus::Ok, "x"));
        before.event("s", call("open"));
        drop(before);
        let again = journal(folder.path(), &[]);
        assert_eq!(again.opened_at(), 6);
        let mut reader = again.reader(again.opened_at()).unwrap();
        assert_eq!(next(&mut reader).await, (7, ended("open", ToolStatus::Aborted, INTERRUPTED_CALL)));
        assert_eq!(next(&mut reader).await, (8, finished(2, FinishReason::Interrupted)));
        assert_eq!(journal(folder.path(), &[]).last_seq(), 8, "told once");
        assert_eq!(last_agent(folder.path()).as_deref(), Some("a"));
    }

    #[tokio::test]
    async fn a_secret_is_hidden_even_when_it_comes_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let journal = journal(folder.path(), &["s3cr3t-XYZ"]);
        for piece in ["the key is s3cr", "3t-X", "YZ, and s3cr", "ap"] {
            journal.event("s", text(piece));
        }
        journal.event("s", EventBody::Replied { id: "x s3cr3t-XYZ".into() });
        let whole = fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
        assert!(!whole.contains("s3cr3t"), "{whole}");
        let mut reader = journal.reader(0).unwrap();
        let mut shown = String::new();
        loop {
            match reader.next().await.unwrap().unwrap().body {
                EventBody::TextDelta { text } => shown.push_str(&text),
                EventBody::Replied { id } => break assert_eq!(id, "x [secret]"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(shown, "the key is [secret], and s3crap");
    }
}

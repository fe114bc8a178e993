//! What was said in a session, kept as one file of JSON lines that only ever grows: `<state>/<session>.jsonl`.
//!
//! It is read at the start of each turn and not kept in memory between turns, so an idle session costs only its file.
//! A line is written whole and at once; it survives a kill of the program from then on. The prompt that was accepted
//! and the end of a turn are also forced to the disk, so they survive a loss of power.
//!
//! Reading makes whole what a kill left open: a torn last line is cut off, a call without an answer gets
//! [`INTERRUPTED_CALL`], a prompt without an answer gets [`INTERRUPTED_TURN`]. So the next request is always valid.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use beeuni_models::Message;
use serde::{Deserialize, Serialize};

use crate::contract::HarnessError;

/// The answer to a call that the program's end cut off.
pub const INTERRUPTED_CALL: &str = "[Tool execution was interrupted]";

/// Stands for the answer that a killed program never gave.
pub const INTERRUPTED_TURN: &str = "[interrupted]";

/// The layout of the file.
const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    /// The first one.
    Opened {
        version: u32,
        /// Of a subagent's session: who it is. It stays the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<Child>,
    },
    /// A turn began; its prompt follows.
    Turn { turn: u64, agent: String },
    /// Something was said. Answers of parallel calls stand in the order in which they came.
    Message(Message),
}

/// Whose session a subagent's is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Child {
    /// The session that started it.
    pub parent: String,
    /// The subagent.
    pub agent: String,
}

/// One session's conversation, open for the turn that runs.
#[derive(Debug)]
pub(super) struct Conversation {
    session: String,
    file: File,
    messages: Vec<Message>,
    turns: u64,
}

/// Whether a conversation of that session is kept under `state`.
#[must_use]
pub fn exists(state: &Path, session: &str) -> bool {
    file_of(state, session).is_ok_and(|path| path.is_file())
}

/// Removes a session's conversation and those of its subagents. One that is not there is fine.
///
/// # Errors
/// When a file cannot be removed, or the name is none for a session.
pub fn remove(state: &Path, session: &str) -> io::Result<()> {
    let own = file_of(state, session)?;
    let children = format!("{session}{CHILD}");
    let entries = match std::fs::read_dir(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path == own || (name.starts_with(&children) && name.ends_with(".jsonl")) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Stands between a session's id and its subagents' numbers.
const CHILD: &str = "~";

/// Whether `id` is that of a subagent's session below `session`.
pub(super) fn is_child(id: &str, session: &str) -> bool {
    id.strip_prefix(session).is_some_and(|rest| rest.starts_with(CHILD))
}

/// The first free id for a subagent's session below `session`.
pub(super) fn free_child(state: &Path, session: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut number = 1_u64;
    loop {
        let id = format!("{session}{CHILD}{number}");
        if !exists(state, &id) && !taken(&id) {
            return id;
        }
        number += 1;
    }
}

impl Conversation {
    /// Opens a session that a user leads (new when its id is), and keeps the prompt.
    pub async fn lead(state: &Path, session: &str, agent: &str, prompt: &str) -> Result<Self, HarnessError> {
        if session.contains(CHILD) {
            let words = format!("{session} is a subagent's session; prompt the one that started it");
            let source = io::Error::new(io::ErrorKind::InvalidInput, words);
            return Err(HarnessError::Conversation { session: session.to_owned(), source });
        }
        Self::begin(state, session, agent, prompt, None).await
    }

    /// Opens a subagent's session and keeps the prompt.
    pub async fn delegate(
        state: &Path,
        session: &str,
        child: Child,
        prompt: &str,
    ) -> Result<Self, HarnessError> {
        let agent = child.agent.clone();
        Self::begin(state, session, &agent, prompt, Some(child)).await
    }

    async fn begin(
        state: &Path,
        session: &str,
        agent: &str,
        prompt: &str,
        child: Option<Child>,
    ) -> Result<Self, HarnessError> {
        let fail = |source| HarnessError::Conversation { session: session.to_owned(), source };
        let (state, id) = (state.to_owned(), session.to_owned());
        let turn_agent = agent.to_owned();
        let text = prompt.to_owned();
        let work = move || {
            let mut conversation = open(&state, &id, child)?;
            conversation.turns += 1;
            let turn = conversation.turns;
            conversation.write(&Line::Turn { turn, agent: turn_agent })?;
            conversation.say(Message::User { text })?;
            conversation.file.sync_data()?;
            Ok(conversation)
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| fail(io::Error::other(error)))?.map_err(fail)
    }

    /// Everything that was said so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// How many turns began, this one included.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Keeps what was said.
    pub fn say(&mut self, message: Message) -> io::Result<()> {
        self.write(&Line::Message(message.clone()))?;
        self.messages.push(message);
        Ok(())
    }

    /// Keeps an answer to a call of the last message, at its position among all messages.
    pub fn answer(&mut self, position: usize, message: Message) -> io::Result<()> {
        self.write(&Line::Message(message.clone()))?;
        let position = position.min(self.messages.len());
        self.messages.insert(position, message);
        Ok(())
    }

    /// Ends the turn: forces everything to the disk.
    pub async fn close(self) -> Result<(), HarnessError> {
        let Self { session, file, .. } = self;
        let synced = tokio::task::spawn_blocking(move || file.sync_data()).await;
        synced
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|source| HarnessError::Conversation { session, source })
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)
    }
}

/// The file of a session. Its id becomes a file name, so it may hold only letters, digits and `._-`, and `~` in a
/// subagent's.
fn file_of(state: &Path, session: &str) -> io::Result<PathBuf> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "._~-".contains(c);
    if session.is_empty() || session.len() > 200 || session.starts_with('.') || !session.chars().all(fine) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{session:?} is no id for a session"),
        ));
    }
    Ok(state.join(format!("{session}.jsonl")))
}

fn open(state: &Path, session: &str, child: Option<Child>) -> io::Result<Conversation> {
    let path = file_of(state, session)?;
    DirBuilder::new().recursive(true).mode(0o700).create(state)?;
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < bytes.len() {
        // The program was killed while it wrote this line, so nobody was told that it is kept.
        file.set_len(whole as u64)?;
        bytes.truncate(whole);
    }
    let mut opened = None;
    let mut turns = 0;
    let mut messages = Vec::new();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty())
    {
        let damaged = |why: String| {
            let words = format!("{} line {}: {why}", path.display(), number + 1);
            io::Error::new(io::ErrorKind::InvalidData, words)
        };
        match serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))? {
            Line::Opened { version, child } if version == VERSION => opened = Some(child),
            Line::Opened { version, .. } => {
                return Err(damaged(format!("version {version} was written by a later Beeuni")));
            }
            Line::Turn { turn, .. } => turns = turn,
            Line::Message(message) => messages.push(message),
        }
    }
    let mut conversation =
        Conversation { session: session.to_owned(), file, messages: make_whole(messages), turns };
    match opened {
        None => conversation.write(&Line::Opened { version: VERSION, child })?,
        Some(kept) if kept == child => {}
        Some(Some(Child { parent, agent })) => {
            let words = format!("{session} belongs to agent {agent}, which was started in session {parent}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        Some(None) => {
            let words = format!("{session} is no subagent's session");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
    }
    Ok(conversation)
}

/// Puts answers into the order of their calls, and fills what a kill left open.
fn make_whole(kept: Vec<Message>) -> Vec<Message> {
    let mut whole: Vec<Message> = Vec::with_capacity(kept.len());
    let mut kept = kept.into_iter().peekable();
    while let Some(message) = kept.next() {
        match &message {
            Message::User { .. } => {
                whole_turn(&mut whole);
                whole.push(message);
            }
            Message::Assistant { calls, .. } => {
                let calls = calls.clone();
                whole.push(message);
                let mut answers = HashMap::new();
                while let Some(answer) = kept.next_if(|next| matches!(next, Message::Tool { .. })) {
                    if let Message::Tool { call_id, .. } = &answer {
                        answers.insert(call_id.clone(), answer);
                    }
                }
                for call in calls {
                    let missing = || Message::Tool {
                        call_id: call.id.clone(),
                        name: call.name.clone(),
                        content: INTERRUPTED_CALL.to_owned(),
                        is_error: true,
                    };
                    whole.push(answers.remove(&call.id).unwrap_or_else(missing));
                }
            }
            // An answer to no call: it was written by nothing that we know, and no provider would take it.
            Message::Tool { .. } => {}
        }
    }
    whole_turn(&mut whole);
    whole
}

/// A turn ends with the model's words; one that was cut off gets some.
fn whole_turn(messages: &mut Vec<Message>) {
    if !matches!(messages.last(), None | Some(Message::Assistant { .. })) {
        messages.push(Message::Assistant { text: INTERRUPTED_TURN.to_owned(), calls: Vec::new() });
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use beeuni_models::Call;

    use super::*;

    fn user(text: &str) -> Message {
        Message::User { text: text.into() }
    }

    fn assistant(text: &str, calls: &[&str]) -> Message {
        let call = |id: &&str| Call { id: (*id).into(), name: "t".into(), arguments: "{}".into() };
        Message::Assistant { text: text.into(), calls: calls.iter().map(call).collect() }
    }

    fn tool(id: &str, content: &str) -> Message {
        let is_error = content == INTERRUPTED_CALL;
        Message::Tool { call_id: id.into(), name: "t".into(), content: content.into(), is_error }
    }

    #[test]
    fn what_a_kill_left_open_is_made_whole() {
        let check = |kept: Vec<Message>, expected: Vec<Message>| assert_eq!(make_whole(kept), expected);
        check(vec![], vec![]);
        check(vec![user("a"), assistant("b", &[])], vec![user("a"), assistant("b", &[])]);
        check(vec![user("a")], vec![user("a"), assistant(INTERRUPTED_TURN, &[])]);
        check(
            vec![user("a"), assistant("", &["1", "2"]), tool("2", "two")],
            vec![
                user("a"),
                assistant("", &["1", "2"]),
                tool("1", INTERRUPTED_CALL),
                tool("2", "two"),
                assistant(INTERRUPTED_TURN, &[]),
            ],
        );
        check(
            vec![user("a"), assistant("", &["1"]), user("b"), assistant("c", &[])],
            vec![
                user("a"),
                assistant("", &["1"]),
                tool("1", INTERRUPTED_CALL),
                assistant(INTERRUPTED_TURN, &[]),
                user("b"),
                assistant("c", &[]),
            ],
        );
        check(vec![tool("9", "stray"), user("a"), assistant("b", &[])], vec![user("a"), assistant("b", &[])]);
    }

    #[test]
    fn a_conversation_survives_a_torn_line_and_refuses_a_damaged_one() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("state");
        let mut first = open(&state, "s1", None).unwrap();
        first.say(user("a")).unwrap();
        first.say(assistant("b", &[])).unwrap();
        drop(first);
        let path = state.join("s1.jsonl");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(state.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(exists(&state, "s1") && !exists(&state, "s2") && !exists(&state, "../s1"));

        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(br#"{"type":"message","role":"us"#);
        std::fs::write(&path, &bytes).unwrap();
        let mut again = open(&state, "s1", None).unwrap();
        assert_eq!(again.messages(), [user("a"), assistant("b", &[])]);
        again.say(user("c")).unwrap();
        drop(again);
        assert_eq!(open(&state, "s1", None).unwrap().messages().len(), 4);

        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replacen("\"a\"", "\"a", 1)).unwrap();
        let error = open(&state, "s1", None).unwrap_err().to_string();
        assert!(error.contains("s1.jsonl line 2:"), "{error}");
        remove(&state, "s1").unwrap();
        assert!(!exists(&state, "s1"));
        remove(&state, "s1").unwrap();
    }

    #[test]
    fn a_subagents_session_is_its_own() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path();
        let child = |agent: &str| Some(Child { parent: "s1".into(), agent: agent.into() });
        assert_eq!(free_child(state, "s1", |_| false), "s1~1");
        open(state, "s1~1", child("worker")).unwrap();
        assert_eq!(free_child(state, "s1", |id| id == "s1~2"), "s1~3");
        open(state, "s1~1", child("worker")).unwrap();
        open(state, "s1", None).unwrap();
        let check = |session: &str, who: Option<Child>, expected: &str| {
            assert_eq!(open(state, session, who).unwrap_err().to_string(), expected);
        };
        check("s1~1", child("other"), "s1~1 belongs to agent worker, which was started in session s1");
        check("s1~1", None, "s1~1 belongs to agent worker, which was started in session s1");
        check("s1", child("worker"), "s1 is no subagent's session");
        check("a/b", None, "\"a/b\" is no id for a session");
        remove(state, "s1").unwrap();
        assert!(!exists(state, "s1~1"));
    }
}

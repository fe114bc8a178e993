//! What every harness promises, and what it is given.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use beeuni_manifest::Manifest;
use beeuni_models::Model;
use beeuni_protocol::event::{EventBody, Reply};
use serde_json::value::RawValue;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

/// An agent loop.
///
/// One value runs many sessions. Everything that happens in one is told to the [`Listener`]; methods only start
/// things. For one session, events come in order, and every `TurnStarted` gets exactly one `TurnFinished`, also after
/// a stop, an error or a shut-down.
#[async_trait]
pub trait Harness: Send + Sync {
    /// Begins a turn and returns once it is accepted (the conversation holds the prompt). Opens the session when its
    /// id is new; goes on with the stored conversation when it is not. A second prompt during a turn is refused with
    /// [`HarnessError::Busy`].
    async fn prompt(&self, prompt: Prompt) -> Result<(), HarnessError>;

    /// Ends the session's turn: running tool calls are aborted, `TurnFinished` with reason `aborted` follows. Returns
    /// after that event. Does nothing when no turn runs.
    async fn stop(&self, session: &str);

    /// Answers a `PermissionAsked` or `QuestionAsked` by its id. An id that is not open is refused.
    async fn reply(&self, id: &str, reply: Reply) -> Result<(), HarnessError>;

    /// Takes a new setup, for the turns that begin after it. Conversations go on. Refused with
    /// [`HarnessError::Busy`] while any turn runs (C2): idle is checked inside, right before the swap.
    async fn reload(&self, setup: Arc<Setup>) -> Result<(), HarnessError>;

    /// Stops every turn and ends; nothing of it runs afterwards.
    async fn shut_down(&self);
}

/// Everything a harness needs to know about the project, compiled once per release.
pub struct Setup {
    /// The judged manifest: access and permissions come from it.
    pub manifest: Arc<Manifest>,
    /// Per enabled agent: what only the daemon can find out.
    pub agents: BTreeMap<String, AgentSetup>,
    /// The hosted tools.
    pub tools: Arc<dyn Tools>,
    /// The checkout; file tools and `bash` work here.
    pub directory: PathBuf,
    /// The box's temporary folder; file tools may use it too.
    pub temp: PathBuf,
    /// Where long outputs are saved (M5); the agent may always read here.
    pub spill: PathBuf,
}

/// What a harness needs per agent beside the manifest.
pub struct AgentSetup {
    /// Its model.
    pub model: Arc<dyn Model>,
    /// The window in tokens, where known.
    pub context: Option<u64>,
    /// The skills that it may have, by name.
    pub skills: Vec<Skill>,
}

/// A skill: `skills/<name>/SKILL.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The folder's name.
    pub name: String,
    /// `description` of its front matter.
    pub description: String,
    /// The whole file.
    pub text: String,
    /// The folder, relative to the checkout.
    pub folder: String,
}

/// A turn to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The Beeuni session.
    pub session: String,
    /// The agent that leads it.
    pub agent: String,
    /// What the user says.
    pub text: String,
}

/// Who listens to a session's events. Called in order and must not block: it only takes note.
pub trait Listener: Send + Sync {
    /// Something happened in `session` (a subagent's child session has its own id).
    fn event(&self, session: &str, body: EventBody);
}

/// The hosted tools (Beeuni and project tools), whoever hosts them.
#[async_trait]
pub trait Tools: Send + Sync {
    /// What is loaded, in the order in which models see it.
    fn list(&self) -> Vec<HostedTool>;

    /// Runs one call. Access was not checked by the caller alone: this door judges again.
    async fn call(&self, call: ToolCall) -> Result<String, CallError>;

    /// Bounds any tool's text as M5 says: over the limits, the whole is saved to a file under `spill` and the
    /// beginning with a note comes back. Harness tools use it too.
    fn bound(&self, tool: &str, text: String) -> String;

    /// The environment for a harness tool's child process (`bash`): the box's environment and the agent's secrets.
    fn environment(&self, session: &str, agent: &str) -> BTreeMap<String, String>;
}

/// A loaded tool as a model sees it.
#[derive(Clone, Debug)]
pub struct HostedTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its JSON Schema, as the module wrote it (M2).
    pub parameters: Arc<RawValue>,
}

/// One call of a hosted tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The Beeuni session (also for a subagent's call).
    pub session: String,
    /// The agent that leads the session.
    pub session_agent: String,
    /// The agent that calls.
    pub agent: String,
    /// The tool.
    pub name: String,
    /// A JSON object's text, passed on untouched.
    pub arguments: String,
    /// Fires when the user stops the turn.
    pub cancel: CancellationToken,
}

/// Why a call of a hosted tool has no output. The text is what the model reads.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CallError {
    /// R2.
    #[error("Tool {0} not found")]
    NotFound(String),
    /// A2.
    #[error("agent {agent} may not use {tool}")]
    Denied {
        /// The agent.
        agent: String,
        /// The tool.
        tool: String,
    },
    /// The tool's own error, word for word (M3).
    #[error("{0}")]
    Tool(String),
    /// The turn was stopped.
    #[error("The call was stopped.")]
    Aborted,
    /// The host's fault or the tool process's end: crashed, out of memory, quarantined, overloaded.
    #[error("{0}")]
    Host(String),
}

/// Why a harness refuses.
#[derive(Debug, Error)]
pub enum HarnessError {
    /// A turn is running.
    #[error("session {0} is busy with a turn; stop it or wait until it ends")]
    Busy(String),
    /// No such agent, or it cannot lead a session.
    #[error("{0}")]
    Agent(String),
    /// The prompt is empty or far too long.
    #[error("{0}")]
    Prompt(String),
    /// A reply to something that is not open.
    #[error("no question or permission {0} is open")]
    NotOpen(String),
    /// The reply does not fit what was asked.
    #[error("{0}")]
    Reply(String),
    /// The conversation could not be read or kept.
    #[error("the conversation of session {session} could not be kept: {source}")]
    Conversation {
        /// The session.
        session: String,
        /// Why.
        source: std::io::Error,
    },
    /// The harness has shut down.
    #[error("the harness has shut down")]
    Down,
}

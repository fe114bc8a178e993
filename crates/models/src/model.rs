//! The contract between an agent loop and a model.

use std::fmt;
use std::sync::Arc;

use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

/// A model behind one provider's wire.
pub trait Model: Send + Sync + fmt::Debug {
    /// `provider/model`, as a user writes it.
    fn name(&self) -> &str;

    /// Sends the request and gives the answer as it comes. Retries (429, 5xx, a stream that drops before its first
    /// delta) happen inside and show as [`Delta::Retrying`]. Dropping the stream closes the connection.
    ///
    /// An `Err` is the last item. Without one the last item is [`Delta::Finish`].
    fn stream(&self, request: Request) -> ModelStream;
}

/// A model's answer as it comes.
pub type ModelStream = BoxStream<'static, Result<Delta, ModelError>>;

/// One request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The system prompt; empty means none.
    pub system: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools on offer, in the order in which the provider gets them.
    pub tools: Vec<ToolSchema>,
    /// Left out: the provider's default.
    pub temperature: Option<f64>,
    /// The most tokens to write. Left out: the model's own limit where it is known.
    pub max_output: Option<u32>,
}

/// What a model is told about a tool.
#[derive(Clone, Debug)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// A JSON Schema, sent as this very text (M2).
    pub parameters: Arc<RawValue>,
}

/// One message of a conversation. Serialised into a conversation's journal, so fields are only ever added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the user said.
    User {
        /// The words.
        text: String,
    },
    /// What the model said and which tools it called.
    Assistant {
        /// The words; may be empty.
        text: String,
        /// The calls, in the model's order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
    },
    /// What a tool answered. Each call of an assistant message gets exactly one.
    Tool {
        /// The id of the call.
        call_id: String,
        /// The tool's name.
        name: String,
        /// The output or the error's words.
        content: String,
        /// True when `content` is an error.
        #[serde(default)]
        is_error: bool,
    },
}

/// A tool call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The model's id.
    pub id: String,
    /// The tool's name; may be one that does not exist.
    pub name: String,
    /// The arguments' text; may be no JSON at all.
    pub arguments: String,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// Some text.
    Text(String),
    /// Some thinking.
    Reasoning(String),
    /// A whole tool call. Given once its arguments are complete.
    Call(Call),
    /// What the request used so far; the last one counts.
    Usage(Usage),
    /// The request failed and will be sent again; nothing was given yet.
    Retrying {
        /// Counts from 1.
        attempt: u32,
        /// Why.
        message: String,
        /// How long until the next try, in milliseconds.
        delay_ms: u64,
    },
    /// The answer is complete.
    Finish(FinishReason),
}

/// Why a model stopped writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It waits for its tool calls.
    Calls,
    /// It reached the limit of its output.
    Length,
    /// The provider's filter cut it.
    Filtered,
}

/// Tokens, as the provider counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Of `input`, those that came from the provider's cache.
    pub cached: u64,
}

/// Why there is no answer. Every text names the provider and what to do; none holds a key.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    /// The conversation does not fit into the model's window.
    #[error(
        "{model}: the conversation no longer fits into the model's context window ({message}); start a new session or use a model with a larger window"
    )]
    ContextFull {
        /// `provider/model`.
        model: String,
        /// The provider's words.
        message: String,
    },
    /// The key is missing, wrong or may not use this model (401, 403).
    #[error("{model}: the provider refused the key ({status}: {message}); check {key_env}")]
    Unauthorized {
        /// `provider/model`.
        model: String,
        /// HTTP status.
        status: u16,
        /// The provider's words.
        message: String,
        /// The environment variable that holds the key.
        key_env: String,
    },
    /// The provider answered with an error that a retry would not mend, or that retries did not mend.
    #[error("{model}: the provider answered {status}: {message}")]
    Refused {
        /// `provider/model`.
        model: String,
        /// HTTP status.
        status: u16,
        /// The provider's words.
        message: String,
    },
    /// No connection, or it broke and retries did not mend it.
    #[error("{model}: {message} ({url})")]
    Unreachable {
        /// `provider/model`.
        model: String,
        /// Where it was tried; without user, password and query.
        url: String,
        /// Why.
        message: String,
    },
    /// The provider answered something that is not its own protocol.
    #[error("{model}: the provider's answer does not follow its protocol: {message}")]
    Protocol {
        /// `provider/model`.
        model: String,
        /// What was wrong.
        message: String,
    },
}

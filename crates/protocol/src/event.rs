//! What a session tells its listeners. Both harnesses speak this one shape, `beeuni run --json` prints it a line each,
//! and the daemon journals it.

use serde::{Deserialize, Serialize};

/// One thing that happened in a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up by one within a session from 1; a reader asks for what comes after the last one it saw.
    pub seq: u64,
    /// Milliseconds since the Unix epoch.
    pub time: u64,
    /// The Beeuni session. A subagent's events carry the id of its own child session.
    pub session: String,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What happened. `type` names the variant in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    /// A prompt was accepted and its turn began.
    TurnStarted {
        /// Counts turns of this session from 1.
        turn: u64,
        /// The agent that answers.
        agent: String,
        /// The model, as `provider/model`.
        model: String,
        /// The prompt.
        prompt: String,
    },
    /// The model wrote some text.
    TextDelta {
        /// The new piece.
        text: String,
    },
    /// The model thought some text.
    ReasoningDelta {
        /// The new piece.
        text: String,
    },
    /// A tool call begins to run.
    ToolStarted {
        /// The model's id of the call.
        call_id: String,
        /// The tool's name as the model gave it.
        name: String,
        /// The arguments as the model gave them: text, not checked.
        arguments: String,
    },
    /// A tool call ended.
    ToolFinished {
        /// The model's id of the call.
        call_id: String,
        /// The tool's name.
        name: String,
        /// How it ended.
        status: ToolStatus,
        /// What the model reads: the output, or the error's words.
        output: String,
        /// From start to end, in milliseconds; waiting for a permission counts.
        duration_ms: u64,
    },
    /// A rule says `ask`: the turn waits for a reply.
    PermissionAsked {
        /// Names this question in the reply.
        id: String,
        /// The call that waits.
        call_id: String,
        /// The tool.
        tool: String,
        /// What is asked for: a command, a path, a URL, or `*`.
        patterns: Vec<String>,
    },
    /// The agent asks its user: the turn waits for a reply.
    QuestionAsked {
        /// Names this question in the reply.
        id: String,
        /// The call that waits.
        call_id: String,
        /// What is asked, one answer each.
        questions: Vec<Question>,
    },
    /// A permission or a question is no longer open.
    Replied {
        /// The `id` of the asking event.
        id: String,
    },
    /// A subagent began; its own events follow under its session id.
    ChildSession {
        /// The child session's id.
        child: String,
        /// The `task` call that started it.
        call_id: String,
        /// The subagent.
        agent: String,
    },
    /// A request to the model failed and will be sent again.
    Retrying {
        /// Counts from 1.
        attempt: u32,
        /// Why.
        message: String,
        /// How long until the next try, in milliseconds.
        delay_ms: u64,
    },
    /// What one request to the model used.
    Usage(Usage),
    /// The turn is over.
    TurnFinished {
        /// Counts turns of this session from 1.
        turn: u64,
        /// Why.
        reason: FinishReason,
        /// What went wrong, when `reason` is `error`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It answered.
    Ok,
    /// It failed: the tool's own error, or the host says that it crashed.
    Error,
    /// The turn was stopped.
    Aborted,
    /// The agent's list or a permission rule forbids it, or the user said no.
    Denied,
    /// No tool of that name is there.
    Unavailable,
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// Something failed; the event's `error` says what.
    Error,
    /// The user stopped it.
    Aborted,
    /// The program that ran it ended in the middle.
    Interrupted,
}

/// Tokens of one model request, as the provider counted them; 0 where it did not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Of `input`, those that came from the provider's cache.
    pub cached: u64,
}

/// One question of the `question` tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The whole question.
    pub question: String,
    /// A short title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub header: String,
    /// What may be chosen; empty means free text.
    #[serde(default)]
    pub options: Vec<Choice>,
    /// More than one may be chosen.
    #[serde(default)]
    pub multiple: bool,
}

/// One choice of a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What the user picks.
    pub label: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// What a listener answers to an asking event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reply {
    /// Allow this one call.
    Once,
    /// Allow this and, for the rest of the session, each call that the same rule asks about.
    Always,
    /// Refuse, perhaps with words for the model.
    Reject {
        /// What the model should know.
        #[serde(default)]
        message: String,
    },
    /// Answers to a question: per question, the labels or the text.
    Answers {
        /// One list per question.
        answers: Vec<Vec<String>>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_one_flat_shape() {
        let event = Event {
            seq: 3,
            time: 1,
            session: "s1".into(),
            body: EventBody::TurnFinished { turn: 1, reason: FinishReason::Stop, error: None },
        };
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(
            json,
            r#"{"seq":3,"time":1,"session":"s1","type":"turn_finished","turn":1,"reason":"stop"}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
        let usage = Event {
            seq: 1,
            time: 1,
            session: "s".into(),
            body: EventBody::Usage(Usage { input: 1, output: 2, cached: 0 }),
        };
        let json = serde_json::to_string(&usage).unwrap();
        assert_eq!(
            json,
            r#"{"seq":1,"time":1,"session":"s","type":"usage","input":1,"output":2,"cached":0}"#
        );
    }
}

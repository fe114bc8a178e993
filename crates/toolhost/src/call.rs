//! One call of a tool, and why it may have no output.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio_util::sync::CancellationToken;

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// The arguments as JSON text; passed on byte for byte. Empty means `{}`.
    pub arguments: Vec<u8>,
    /// `context.sessionId`.
    pub session: String,
    /// `context.agent`.
    pub agent: String,
    /// `context.directory`.
    pub directory: String,
    /// `context.env`. Share one value as long as nothing changes: it is then sent once.
    pub env: Arc<BTreeMap<String, String>>,
    /// Fires the call's signal (M4). Dropping the call's future does the same.
    pub cancel: CancellationToken,
}

/// Why a call has no output. The text is what the model reads.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CallFailure {
    /// R3.
    #[error("no tool named {0} is loaded")]
    NotLoaded(String),
    /// The tool's own error, word for word (M3), bounded as M5 says.
    #[error("{0}")]
    Tool(String),
    /// The turn was stopped.
    #[error("The call was stopped.")]
    Aborted,
    /// The arguments do not fit in a frame.
    #[error("the arguments of {0} are too long; at most 64 MiB can be sent")]
    TooLong(String),
    /// The process ended before it answered.
    #[error("{tool} {how} during the call")]
    Crashed {
        /// The tool.
        tool: String,
        /// Such as `exited with code 7`.
        how: String,
    },
    /// The process was killed for its memory.
    #[error("{tool} was killed during the call: it used more than its {} MiB of memory (limits.memory)", .limit >> 20)]
    OutOfMemory {
        /// The tool.
        tool: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The process had been asked to stop another call, and no longer turned.
    #[error("{0} did not respond and was ended during the call")]
    Unresponsive(String),
    /// The process broke the rules of the channel.
    #[error("{tool} was ended during the call: {what}")]
    Protocol {
        /// The tool.
        tool: String,
        /// Which rule.
        what: String,
    },
    /// The process could not be started again.
    #[error("{tool} could not be started again: {reason}")]
    NotStarted {
        /// The tool.
        tool: String,
        /// Why.
        reason: String,
    },
    /// Too many crashes.
    #[error(
        "{tool} is switched off after {crashes} crashes in a minute, until it is loaded again; the last: {last}"
    )]
    Quarantined {
        /// The tool.
        tool: String,
        /// How many.
        crashes: usize,
        /// What the last one was.
        last: String,
    },
    /// Too many calls wait already.
    #[error("{0} is overloaded: too many calls are waiting; try again later")]
    Overloaded(String),
    /// `limits.call_time` passed.
    #[error("{tool} took longer than its limit of {} s (limits.call_time)", .limit.as_secs_f64())]
    TimedOut {
        /// The tool.
        tool: String,
        /// The limit.
        limit: Duration,
    },
}

impl CallFailure {
    /// A stable word for the kind.
    pub fn code(&self) -> &'static str {
        match self {
            CallFailure::NotLoaded(_) => "not_loaded",
            CallFailure::Tool(_) => "tool_error",
            CallFailure::Aborted => "aborted",
            CallFailure::TooLong(_) => "too_long",
            CallFailure::Crashed { .. } => "crashed",
            CallFailure::OutOfMemory { .. } => "out_of_memory",
            CallFailure::Unresponsive(_) => "unresponsive",
            CallFailure::Protocol { .. } => "protocol_error",
            CallFailure::NotStarted { .. } => "not_started",
            CallFailure::Quarantined { .. } => "quarantined",
            CallFailure::Overloaded(_) => "overloaded",
            CallFailure::TimedOut { .. } => "timed_out",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_codes_stay() {
        let tool = || "t".to_owned();
        let check = |failure: CallFailure, code: &str, text: &str| {
            assert_eq!((failure.code(), failure.to_string().as_str()), (code, text));
        };
        check(CallFailure::NotLoaded(tool()), "not_loaded", "no tool named t is loaded");
        check(CallFailure::Tool("boom".into()), "tool_error", "boom");
        check(CallFailure::Aborted, "aborted", "The call was stopped.");
        check(
            CallFailure::TooLong(tool()),
            "too_long",
            "the arguments of t are too long; at most 64 MiB can be sent",
        );
        check(
            CallFailure::Crashed { tool: tool(), how: "exited with code 7".into() },
            "crashed",
            "t exited with code 7 during the call",
        );
        check(
            CallFailure::OutOfMemory { tool: tool(), limit: 512 << 20 },
            "out_of_memory",
            "t was killed during the call: it used more than its 512 MiB of memory (limits.memory)",
        );
        check(
            CallFailure::Unresponsive(tool()),
            "unresponsive",
            "t did not respond and was ended during the call",
        );
        check(
            CallFailure::Protocol { tool: tool(), what: "w".into() },
            "protocol_error",
            "t was ended during the call: w",
        );
        check(
            CallFailure::NotStarted { tool: tool(), reason: "r".into() },
            "not_started",
            "t could not be started again: r",
        );
        check(
            CallFailure::Quarantined { tool: tool(), crashes: 5, last: "exited with code 1".into() },
            "quarantined",
            "t is switched off after 5 crashes in a minute, until it is loaded again; the last: exited with code 1",
        );
        check(
            CallFailure::Overloaded(tool()),
            "overloaded",
            "t is overloaded: too many calls are waiting; try again later",
        );
        check(
            CallFailure::TimedOut { tool: tool(), limit: Duration::from_millis(1500) },
            "timed_out",
            "t took longer than its limit of 1.5 s (limits.call_time)",
        );
    }
}

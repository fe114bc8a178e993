//! What a wire must bring: how a request is written and how an answer is read.

use std::collections::HashSet;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::{Call, Delta, Message, Request};

/// The arguments of a call that had none, or none that a provider takes back.
const NO_ARGUMENTS: &str = "{}";

/// Reads an answer, event by event.
pub(crate) trait Decoder: Send {
    /// Takes the data of one event and adds what it says to `out`.
    fn event(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<(), Broken>;

    /// How far the answer is.
    fn progress(&self) -> Progress;

    /// Adds what is given only once the answer is complete: calls and the finish.
    fn finish(&mut self, out: &mut Vec<Delta>);
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More must come.
    Open,
    /// Nothing is missing, but something may follow, such as the usage.
    Enough,
    /// Nothing follows.
    Done,
}

/// Why an answer cannot be read on.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It is not the wire's protocol.
    Protocol(String),
    /// The provider reports an error in the stream.
    Reported {
        /// The status that it would have had.
        status: u16,
        /// The error, as JSON.
        error: Value,
    },
}

/// Calls as they are put together.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<Call>,
    used: HashSet<String>,
}

impl Calls {
    /// For an answer to a conversation: no call gets an id that the conversation has already.
    pub(crate) fn new(request: &Request) -> Self {
        let mut used = HashSet::new();
        for message in &request.messages {
            if let Message::Assistant { calls, .. } = message {
                used.extend(calls.iter().map(|call| call.id.clone()));
            }
        }
        Self { calls: Vec::new(), used }
    }

    /// Begins a call and gives its number.
    pub(crate) fn begin(&mut self, id: &str, name: &str) -> usize {
        self.calls.push(Call { id: id.to_owned(), name: name.to_owned(), arguments: String::new() });
        self.calls.len() - 1
    }

    /// A call by its number.
    pub(crate) fn at(&mut self, number: usize) -> Option<&mut Call> {
        self.calls.get_mut(number)
    }

    /// True when nothing was called.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The calls, each with an id that is its own.
    pub(crate) fn take(&mut self) -> Vec<Call> {
        let mut calls = std::mem::take(&mut self.calls);
        for call in &mut calls {
            if call.id.is_empty() || !self.used.insert(call.id.clone()) {
                let mut n = self.used.len();
                while !self.used.insert(format!("call_{n}")) {
                    n += 1;
                }
                call.id = format!("call_{n}");
            }
        }
        calls
    }
}

/// A past call's arguments as a provider takes them back: the model's own text if it is a JSON object, else `{}`. Some
/// servers refuse a conversation for ever once it holds anything else.
pub(crate) fn past_arguments(text: &str) -> Box<RawValue> {
    let is_object = serde_json::from_str::<Map<String, Value>>(text).is_ok();
    let text = if is_object { text.trim() } else { NO_ARGUMENTS };
    // Both are JSON, so the last resort is never reached.
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

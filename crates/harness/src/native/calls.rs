//! Runs the calls of one message side by side. Every call is told as started and as finished, and gets one answer.

use std::io;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use beeuni_models::{Call, Message};
use beeuni_protocol::event::{EventBody, ToolStatus};
use futures::FutureExt as _;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::conversation::Conversation;
use super::judge::{self, Case};
use super::offer::{Loaded, Offer};
use super::subjects;
use super::turn::Turn;
use crate::contract::{CallError, ToolCall};

/// How long a stopped tool may take to say so itself before its answer is no longer waited for.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// The same call with the same answer so many times is a loop (`doom_loop`): the next one asks first.
const LOOP_TIMES: u32 = 2;

/// What a model reads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub status: ToolStatus,
    pub text: String,
}

impl Answer {
    pub fn ok(text: impl Into<String>) -> Self {
        Self { status: ToolStatus::Ok, text: text.into() }
    }

    pub fn error(text: impl Into<String>) -> Self {
        Self { status: ToolStatus::Error, text: text.into() }
    }

    pub fn denied(text: impl Into<String>) -> Self {
        Self { status: ToolStatus::Denied, text: text.into() }
    }

    /// The call ended with the turn.
    pub fn stopped(turn: &Turn) -> Self {
        Self { status: ToolStatus::Aborted, text: turn.stop_words().to_owned() }
    }
}

impl From<Result<String, String>> for Answer {
    fn from(result: Result<String, String>) -> Self {
        result.map_or_else(Answer::error, Answer::ok)
    }
}

/// Notices a model that makes the same call again and again and learns nothing: a tool whose answer changes is fine.
#[derive(Default)]
pub(super) struct Repeats {
    last: Option<(String, String, String)>,
    times: u32,
}

impl Repeats {
    fn note(&mut self, call: &Call, answer: &Answer) {
        let now = (call.name.clone(), call.arguments.clone(), answer.text.clone());
        self.times = if self.last.as_ref() == Some(&now) { self.times + 1 } else { 1 };
        self.last = Some(now);
    }

    fn is_loop(&self, call: &Call) -> bool {
        let same = |(name, arguments, _): &(String, String, String)| {
            *name == call.name && *arguments == call.arguments
        };
        self.times >= LOOP_TIMES && self.last.as_ref().is_some_and(same)
    }
}

/// Runs the calls and keeps each answer as it comes; in the conversation they stand in the model's order.
///
/// # Errors
/// When an answer cannot be kept; the other calls are stopped and told as finished all the same.
pub(super) async fn run_all(
    turn: &Turn,
    offer: &Offer,
    repeats: &mut Repeats,
    calls: &[Call],
    conversation: &mut Conversation,
) -> io::Result<()> {
    let cancel = turn.cancel.child_token();
    let base = conversation.messages().len();
    for Call { id, name, arguments } in calls {
        turn.tell(EventBody::ToolStarted {
            call_id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
        });
    }
    let begun = Instant::now();
    let mut running: FuturesUnordered<_> = calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            let looping = repeats.is_loop(call);
            let cancel = &cancel;
            async move {
                let ran = AssertUnwindSafe(run(turn, offer, call, looping, cancel)).catch_unwind().await;
                let failed = |_| {
                    Answer::error(format!(
                        "{} failed inside the harness; this is a fault of Beeuni",
                        call.name
                    ))
                };
                (index, ran.unwrap_or_else(failed))
            }
        })
        .collect();
    let mut answers: Vec<Option<Answer>> = calls.iter().map(|_| None).collect();
    let mut kept = Ok(());
    while let Some((index, answer)) = running.next().await {
        let Call { id, name, .. } = &calls[index];
        let message = Message::Tool {
            call_id: id.clone(),
            name: name.clone(),
            content: answer.text.clone(),
            is_error: answer.status != ToolStatus::Ok,
        };
        // Kept first and told then: what a listener heard is never lost by a kill in between.
        if kept.is_ok() {
            let before = answers[..index].iter().flatten().count();
            kept = conversation.answer(base + before, message);
            if kept.is_err() {
                cancel.cancel();
            }
        }
        turn.tell(EventBody::ToolFinished {
            call_id: id.clone(),
            name: name.clone(),
            status: answer.status,
            output: answer.text.clone(),
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        answers[index] = Some(answer);
    }
    for (call, answer) in calls.iter().zip(answers.iter().flatten()) {
        repeats.note(call, answer);
    }
    kept
}

/// Judges one call and runs it. The order of the checks is the daemon's: loaded, arguments, access, rules.
async fn run(turn: &Turn, offer: &Offer, call: &Call, looping: bool, cancel: &CancellationToken) -> Answer {
    let name = &call.name;
    let Some(loaded) = offer.loaded(name) else {
        return Answer {
            status: ToolStatus::Unavailable,
            text: CallError::NotFound(name.clone()).to_string(),
        };
    };
    let arguments = match object(&call.arguments) {
        Ok(arguments) => arguments,
        Err(reason) => return Answer::error(format!("arguments are not a JSON object: {reason}")),
    };
    if !turn.may_use(name) {
        let denied = CallError::Denied { agent: turn.agent.clone(), tool: name.clone() };
        return Answer::denied(denied.to_string());
    }
    let case = Case { turn, call_id: &call.id, tool: name, cancel };
    if looping {
        let why =
            format!("{name} {arguments}: the same call for the third time in a row, with the same answer");
        if let Err(refused) = case.guarded(judge::LOOP, vec![why]).await {
            return refused;
        }
    }
    match loaded {
        Loaded::Harness(tool) => {
            let ready = match tool.prepare(turn, arguments) {
                Ok(ready) => ready,
                Err(reason) => return Answer::error(reason),
            };
            let outside = ready.outside();
            if !outside.is_empty()
                && let Err(refused) = case.guarded(judge::EXTERNAL, outside).await
            {
                return refused;
            }
            if let Err(refused) = case.ruled(name, ready.subjects()).await {
                return refused;
            }
            let answer = ready.run(turn, &call.id, cancel).await;
            if cancel.is_cancelled() {
                return Answer::stopped(turn);
            }
            Answer { text: turn.setup.tools.bound(name, answer.text), ..answer }
        }
        Loaded::Hosted => {
            let (key, subjects) = subjects::hosted(name, arguments);
            if let Err(refused) = case.ruled(key, subjects).await {
                return refused;
            }
            let call = ToolCall {
                session: turn.root.clone(),
                session_agent: turn.session_agent.clone(),
                agent: turn.agent.clone(),
                name: name.clone(),
                arguments: arguments.to_owned(),
                cancel: cancel.clone(),
            };
            match until_stopped(turn.setup.tools.call(call), cancel).await {
                None => Answer::stopped(turn),
                Some(_) if cancel.is_cancelled() => Answer::stopped(turn),
                Some(Ok(output)) => Answer::ok(output),
                Some(Err(error)) => {
                    let status = match error {
                        CallError::NotFound(_) => ToolStatus::Unavailable,
                        CallError::Denied { .. } => ToolStatus::Denied,
                        CallError::Aborted => ToolStatus::Aborted,
                        CallError::Tool(_) | CallError::Host(_) => ToolStatus::Error,
                    };
                    Answer { status, text: error.to_string() }
                }
            }
        }
    }
}

/// Waits for work; after a stop only so long as it takes to clear up. `None` means that it did not end by then.
pub(super) async fn until_stopped<T>(work: impl Future<Output = T>, cancel: &CancellationToken) -> Option<T> {
    let late = async {
        cancel.cancelled().await;
        tokio::time::sleep(STOP_GRACE).await;
    };
    tokio::select! {
        biased;
        done = work => Some(done),
        () = late => None,
    }
}

/// The text of a JSON object as the model gave it; no text at all is an empty one.
fn object(text: &str) -> Result<&str, String> {
    if text.trim().is_empty() {
        return Ok("{}");
    }
    // Only its shape is looked at: no value is taken over, so nothing can be lost or limited here.
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let kind = match raw.get().as_bytes().first() {
        Some(b'{') => return Ok(text),
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    };
    Err(format!("it is {kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_objects_text_or_refused() {
        let check = |text: &str, expected: Result<&str, &str>| {
            assert_eq!(object(text), expected.map_err(str::to_owned), "{text}");
        };
        check("", Ok("{}"));
        check(" \n", Ok("{}"));
        check("{}", Ok("{}"));
        check(
            r#" {"n":12345678901234567890123.50,"n":1,"__proto__":{}} "#,
            Ok(r#" {"n":12345678901234567890123.50,"n":1,"__proto__":{}} "#),
        );
        check("[1]", Err("it is a list"));
        check("\"x\"", Err("it is a string"));
        check("null", Err("it is null"));
        check("true", Err("it is a boolean"));
        check("-4", Err("it is a number"));
        check("{\"a\":", Err("EOF while parsing a value at line 1 column 5"));
        check("{} {}", Err("trailing characters at line 1 column 4"));
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        check(&deep, Ok(&deep));
    }

    #[test]
    fn a_loop_is_the_same_call_with_the_same_answer() {
        let call = |name: &str| Call { id: "1".into(), name: name.into(), arguments: "{}".into() };
        let mut repeats = Repeats::default();
        let mut check = |name: &str, answer: &str, looping: bool| {
            assert_eq!(repeats.is_loop(&call(name)), looping, "{name} {answer}");
            repeats.note(&call(name), &Answer::ok(answer));
        };
        check("a", "1", false);
        check("a", "1", false);
        check("a", "2", true);
        check("a", "2", false);
        check("b", "2", false);
        check("b", "2", false);
        check("b", "2", true);
    }
}

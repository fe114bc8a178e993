//! One turn: ask the model, run its calls, ask again, until it is done.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use beeuni_manifest::{Harness, Permission, Verdict};
use beeuni_models::{Call, Delta, FinishReason as Finish, Message, ModelError, Request, Usage};
use beeuni_protocol::event::{self, EventBody, FinishReason};
use futures::{FutureExt as _, StreamExt as _};
use tokio_util::sync::CancellationToken;

use super::calls::{self, Repeats};
use super::conversation::{Conversation, INTERRUPTED_CALL, INTERRUPTED_TURN};
use super::offer::Offer;
use super::{Shared, system};
use crate::contract::{AgentSetup, Setup};

/// What a stopped call and a stopped answer say to the model.
pub(super) const STOPPED: &str = "[stopped by the user]";

/// Stands for an answer without words and calls, which no provider would take back.
const SAID_NOTHING: &str = "[the model gave no answer]";

/// The most text of one answer, in bytes, and the most calls: more is no answer but a fault.
const MAX_TEXT: usize = 4 << 20;
const MAX_CALLS: usize = 256;

/// How long after a stream that broke in the middle the request is sent again.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Who answers whom in a turn that runs.
pub(super) struct Turn {
    pub shared: Arc<Shared>,
    pub setup: Arc<Setup>,
    /// The session whose turn it is; a subagent's has its own.
    pub session: String,
    /// The Beeuni session.
    pub root: String,
    /// The agent that leads the Beeuni session.
    pub session_agent: String,
    /// The agent that answers.
    pub agent: String,
    /// Counts the session's turns from 1.
    pub number: u64,
    pub cancel: CancellationToken,
}

/// How a turn ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub reason: FinishReason,
    pub error: Option<String>,
    /// The model's last words.
    pub text: String,
}

/// Why the loop left.
enum End {
    Done,
    Stopped,
    Failed(String),
}

/// A model's whole answer.
struct Answer {
    text: String,
    calls: Vec<Call>,
    finish: Finish,
}

/// An answer that did not become whole, and what was said of it.
enum Broken {
    Stopped { text: String },
    Failed { error: ModelError, text: String, began: bool },
}

impl Turn {
    pub fn tell(&self, body: EventBody) {
        self.shared.listener.event(&self.session, body);
    }

    /// Whether this is a subagent's turn.
    pub fn is_child(&self) -> bool {
        self.session != self.root
    }

    /// Whether the agent sees the tool and may call it (A2, A4).
    pub fn may_use(&self, tool: &str) -> bool {
        // An agent may be its own subagent; the manifest, which sees names only, cannot tell that.
        if self.is_child() && matches!(tool, "task" | "question") {
            return false;
        }
        let manifest = &self.setup.manifest;
        manifest.may_use(Harness::Experimental, &self.session_agent, &self.agent, tool) == Verdict::Visible
    }

    /// The agent's rules.
    pub fn permission(&self) -> Permission {
        let agent = self.setup.manifest.agents.get(&self.agent);
        agent.map(|agent| agent.value.permission.clone()).unwrap_or_default()
    }

    /// What a call says that did not end by itself.
    pub fn stop_words(&self) -> &'static str {
        if self.shared.down.is_cancelled() { INTERRUPTED_CALL } else { STOPPED }
    }

    /// Tells that the turn begins. Its [`Turn::run`] must follow, which tells its end.
    pub fn started(&self, prompt: &str) {
        let model = self.setup.agents.get(&self.agent).map(|agent| agent.model.name().to_owned());
        self.tell(EventBody::TurnStarted {
            turn: self.number,
            agent: self.agent.clone(),
            model: model.unwrap_or_default(),
            prompt: prompt.to_owned(),
        });
    }

    /// Runs the turn to its end and tells it, whatever happens.
    pub async fn run(&self, mut conversation: Conversation) -> Outcome {
        let ran = AssertUnwindSafe(self.answer(&mut conversation)).catch_unwind().await;
        let end = ran.unwrap_or_else(|_| {
            End::Failed("the harness itself failed; this is a fault of Beeuni".to_owned())
        });
        let (reason, mut error) = match end {
            End::Done => (FinishReason::Stop, None),
            End::Stopped if self.shared.down.is_cancelled() => (FinishReason::Interrupted, None),
            End::Stopped => (FinishReason::Aborted, None),
            End::Failed(error) => (FinishReason::Error, Some(error)),
        };
        // Every turn ends with words of the model's side, so the next prompt finds a valid conversation.
        let words = match (conversation.messages().last(), &error) {
            (Some(Message::Assistant { calls, .. }), _) if calls.is_empty() => None,
            (_, Some(error)) => Some(format!("[the turn ended with an error: {error}]")),
            _ if reason == FinishReason::Interrupted => Some(INTERRUPTED_TURN.to_owned()),
            _ => Some(STOPPED.to_owned()),
        };
        let text = match conversation.messages().last() {
            Some(Message::Assistant { text, .. }) => text.clone(),
            _ => String::new(),
        };
        let mut kept = Ok(());
        if let Some(text) = words {
            kept = conversation.say(Message::Assistant { text, calls: Vec::new() });
        }
        let closed = conversation.close().await.map_err(|error| error.to_string());
        if let Err(failed) = kept.map_err(|source| self.not_kept(&source)).and(closed) {
            error.get_or_insert(failed);
        }
        let reason = if error.is_some() { FinishReason::Error } else { reason };
        self.shared.sessions.ending(&self.session);
        self.tell(EventBody::TurnFinished { turn: self.number, reason, error: error.clone() });
        Outcome { reason, error, text }
    }

    async fn answer(&self, conversation: &mut Conversation) -> End {
        let entry = self.setup.manifest.agents.get(&self.agent);
        let (Some(entry), Some(own)) = (entry, self.setup.agents.get(&self.agent)) else {
            return End::Failed(format!("agent {} is not there", self.agent));
        };
        let agent = &entry.value;
        let system = system::prompt(agent, &self.setup, (self.shared.options.now)());
        let offer = Offer::new(self, agent, own);
        let mut repeats = Repeats::default();
        let mut step = 0_u32;
        loop {
            step = step.saturating_add(1);
            let last = agent.steps.is_some_and(|limit| step >= limit);
            let request = || Request {
                system: if last { format!("{system}\n\n{}", system::LAST_STEP) } else { system.clone() },
                messages: conversation.messages().to_vec(),
                tools: if last { Vec::new() } else { offer.schemas().to_vec() },
                temperature: agent.temperature,
                max_output: None,
            };
            let answer = match self.ask(own, request).await {
                Ok(answer) => answer,
                Err(broken) => return self.broke(conversation, broken),
            };
            let Answer { text, mut calls, finish } = answer;
            if last {
                // They were not on offer, so a model that calls them all the same gets no further step.
                calls.clear();
            }
            name_apart(&mut calls);
            let words =
                if text.trim().is_empty() && calls.is_empty() { SAID_NOTHING.to_owned() } else { text };
            if let Err(error) = conversation.say(Message::Assistant { text: words, calls: calls.clone() }) {
                return End::Failed(self.not_kept(&error));
            }
            if calls.is_empty() {
                return match finish {
                    Finish::Stop | Finish::Calls => End::Done,
                    Finish::Length => End::Failed(format!(
                        "{}: the answer was cut off at the model's output limit; ask it to go on, or raise the limit",
                        own.model.name()
                    )),
                    Finish::Filtered => {
                        End::Failed(format!("{}: the provider's filter cut the answer off", own.model.name()))
                    }
                };
            }
            if let Err(error) = calls::run_all(self, &offer, &mut repeats, &calls, conversation).await {
                return End::Failed(self.not_kept(&error));
            }
            if self.cancel.is_cancelled() {
                return End::Stopped;
            }
        }
    }

    /// Asks the model. A stream that breaks after its first words is asked for once more: nothing was run yet, so
    /// nothing happens twice. What was told of the broken answer stays told; `Retrying` says that it does not count.
    async fn ask(&self, own: &AgentSetup, request: impl Fn() -> Request) -> Result<Answer, Broken> {
        let error = match self.listen(own, request()).await {
            Err(Broken::Failed { error: error @ ModelError::Unreachable { .. }, began: true, .. }) => error,
            answer => return answer,
        };
        self.tell(EventBody::Retrying {
            attempt: 1,
            message: error.to_string(),
            delay_ms: RETRY_DELAY.as_millis() as u64,
        });
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Broken::Stopped { text: String::new() }),
            () = tokio::time::sleep(RETRY_DELAY) => {}
        }
        self.listen(own, request()).await
    }

    /// Takes one answer as it comes.
    async fn listen(&self, own: &AgentSetup, request: Request) -> Result<Answer, Broken> {
        let mut stream = own.model.stream(request);
        let (mut text, mut calls, mut usage, mut began) = (String::new(), Vec::new(), None, false);
        let end = loop {
            let next = tokio::select! {
                biased;
                () = self.cancel.cancelled() => break Err(None),
                next = stream.next() => next,
            };
            let against = |message: &str| ModelError::Protocol {
                model: own.model.name().to_owned(),
                message: message.to_owned(),
            };
            match next {
                Some(Ok(Delta::Text(piece))) => {
                    began = true;
                    text.push_str(&piece);
                    self.tell(EventBody::TextDelta { text: piece });
                    if text.len() > MAX_TEXT {
                        break Err(Some(against("the answer never ends")));
                    }
                }
                Some(Ok(Delta::Reasoning(text))) => {
                    began = true;
                    self.tell(EventBody::ReasoningDelta { text });
                }
                Some(Ok(Delta::Call(call))) => {
                    began = true;
                    calls.push(call);
                    if calls.len() > MAX_CALLS {
                        break Err(Some(against("the calls never end")));
                    }
                }
                Some(Ok(Delta::Usage(used))) => usage = Some(used),
                Some(Ok(Delta::Retrying { attempt, message, delay_ms })) => {
                    self.tell(EventBody::Retrying { attempt, message, delay_ms });
                }
                Some(Ok(Delta::Finish(finish))) => break Ok(finish),
                Some(Err(error)) => break Err(Some(error)),
                None => break Err(Some(against("the stream ended before the answer did"))),
            }
        };
        if let Some(Usage { input, output, cached }) = usage {
            self.tell(EventBody::Usage(event::Usage { input, output, cached }));
        }
        match end {
            Ok(finish) => Ok(Answer { text, calls, finish }),
            Err(None) => Err(Broken::Stopped { text }),
            Err(Some(error)) => Err(Broken::Failed { error, text, began }),
        }
    }

    /// Keeps what was said before the answer broke. Calls are left out: none of them ran.
    fn broke(&self, conversation: &mut Conversation, broken: Broken) -> End {
        let (text, end) = match broken {
            Broken::Stopped { text } => {
                let note = if self.shared.down.is_cancelled() { INTERRUPTED_TURN } else { STOPPED };
                (text, (note, End::Stopped))
            }
            Broken::Failed { error, text, .. } => (text, (INTERRUPTED_TURN, End::Failed(error.to_string()))),
        };
        let (note, end) = end;
        if text.trim().is_empty() {
            return end;
        }
        let text = format!("{text}\n\n{note}");
        match conversation.say(Message::Assistant { text, calls: Vec::new() }) {
            Ok(()) => end,
            Err(error) => End::Failed(self.not_kept(&error)),
        }
    }

    fn not_kept(&self, error: &std::io::Error) -> String {
        format!("the conversation of session {} could not be kept: {error}", self.session)
    }
}

/// Some servers repeat an id or leave it empty; each call of a message needs its own to get its answer.
fn name_apart(calls: &mut [Call]) {
    for index in 0..calls.len() {
        let (before, rest) = calls.split_at_mut(index);
        let taken = |id: &str| id.is_empty() || before.iter().any(|other| other.id == id);
        let Some(call) = rest.first_mut() else { continue };
        let mut number = index;
        while taken(&call.id) {
            call.id = format!("call_{number}");
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_a_message_has_an_id_of_its_own() {
        let check = |ids: &[&str], expected: &[&str]| {
            let call = |id: &&str| Call { id: (*id).into(), name: "t".into(), arguments: String::new() };
            let mut calls: Vec<Call> = ids.iter().map(call).collect();
            name_apart(&mut calls);
            assert_eq!(calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), expected);
        };
        check(&["a", "b"], &["a", "b"]);
        check(&["a", "a", "a"], &["a", "call_1", "call_2"]);
        check(&["", "call_1", ""], &["call_0", "call_1", "call_2"]);
        check(&["call_1", ""], &["call_1", "call_2"]);
    }
}

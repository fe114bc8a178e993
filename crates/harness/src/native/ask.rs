//! What waits for a user's reply.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use beeuni_protocol::event::{EventBody, Question, Reply};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::turn::Turn;
use crate::contract::HarnessError;

/// The open permissions and questions of all sessions, by id.
#[derive(Default)]
pub(super) struct Desk {
    open: Mutex<HashMap<String, Open>>,
    count: AtomicU64,
}

struct Open {
    asked: Asked,
    reply: oneshot::Sender<Reply>,
}

/// What a reply must fit.
#[derive(Clone)]
enum Asked {
    Permission,
    Questions(Vec<Question>),
}

/// Closes what it asked when the waiting ends, however it ends.
struct Closing<'a> {
    turn: &'a Turn,
    id: String,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.turn.shared.desk.lock().remove(&self.id);
        self.turn.tell(EventBody::Replied { id: self.id.clone() });
    }
}

impl Desk {
    /// Gives a reply to whoever waits for it. One that does not fit leaves the question open.
    pub fn reply(&self, id: &str, reply: Reply) -> Result<(), HarnessError> {
        let mut open = self.lock();
        let entry = open.get(id).ok_or_else(|| HarnessError::NotOpen(id.to_owned()))?;
        entry.asked.fits(&reply).map_err(HarnessError::Reply)?;
        let entry = open.remove(id).ok_or_else(|| HarnessError::NotOpen(id.to_owned()))?;
        entry.reply.send(reply).map_err(|_| HarnessError::NotOpen(id.to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    fn fits(&self, reply: &Reply) -> Result<(), String> {
        match (self, reply) {
            (Asked::Permission, Reply::Once | Reply::Always | Reply::Reject { .. })
            | (Asked::Questions(_), Reply::Reject { .. }) => Ok(()),
            (Asked::Permission, Reply::Answers { .. }) => {
                Err("this asks for a permission: reply with once, always or reject".to_owned())
            }
            (Asked::Questions(_), Reply::Once | Reply::Always) => {
                Err("this is a question: reply with answers or reject".to_owned())
            }
            (Asked::Questions(questions), Reply::Answers { answers }) => {
                if answers.len() != questions.len() {
                    return Err(format!("{} answers to {} questions", answers.len(), questions.len()));
                }
                let single = questions
                    .iter()
                    .zip(answers)
                    .find(|(question, given)| !question.multiple && given.len() > 1);
                match single {
                    Some((question, _)) => {
                        Err(format!("only one answer may be given to: {}", question.question))
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

/// Asks for a permission and waits; `None` when the turn was stopped meanwhile.
pub(super) async fn permission(
    turn: &Turn,
    call_id: &str,
    tool: &str,
    patterns: Vec<String>,
    cancel: &CancellationToken,
) -> Option<Reply> {
    let (call_id, tool) = (call_id.to_owned(), tool.to_owned());
    let event = |id| EventBody::PermissionAsked { id, call_id, tool, patterns };
    ask(turn, Asked::Permission, event, cancel).await
}

/// Asks questions and waits; `None` when the turn was stopped meanwhile.
pub(super) async fn questions(
    turn: &Turn,
    call_id: &str,
    questions: Vec<Question>,
    cancel: &CancellationToken,
) -> Option<Reply> {
    let call_id = call_id.to_owned();
    let asked = Asked::Questions(questions.clone());
    ask(turn, asked, |id| EventBody::QuestionAsked { id, call_id, questions }, cancel).await
}

async fn ask(
    turn: &Turn,
    asked: Asked,
    event: impl FnOnce(String) -> EventBody,
    cancel: &CancellationToken,
) -> Option<Reply> {
    let desk = &turn.shared.desk;
    // The turn's number makes an id unlike any of an earlier life of the program: a late reply cannot hit another.
    let count = desk.count.fetch_add(1, Ordering::Relaxed) + 1;
    let id = format!("{}.{}.{count}", turn.session, turn.number);
    let (reply, answer) = oneshot::channel();
    desk.lock().insert(id.clone(), Open { asked, reply });
    let _closing = Closing { turn, id: id.clone() };
    turn.tell(event(id));
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        reply = answer => reply.ok(),
    }
}

//! The experimental harness: our own loop, in the daemon (K3).
//!
//! One [`Native`] runs many sessions. A turn is one task: it streams the model (`turn`), runs the calls of a message side
//! by side (`calls`) and keeps what was said ([`conversation`]). Everything a listener hears of one session
//! comes from that session's own task, so it is in order.

mod ask;
mod calls;
pub mod conversation;
mod judge;
mod offer;
mod paths;
mod sessions;
mod subjects;
mod system;
mod tools;
mod turn;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use beeuni_child::Spawner;
use beeuni_fetch::Fetcher;
use beeuni_manifest::AgentMode;
use beeuni_protocol::event::Reply;
use tokio::sync::{OnceCell, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::contract::{Harness, HarnessError, Listener, Prompt, Setup};
use ask::Desk;
use conversation::Conversation;
use sessions::Sessions;
use turn::Turn;

/// The longest prompt, in bytes. More is no question but a file: it belongs into the checkout.
pub const MAX_PROMPT: usize = 1 << 20;

/// What the harness needs beside the project.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder for conversations; made (0700) when it is missing.
    pub state: PathBuf,
    /// Starts the children of `bash`.
    pub spawner: Spawner,
    /// Nobody watches: what would be asked is denied with words instead. Where watchers come and go, leave it false
    /// and reject what is open when the last one leaves.
    pub unattended: bool,
    /// The clock, for the date that agents are told. Usually [`SystemTime::now`].
    pub now: fn() -> SystemTime,
}

/// The experimental harness. Dropping it stops every turn; [`Harness::shut_down`] also waits for their ends.
pub struct Native {
    shared: Arc<Shared>,
}

/// What every turn of one harness shares.
struct Shared {
    listener: Arc<dyn Listener>,
    options: Options,
    sessions: Sessions,
    desk: Desk,
    /// Held while a file is changed, so that parallel edits of one message lose nothing.
    files: tokio::sync::Mutex<()>,
    fetch: beeuni_fetch::Options,
    fetcher: OnceCell<Fetcher>,
    tasks: TaskTracker,
    /// Fires at a shut-down; every turn's own token hangs below it.
    down: CancellationToken,
}

impl Native {
    /// Takes the project and is ready for prompts. Starts nothing by itself.
    pub fn start(setup: Arc<Setup>, listener: Arc<dyn Listener>, options: Options) -> Native {
        Native::start_with(setup, listener, options, beeuni_fetch::Options::default())
    }

    /// The same, with other limits for `webfetch`, or with addresses that it may reach although they are not public.
    pub fn start_with(
        setup: Arc<Setup>,
        listener: Arc<dyn Listener>,
        options: Options,
        fetch: beeuni_fetch::Options,
    ) -> Native {
        Native {
            shared: Arc::new(Shared {
                listener,
                options,
                sessions: Sessions::new(setup),
                desk: Desk::default(),
                files: tokio::sync::Mutex::default(),
                fetch,
                fetcher: OnceCell::new(),
                tasks: TaskTracker::new(),
                down: CancellationToken::new(),
            }),
        }
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        self.shared.down.cancel();
    }
}

#[async_trait]
impl Harness for Native {
    async fn prompt(&self, prompt: Prompt) -> Result<(), HarnessError> {
        let shared = Arc::clone(&self.shared);
        check_text(&prompt.text)?;
        let cancel = shared.down.child_token();
        shared.sessions.freed(&prompt.session).await;
        let (setup, running) = shared.sessions.begin(&shared, &prompt.session, cancel.clone())?;
        may_lead(&setup, &prompt.agent)?;
        let (accepted, answer) = oneshot::channel();
        // The task owns the turn from here on: a caller that gives up waiting does not leave a turn half begun.
        self.shared.tasks.spawn(async move {
            let session = prompt.session.clone();
            let opened =
                Conversation::lead(&shared.options.state, &session, &prompt.agent, &prompt.text).await;
            let conversation = match opened {
                Ok(conversation) => conversation,
                Err(error) => {
                    drop(running);
                    let _ = accepted.send(Err(error));
                    return;
                }
            };
            let turn = Turn {
                shared: Arc::clone(&shared),
                setup,
                root: session.clone(),
                session,
                session_agent: prompt.agent.clone(),
                agent: prompt.agent,
                number: conversation.turns(),
                cancel,
            };
            turn.started(&prompt.text);
            let _ = accepted.send(Ok(()));
            turn.run(conversation).await;
            drop(running);
        });
        answer.await.unwrap_or(Err(HarnessError::Down))
    }

    async fn stop(&self, session: &str) {
        self.shared.sessions.stop(session).await;
    }

    async fn reply(&self, id: &str, reply: Reply) -> Result<(), HarnessError> {
        self.shared.desk.reply(id, reply)
    }

    async fn reload(&self, setup: Arc<Setup>) -> Result<(), HarnessError> {
        self.shared.sessions.reload(setup, &self.shared.down)
    }

    async fn shut_down(&self) {
        self.shared.sessions.shut_down(&self.shared.down);
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

fn check_text(text: &str) -> Result<(), HarnessError> {
    if text.trim().is_empty() {
        return Err(HarnessError::Prompt("the prompt is empty".to_owned()));
    }
    if text.len() > MAX_PROMPT {
        let words = format!(
            "the prompt has {} bytes, and at most {MAX_PROMPT} are taken; put the text into a file and name the file",
            text.len()
        );
        return Err(HarnessError::Prompt(words));
    }
    Ok(())
}

/// Whether the agent can lead a session.
fn may_lead(setup: &Setup, agent: &str) -> Result<(), HarnessError> {
    let refuse = |why: &str| Err(HarnessError::Agent(format!("agent {agent} {why}")));
    let Some(entry) = setup.manifest.agents.get(agent) else {
        return refuse("is not declared in beeuni.yaml");
    };
    if !entry.value.enabled {
        return refuse("is switched off (enabled: false)");
    }
    if entry.value.mode == AgentMode::Subagent {
        return refuse("has mode subagent: it is started with task and leads no session");
    }
    if !setup.agents.contains_key(agent) {
        return refuse("has no model");
    }
    Ok(())
}

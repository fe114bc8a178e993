//! `task`: a subagent does a part of the work in a session of its own (A4).

use std::sync::Arc;

use beeuni_manifest::{Action, Agent, AgentMode};
use beeuni_protocol::event::{EventBody, FinishReason};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::contract::{HarnessError, Setup};
use crate::native::calls::Answer;
use crate::native::conversation::{self, Child, Conversation};
use crate::native::turn::Turn;

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "description": {"type": "string", "description": "The task in three to five words."},
    "prompt": {"type": "string", "description": "What the subagent should do and what it should answer. It knows nothing else."},
    "subagent_type": {"type": "string", "description": "Which subagent."},
    "task_id": {"type": "string", "description": "Goes on with an earlier task of this session, whose answer gave this id."}
  },
  "required": ["description", "prompt", "subagent_type"]
}"#;

/// Names the subagents: declared, switched on, of mode `subagent` or `all`, and not forbidden by a rule.
pub(super) fn description(setup: &Setup, agent: &Agent) -> String {
    let lines: Vec<String> = subagents(setup)
        .filter(|(name, _)| agent.permission.action("task", &[(*name).to_owned()]) != Action::Deny)
        .map(|(name, subagent)| match subagent.description.as_deref() {
            Some(words) => format!("- {name}: {words}"),
            None => format!("- {name}"),
        })
        .collect();
    let list = if lines.is_empty() { "There is none now.".to_owned() } else { lines.join("\n") };
    format!(
        "Gives a part of the work to a subagent and waits for its answer, which only you see. Tasks that do not need \
each other can be started side by side in one message. The subagents:\n{list}"
    )
}

fn subagents(setup: &Setup) -> impl Iterator<Item = (&str, &Agent)> {
    let agents = setup.manifest.agents.iter().map(|(name, entry)| (name.as_str(), &entry.value));
    agents.filter(|(name, agent)| {
        agent.enabled && agent.mode != AgentMode::Primary && setup.agents.contains_key(*name)
    })
}

#[derive(Deserialize)]
pub(in crate::native) struct Task {
    prompt: String,
    pub(super) subagent_type: String,
    task_id: Option<String>,
}

impl Task {
    pub(super) async fn run(self, turn: &Turn, call_id: &str, cancel: &CancellationToken) -> Answer {
        let Task { prompt, subagent_type: agent, task_id } = self;
        if turn.is_child() {
            return Answer::denied("a subagent cannot start another one");
        }
        let setup = &turn.setup;
        if !subagents(setup).any(|(name, _)| name == agent) {
            let names: Vec<&str> = subagents(setup).map(|(name, _)| name).collect();
            let there = if names.is_empty() {
                "there is none".to_owned()
            } else {
                format!("there is {}", names.join(", "))
            };
            return Answer::error(format!("no subagent named {agent}; {there}"));
        }
        if prompt.trim().is_empty() {
            return Answer::error("the prompt is empty");
        }
        let cancel = cancel.child_token();
        let begun = begin(turn, task_id, &cancel);
        let (session, running) = match begun {
            Ok(begun) => begun,
            Err(words) => return Answer::error(words),
        };
        let state = &turn.shared.options.state;
        let child = Child { parent: turn.session.clone(), agent: agent.clone() };
        let opened = match Conversation::delegate(state, &session, child, &prompt).await {
            Ok(opened) => opened,
            Err(error) => return Answer::error(error.to_string()),
        };
        turn.tell(EventBody::ChildSession {
            child: session.clone(),
            call_id: call_id.to_owned(),
            agent: agent.clone(),
        });
        let inner = Turn {
            shared: Arc::clone(&turn.shared),
            setup: Arc::clone(setup),
            session: session.clone(),
            root: turn.root.clone(),
            session_agent: turn.session_agent.clone(),
            agent: agent.clone(),
            number: opened.turns(),
            cancel,
        };
        inner.started(&prompt);
        // A turn holds calls and a call may hold a turn: the box ends the circle.
        let outcome = Box::pin(inner.run(opened)).await;
        drop(running);
        let id = format!("task_id: {session}");
        match (outcome.reason, outcome.error) {
            (FinishReason::Stop, _) => {
                Answer::ok(format!("{}\n\n[{id}; give it to go on with this subagent]", outcome.text))
            }
            (_, Some(error)) => Answer::error(format!("the subagent {agent} failed: {error}\n\n[{id}]")),
            (_, None) => Answer { text: format!("{}\n\n[{id}]", turn.stop_words()), ..Answer::stopped(turn) },
        }
    }
}

/// A free session for a new task, or the one of an earlier task.
fn begin(
    turn: &Turn,
    task_id: Option<String>,
    cancel: &CancellationToken,
) -> Result<(String, crate::native::sessions::Running), String> {
    let shared = &turn.shared;
    let state = &shared.options.state;
    if let Some(id) = task_id.filter(|id| !id.is_empty()) {
        if !conversation::is_child(&id, &turn.session) || !conversation::exists(state, &id) {
            return Err(format!("no task {id} in this session; leave task_id out to start one"));
        }
        return match shared.sessions.begin(shared, &id, cancel.clone()) {
            Ok((_, running)) => Ok((id, running)),
            Err(HarnessError::Busy(_)) => Err(format!("task {id} is still running")),
            Err(error) => Err(error.to_string()),
        };
    }
    let mut taken: Vec<String> = Vec::new();
    loop {
        let id = conversation::free_child(state, &turn.session, |id| taken.iter().any(|other| other == id));
        match shared.sessions.begin(shared, &id, cancel.clone()) {
            Ok((_, running)) => return Ok((id, running)),
            // A task beside this one took it and has not written its first line yet.
            Err(HarnessError::Busy(_)) => taken.push(id),
            Err(error) => return Err(error.to_string()),
        }
    }
}

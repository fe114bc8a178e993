//! What a rule of the agent's `permission` says of one call, and asking the user where it says `ask`.

use std::path::Path;

use beeuni_manifest::{Action, Permission};
use beeuni_protocol::event::Reply;
use tokio_util::sync::CancellationToken;

use super::ask;
use super::calls::Answer;
use super::sessions::Grant;
use super::turn::Turn;

/// The permission for paths outside of what belongs to the session. Answered with `always` it holds for the folder, so
/// that each further file in it does not ask again.
pub(super) const EXTERNAL: &str = "external_directory";

/// Judges a call by the rules for `key`, which is the tool's name or its part (`memory` views). No rule means allow.
pub(super) async fn ruled(
    turn: &Turn,
    call_id: &str,
    tool: &str,
    key: &str,
    subjects: Vec<String>,
    cancel: &CancellationToken,
) -> Result<(), Answer> {
    decide(turn, call_id, tool, key, subjects, Permission::action, cancel).await
}

/// Judges what needs a permission of its own: `external_directory` and `doom_loop`. No rule means ask.
pub(super) async fn guarded(
    turn: &Turn,
    call_id: &str,
    key: &str,
    tool: &str,
    subjects: Vec<String>,
    cancel: &CancellationToken,
) -> Result<(), Answer> {
    decide(turn, call_id, tool, key, subjects, or_ask, cancel).await
}

/// The rule under the key, else the one for everything, else ask.
fn or_ask(permission: &Permission, key: &str, subjects: &[String]) -> Action {
    let for_all = || permission.rules.get("*").is_some_and(|rules| rules.contains_key("*"));
    if permission.rules.contains_key(key) || for_all() {
        permission.action(key, subjects)
    } else {
        Action::Ask
    }
}

async fn decide(
    turn: &Turn,
    call_id: &str,
    tool: &str,
    key: &str,
    subjects: Vec<String>,
    action: fn(&Permission, &str, &[String]) -> Action,
    cancel: &CancellationToken,
) -> Result<(), Answer> {
    let permission = turn.permission();
    match action(&permission, key, &subjects) {
        Action::Allow => return Ok(()),
        Action::Deny => {
            let words =
                format!("a permission rule of agent {} forbids {}", turn.agent, what(tool, &subjects));
            return Err(Answer::denied(words));
        }
        Action::Ask => {}
    }
    let grant = |subject: &String| Grant {
        agent: turn.agent.clone(),
        key: key.to_owned(),
        subject: if key == EXTERNAL { folder(subject) } else { subject.clone() },
    };
    let open: Vec<String> = subjects
        .into_iter()
        .filter(|subject| action(&permission, key, std::slice::from_ref(subject)) == Action::Ask)
        .filter(|subject| !turn.shared.sessions.granted(&turn.root, &grant(subject)))
        .collect();
    if open.is_empty() {
        return Ok(());
    }
    let asked = what(tool, &open);
    if turn.shared.options.unattended {
        let words =
            format!("{asked} needs the user's permission, and nobody watches this session; it was not run");
        return Err(Answer::denied(words));
    }
    match ask::permission(turn, call_id, key, open.clone(), cancel).await {
        None => Err(Answer::stopped(turn)),
        Some(Reply::Once) => Ok(()),
        Some(Reply::Always) => {
            for subject in &open {
                turn.shared.sessions.grant(&turn.root, grant(subject));
            }
            Ok(())
        }
        Some(Reply::Reject { message }) if !message.trim().is_empty() => {
            Err(Answer::denied(format!("the user refused {asked} and said: {message}")))
        }
        Some(Reply::Reject { .. } | Reply::Answers { .. }) => {
            Err(Answer::denied(format!("the user refused {asked}")))
        }
    }
}

fn folder(path: &str) -> String {
    Path::new(path).parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned()
}

/// `bash (rm -rf x; ls)` as words for a reader.
fn what(tool: &str, subjects: &[String]) -> String {
    match subjects {
        [] => tool.to_owned(),
        [only] if only == "*" => tool.to_owned(),
        several => format!("{tool} ({})", several.join(", ")),
    }
}

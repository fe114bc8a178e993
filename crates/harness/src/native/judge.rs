//! What a rule of the agent's `permission` says of one call, and asking the user where it says `ask`.

use std::path::Path;

use beeuni_manifest::{Action, Permission};
use beeuni_protocol::event::Reply;
use tokio_util::sync::CancellationToken;

use super::ask;
use super::calls::Answer;
use super::sessions::Grant;
use super::turn::Turn;

/// The permission for paths outside of what belongs to the session.
pub(super) const EXTERNAL: &str = "external_directory";

/// The permission for a call that is made again and again.
pub(super) const LOOP: &str = "doom_loop";

/// A call that is to be judged.
pub(super) struct Case<'a> {
    pub turn: &'a Turn,
    pub call_id: &'a str,
    pub tool: &'a str,
    pub cancel: &'a CancellationToken,
}

impl Case<'_> {
    /// Judges a call by the rules for `key`, which is the tool's name or the part of it that is used. No rule means
    /// allow. An `always` holds for whatever the same rule asks about.
    pub async fn ruled(&self, key: &str, subjects: Vec<String>) -> Result<(), Answer> {
        let permission = self.turn.permission();
        self.decide(&permission, key, subjects, |subject| asking_rule(&permission, key, subject)).await
    }

    /// Judges what needs a permission of its own, `external_directory` or `doom_loop`. No rule means ask. An `always`
    /// holds for the folder of an outside path, and for the very call of a loop.
    pub async fn guarded(&self, key: &str, subjects: Vec<String>) -> Result<(), Answer> {
        let mut permission = self.turn.permission();
        permission.rules.entry("*".to_owned()).or_default().entry("*".to_owned()).or_insert(Action::Ask);
        let folder =
            |path: &str| Path::new(path).parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
        let scope = |subject: &str| if key == EXTERNAL { folder(subject) } else { subject.to_owned() };
        self.decide(&permission, key, subjects, scope).await
    }

    async fn decide(
        &self,
        permission: &Permission,
        key: &str,
        subjects: Vec<String>,
        scope: impl Fn(&str) -> String,
    ) -> Result<(), Answer> {
        let Case { turn, call_id, tool, cancel } = self;
        match permission.action(key, &subjects) {
            Action::Allow => return Ok(()),
            Action::Deny => {
                let words =
                    format!("a permission rule of agent {} forbids {}", turn.agent, what(tool, &subjects));
                return Err(Answer::denied(words));
            }
            Action::Ask => {}
        }
        let sessions = &turn.shared.sessions;
        let grant =
            |subject: &str| Grant { agent: turn.agent.clone(), key: key.to_owned(), scope: scope(subject) };
        let open: Vec<String> = subjects
            .into_iter()
            .filter(|subject| permission.action(key, std::slice::from_ref(subject)) == Action::Ask)
            .filter(|subject| !sessions.granted(&turn.root, &grant(subject)))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let asked = what(tool, &open);
        if turn.shared.options.unattended {
            let words = format!(
                "{asked} needs the user's permission, and nobody watches this session; it was not run"
            );
            return Err(Answer::denied(words));
        }
        let shown = if key == EXTERNAL || key == LOOP { key } else { tool };
        match ask::permission(turn, call_id, shown, open.clone(), cancel).await {
            None => Err(Answer::stopped(turn)),
            Some(Reply::Once) => Ok(()),
            Some(Reply::Always) => {
                open.iter().for_each(|subject| sessions.grant(&turn.root, grant(subject)));
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
}

/// The rule that asks about a subject: the one that, if it said allow, would let it pass.
fn asking_rule(permission: &Permission, key: &str, subject: &str) -> String {
    let subjects = [subject.to_owned()];
    let rules =
        permission.rules.iter().flat_map(|(key, rules)| rules.keys().map(move |pattern| (key, pattern)));
    let asks = |(name, pattern): &(&String, &String)| {
        let mut without = permission.clone();
        let action = without.rules.get_mut(*name).and_then(|rules| rules.get_mut(*pattern));
        if let Some(action) = action {
            *action = Action::Allow;
        }
        without.action(key, &subjects) == Action::Allow
    };
    let found = rules.into_iter().find(asks);
    found.map_or_else(|| subject.to_owned(), |(key, pattern)| format!("{key}: {pattern}"))
}

/// `bash (rm -rf x, ls)` as words for a reader.
fn what(tool: &str, subjects: &[String]) -> String {
    match subjects {
        [] => tool.to_owned(),
        [only] if only == "*" => tool.to_owned(),
        several => format!("{tool} ({})", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_that_asks_is_found() {
        let mut permission = Permission::default();
        for (key, pattern) in [("*", "*"), ("bash", "git *"), ("edit", "*"), ("edit", "src/*")] {
            permission.rules.entry(key.to_owned()).or_default().insert(pattern.to_owned(), Action::Ask);
        }
        let check = |key: &str, subject: &str, expected: &str| {
            assert_eq!(asking_rule(&permission, key, subject), expected, "{key} {subject}");
        };
        check("bash", "git push", "bash: git *");
        check("bash", "ls", "*: *");
        check("write", "src/a", "edit: src/*");
        check("edit", "b", "edit: *");
        check("echo", "*", "*: *");
    }
}

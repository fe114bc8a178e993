//! Allow, ask and deny rules of an agent's front matter.

use std::cmp::Reverse;

use indexmap::IndexMap;

use crate::names::TERMINAL_PREFIX;

/// What a rule says. The order is that of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Run it.
    Allow,
    /// Ask the user first.
    Ask,
    /// Refuse.
    Deny,
}

impl Action {
    /// `allow`, `ask` or `deny`.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Allow => "allow",
            Action::Ask => "ask",
            Action::Deny => "deny",
        }
    }

    /// The action of that word.
    pub fn named(word: &str) -> Option<Self> {
        [Action::Allow, Action::Ask, Action::Deny].into_iter().find(|action| action.as_str() == word)
    }
}

/// What to hand to [`Permission::action`] for the `memory` tool's `view` command, which reads; the other commands edit.
pub const MEMORY_VIEW: &str = "memory view";

/// The keys that are no tool of ours but may stand under `permission`.
pub const GUARDS: [&str; 2] = ["external_directory", "doom_loop"];

/// `permission`: key to pattern to action, in the file's order. One action for everything is `*` → `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// The rules.
    pub rules: IndexMap<String, IndexMap<String, Action>>,
}

impl Permission {
    /// The action for one use of `tool`: `subjects` are what its globs are matched against (the simple commands of a
    /// shell line, a path, URLs, a name; `*` where a tool has none). Deny beats ask beats allow over several subjects.
    /// No rule at all means allow. For a view of `memory` the tool is [`MEMORY_VIEW`].
    ///
    /// For each subject the rules under the tool's own name are asked first, then those of its capability, then those
    /// under keys with wildcards, the longest first; the first that has a matching pattern decides.
    pub fn action(&self, tool: &str, subjects: &[String]) -> Action {
        let any = ["*".to_owned()];
        let subjects = if subjects.is_empty() { &any } else { subjects };
        let layers = self.layers(tool);
        let one =
            |subject: &String| layers.iter().find_map(|rules| best(rules, subject)).unwrap_or(Action::Allow);
        subjects.iter().map(one).max().unwrap_or(Action::Allow)
    }

    fn layers(&self, tool: &str) -> Vec<&IndexMap<String, Action>> {
        let name = if tool == MEMORY_VIEW { "memory" } else { tool };
        let capability = capability(tool);
        let exact = [Some(name), capability].into_iter().flatten().filter_map(|key| self.rules.get(key));
        let mut wild: Vec<_> = self
            .rules
            .iter()
            .enumerate()
            .filter(|(_, (key, _))| key.contains(['*', '?']))
            .filter(|(_, (key, _))| matches(key, name) || capability.is_some_and(|other| matches(key, other)))
            .collect();
        wild.sort_by_key(|(line, (key, _))| Reverse((key.chars().count(), *line)));
        exact.chain(wild.into_iter().map(|(_, (_, rules))| rules)).collect()
    }
}

/// The capability that a tool falls under, where it is not its own name.
pub fn capability(tool: &str) -> Option<&'static str> {
    match tool {
        "write" | "apply_patch" | "memory" => Some("edit"),
        "web_search" | "image_search" => Some("websearch"),
        "scrape_webpage" => Some("webfetch"),
        MEMORY_VIEW => Some("read"),
        name if name.starts_with(TERMINAL_PREFIX) => Some("bash"),
        _ => None,
    }
}

/// The longest pattern that matches; of two of one length the later line.
fn best(rules: &IndexMap<String, Action>, subject: &str) -> Option<Action> {
    rules
        .iter()
        .filter(|(pattern, _)| matches(pattern, subject))
        .max_by_key(|(pattern, _)| pattern.chars().count())
        .map(|(_, action)| *action)
}

/// Whether the whole `subject` fits `pattern`: `*` stands for any text, `?` for one character.
pub fn matches(pattern: &str, subject: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let subject: Vec<char> = subject.chars().collect();
    let (mut at, mut in_pattern) = (0, 0);
    // Only the last `*` is ever tried again, so a hostile pattern costs the product of both lengths at most.
    let mut retry = None;
    while at < subject.len() {
        match pattern.get(in_pattern) {
            Some('*') => {
                retry = Some((in_pattern, at));
                in_pattern += 1;
            }
            Some(c) if *c == '?' || *c == subject[at] => {
                in_pattern += 1;
                at += 1;
            }
            _ => match retry {
                Some((star, from)) => {
                    retry = Some((star, from + 1));
                    in_pattern = star + 1;
                    at = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[in_pattern..].iter().all(|c| *c == '*')
}

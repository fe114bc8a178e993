//! Which tools a session gets (L1–L5, S2).

use crate::manifest::{Manifest, ToolEntry, ToolSource};
use crate::names::{BEEUNI_TOOLS, is_beeuni_tool};

/// A Beeuni tool as Beeuni ships it.
pub const KIND_BEEUNI: &str = "beeuni";
/// A Beeuni tool that a module of the project replaces (L5).
pub const KIND_OVERRIDDEN: &str = "beeuni (overridden)";
/// The project's own tool.
pub const KIND_PROJECT: &str = "project";

impl Manifest {
    /// The tools of a session: the Beeuni tools in their fixed order, then the project's in the order of declaration.
    pub fn session_tools(&self) -> Vec<ToolEntry> {
        if !self.tools.has_key {
            let all = BEEUNI_TOOLS.iter().map(|name| ToolEntry {
                name: (*name).to_owned(),
                kind: KIND_BEEUNI,
                source: ToolSource::Beeuni,
                place: None,
            });
            return all.collect();
        }
        let entries = &self.tools.entries;
        let beeuni = BEEUNI_TOOLS.iter().filter_map(|name| entries.get_key_value(*name));
        let project = entries.iter().filter(|(name, _)| !is_beeuni_tool(name));
        let tools = beeuni.chain(project).map(|(name, entry)| ToolEntry {
            name: name.clone(),
            kind: match (is_beeuni_tool(name), &entry.value) {
                (true, ToolSource::Beeuni) => KIND_BEEUNI,
                (true, ToolSource::Module(_)) => KIND_OVERRIDDEN,
                (false, _) => KIND_PROJECT,
            },
            source: entry.value.clone(),
            place: Some(entry.place.clone()),
        });
        tools.collect()
    }

    /// The Beeuni tools that the project's `tools:` leaves out, in their fixed order.
    pub fn removed(&self) -> Vec<&'static str> {
        let gone = |name: &&str| self.tools.has_key && !self.tools.entries.contains_key(*name);
        BEEUNI_TOOLS.into_iter().filter(gone).collect()
    }
}

impl ToolEntry {
    /// SOURCE in `tools ls`: `beeuni:<name>` or the module's path.
    pub fn source_text(&self) -> String {
        match &self.source {
            ToolSource::Beeuni => format!("beeuni:{}", self.name),
            ToolSource::Module(path) => path.clone(),
        }
    }
}

//! `skill`: loads instructions that the project keeps for a kind of task.

use beeuni_manifest::{Action, Agent};
use serde::Deserialize;

use super::Places;
use super::glob::files;
use crate::contract::{AgentSetup, Skill};

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "name": {"type": "string", "description": "The skill's name."}
  },
  "required": ["name"]
}"#;

/// The most files that are named.
const MAX_FILES: usize = 100;

/// Names the skills that the agent may have and that no rule forbids.
pub(super) fn description(agent: &Agent, own: &AgentSetup) -> String {
    let allowed =
        |skill: &&Skill| agent.permission.action("skill", std::slice::from_ref(&skill.name)) != Action::Deny;
    let lines: Vec<String> = own
        .skills
        .iter()
        .filter(allowed)
        .map(|skill| format!("- {}: {}", skill.name, skill.description))
        .collect();
    if lines.is_empty() {
        return "Loads instructions that the project keeps for a kind of task. There are none now."
            .to_owned();
    }
    format!(
        "Loads instructions that the project keeps for a kind of task. Load one when the task is of its kind:\n{}",
        lines.join("\n")
    )
}

#[derive(Deserialize)]
pub(in crate::native) struct Load {
    pub(super) name: String,
}

impl Load {
    pub(super) fn run(self, skills: &[Skill], places: &Places) -> Result<String, String> {
        let Some(skill) = skills.iter().find(|skill| skill.name == self.name) else {
            let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
            let there = if names.is_empty() {
                "there is none".to_owned()
            } else {
                format!("there is {}", names.join(", "))
            };
            return Err(format!("no skill named {}; {there}", self.name));
        };
        let folder = places.checkout().join(&skill.folder);
        let others: Vec<String> = files(&folder)
            .filter(|entry| entry.depth() > 1 || entry.file_name() != "SKILL.md")
            .take(MAX_FILES)
            .map(|entry| places.shown(entry.path()))
            .collect();
        let mut text = skill.text.trim_end().to_owned();
        if !others.is_empty() {
            text.push_str(&format!("\n\n[files of this skill, in {}]\n{}", skill.folder, others.join("\n")));
        }
        Ok(text)
    }
}

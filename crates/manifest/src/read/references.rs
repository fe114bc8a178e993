//! Names that one part uses and another declares (V3, V4).

use std::collections::HashSet;

use crate::files::{FileKind, Files};
use crate::finding::Severity;
use crate::manifest::Manifest;
use crate::names::{
    BEEUNI_TOOLS, HARNESS_TOOLS, OPENCODE_TOOLS, is_beeuni_tool, is_harness_tool, suggestion,
};
use crate::permission::GUARDS;

use super::MAX_FINDINGS;
use super::agents::Declared;
use super::reader::{At, Reader};
use super::tools::not_loaded_text;

/// Every name that a list of tools may use.
pub(super) struct Known<'n> {
    declared: HashSet<&'n str>,
    /// Names of files in the standard harness's own folder; a named export there is `<file>_<export>` (H2).
    folder: HashSet<String>,
    loaded: HashSet<String>,
}

impl<'n> Known<'n> {
    pub fn new(files: &dyn Files, manifest: &Manifest, declared: Vec<&'n str>) -> Self {
        let stem = |name: String| name.strip_suffix(".ts").or(name.strip_suffix(".js")).map(str::to_owned);
        Known {
            declared: declared.into_iter().collect(),
            folder: files.file_names(OPENCODE_TOOLS).into_iter().filter_map(stem).collect(),
            loaded: manifest.session_tools().into_iter().map(|tool| tool.name).collect(),
        }
    }

    fn contains(&self, name: &str) -> bool {
        let exported = || name.match_indices('_').any(|(at, _)| self.folder.contains(&name[..at]));
        name == "*"
            || is_harness_tool(name)
            || is_beeuni_tool(name)
            || self.declared.contains(name)
            || self.folder.contains(name)
            || exported()
    }

    fn suggest(&self, name: &str) -> String {
        let fixed = HARNESS_TOOLS.into_iter().chain(BEEUNI_TOOLS);
        let mut own: Vec<&str> =
            self.declared.iter().copied().chain(self.folder.iter().map(String::as_str)).collect();
        own.sort_unstable();
        suggestion(name, fixed.chain(own))
    }
}

pub(super) fn check(
    reader: &mut Reader<'_>,
    manifest: &Manifest,
    known: &Known<'_>,
    declared: &[Declared<'_>],
    limits: Option<&At<'_>>,
) {
    for names in declared {
        for (at, name) in &names.tools {
            let message = if !known.contains(name) {
                // Past the number that is kept, nearness is not worth its time.
                let hint =
                    if reader.findings.len() < MAX_FINDINGS { known.suggest(name) } else { String::new() };
                unknown_text(name) + &hint
            } else if is_beeuni_tool(name) && !known.loaded.contains(*name) && !known.declared.contains(name)
            {
                not_loaded_text(name)
            } else {
                continue;
            };
            reader.warn_at_key(at, message);
        }
        for (at, name) in &names.connectors {
            if !manifest.connectors.contains_key(*name) {
                let hint = suggestion(name, manifest.connectors.keys().map(String::as_str));
                reader.warn(at, format!("no connector \"{name}\" is declared under `connectors`.{hint}"));
            }
        }
        for (at, name) in &names.skills {
            let file = format!("skills/{name}/SKILL.md");
            if reader.files.kind(&file) != FileKind::File {
                let skills = reader.files.folders("skills");
                let hint = suggestion(name, skills.iter().map(String::as_str));
                reader.warn(at, format!("there is no skill \"{name}\": {file} does not exist.{hint}"));
            }
        }
    }
    for rule in std::mem::take(&mut reader.permissions) {
        let key = rule.key.as_str();
        let wild = key.contains(['*', '?']);
        if !wild && !known.contains(key) && !GUARDS.contains(&key) {
            let message = format!(
                "\"{key}\" is no tool and no capability, so this rule decides nothing.{}",
                known.suggest(key)
            );
            reader.note(Severity::Warning, &rule.file, rule.span, rule.path, message);
        }
    }
    let entries = limits.map(At::entries).unwrap_or_default();
    for tool in entries.iter().filter(|at| at.key == "tools").flat_map(At::entries) {
        if !known.loaded.contains(tool.key) && !known.declared.contains(tool.key) {
            let hint = suggestion(tool.key, known.loaded.iter().map(String::as_str));
            reader.warn_at_key(
                &tool,
                format!("no tool \"{}\" is loaded, so this limits nothing.{hint}", tool.key),
            );
        }
    }
}

/// V4.
fn unknown_text(name: &str) -> String {
    format!("\"{name}\" is no harness tool, Beeuni tool or tool of this project, so it changes nothing here.")
}

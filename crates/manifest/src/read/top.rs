//! The top-level keys, merged over all files.

use indexmap::IndexMap;

use crate::files::FileKind;
use crate::finding::Severity;
use crate::manifest::{Agent, AgentMode, Connector, Entry, EnvNames, Harness, Manifest, Project, Selection};
use crate::names::{self, BUILT_IN_AGENT, is_agent_name, is_beeuni_tool, suggestion};
use crate::yaml::Value;

use super::agents::{self, Declared};
use super::documents::Loaded;
use super::reader::{At, Reader, shown};
use super::references::{self, Known};
use super::tools::both_files_text;
use super::{limits, models, tools};

const KEYS: [&str; 11] = [
    "beeuni_version",
    "default_agent",
    "harness",
    "project",
    "env",
    "agents",
    "tools",
    "connectors",
    "models",
    "imports",
    "limits",
];

/// The keys of an imported file.
const IMPORTABLE: [&str; 4] = ["agents", "tools", "connectors", "imports"];

pub(super) const HARNESSES: [(&str, Harness); 2] =
    [("standard", Harness::Standard), ("experimental", Harness::Experimental)];

/// Judges every file in the order of merging; what one key needs to know of another is judged at the end.
pub(super) fn merge(reader: &mut Reader<'_>, loaded: &Loaded) -> Manifest {
    let mut manifest = Manifest::default();
    let mut declared: Vec<Declared<'_>> = Vec::new();
    let (mut agents_key, mut default_agent, mut tools_key, mut limits_key) = (None, None, None, None);
    let mut tool_names = Vec::new();
    for (index, document) in loaded.documents.iter().enumerate() {
        manifest.files.push(document.file.clone());
        for at in At::root(&document.file, String::new(), &document.root).entries() {
            if index > 0 && KEYS.contains(&at.key) && !IMPORTABLE.contains(&at.key) {
                let root = &manifest.files[0];
                reader.error_at_key(
                    &at,
                    format!("\"{}\" may stand in the root file only; move it to {root}", at.key),
                );
                continue;
            }
            match at.key {
                "beeuni_version" | "imports" => {}
                "default_agent" => default_agent = Some(at),
                "harness" => manifest.harness = reader.word(&at, &HARNESSES),
                "project" => manifest.project = project(reader, &at),
                "env" => manifest.env = env(reader, &at),
                "models" => manifest.models = models::read(reader, &at),
                "limits" => {
                    manifest.limits = limits::read(reader, &at);
                    limits_key = Some(at);
                }
                "agents" => {
                    agents::add(reader, &at, &mut manifest.agents, &mut declared);
                    agents_key.get_or_insert(at);
                }
                "tools" => {
                    tools::add(reader, &at, &mut manifest.tools);
                    tool_names.extend(at.entries().iter().map(|entry| entry.key));
                    tools_key.get_or_insert(at);
                }
                "connectors" => connectors(reader, &at, &mut manifest.connectors),
                _ => reader.unknown(&at, &KEYS),
            }
        }
    }
    if agents_key.is_none() {
        manifest.agents.insert(BUILT_IN_AGENT.to_owned(), built_in(reader, &manifest.files[0]));
    }
    if !loaded.complete {
        // What the unread file declares is not known, so nothing can be said of what seems to be missing.
        manifest.default_agent = choose(&manifest).unwrap_or_default();
        return manifest;
    }
    manifest.default_agent = lead(reader, &manifest, default_agent.as_ref(), agents_key.as_ref());
    if let Some(at) = &tools_key {
        tools::some_beeuni_tool(reader, at, tool_names.iter().any(|name| is_beeuni_tool(name)));
    }
    let known = Known::new(reader.files, &manifest, tool_names);
    references::check(reader, &manifest, &known, &declared, limits_key.as_ref());
    manifest
}

fn project(reader: &mut Reader<'_>, at: &At<'_>) -> Project {
    let mut project = Project::default();
    for entry in reader.map(at) {
        match entry.key {
            "name" => project.name = reader.text(&entry).map(str::to_owned),
            "description" => project.description = reader.text(&entry).map(str::to_owned),
            _ => reader.unknown(&entry, &["name", "description"]),
        }
    }
    project
}

fn env(reader: &mut Reader<'_>, at: &At<'_>) -> EnvNames {
    let mut env = EnvNames::default();
    for entry in reader.map(at) {
        match entry.key {
            "required" => {
                let context = reader.context;
                for (item, name) in env_names(reader, &entry) {
                    if context.environment.as_ref().is_some_and(|set| !set.contains(name)) {
                        reader.warn(
                            &item,
                            format!("{name} is required and not set; sessions will not start without it"),
                        );
                    }
                    env.required.push(name.to_owned());
                }
            }
            "optional" => {
                env.optional =
                    env_names(reader, &entry).into_iter().map(|(_, name)| name.to_owned()).collect()
            }
            _ => reader.unknown(&entry, &["required", "optional"]),
        }
    }
    env
}

fn env_names<'n>(reader: &mut Reader<'_>, at: &At<'n>) -> Vec<(At<'n>, &'n str)> {
    let names = reader.texts(at);
    names.into_iter().filter(|(item, name)| env_name(reader, item, name)).collect()
}

/// Whether it may name an environment variable; an error when not.
pub(super) fn env_name(reader: &mut Reader<'_>, at: &At<'_>, name: &str) -> bool {
    if names::is_env_name(name) {
        return true;
    }
    let message = if name.starts_with("BEEUNI_") {
        format!("{name}: names that start with BEEUNI_ are Beeuni's own")
    } else {
        format!(
            "{} is no name of an environment variable: capital letters, digits and `_`, at most 64",
            shown(at.value())
        )
    };
    reader.error(at, message);
    false
}

fn connectors(reader: &mut Reader<'_>, at: &At<'_>, all: &mut IndexMap<String, Entry<Connector>>) {
    for entry in reader.map(at) {
        if let Some(first) = all.get(entry.key) {
            let message = both_files_text("connectors", entry.key, &first.place.file, entry.file);
            reader.error_at_key(&entry, message);
            continue;
        }
        if !agent_name(reader, &entry, "connector") {
            continue;
        }
        if !matches!(entry.value(), Value::Map(_)) {
            reader.error(&entry, format!("must be a map, not {}", entry.node.kind()));
            continue;
        }
        for part in entry.entries() {
            match part.key {
                "url" => {
                    models::address(reader, &part);
                }
                "command" if !matches!(part.value(), Value::Text(_)) => drop(reader.texts(&part)),
                "description" => drop(reader.text(&part)),
                "enabled" => drop(reader.boolean(&part)),
                // Connectors are not run yet: what else they need is not settled, so nothing else is judged.
                _ => {}
            }
        }
        let place = reader.place(&entry);
        all.insert(entry.key.to_owned(), Entry { value: Connector::default(), place });
    }
}

pub(super) fn agent_name(reader: &mut Reader<'_>, at: &At<'_>, what: &str) -> bool {
    if is_agent_name(at.key) {
        return true;
    }
    let message = format!(
        "a name of this kind ({what}) starts with a small letter or digit, goes on with those, `_` and `-`, and has at \
         most 128 characters"
    );
    reader.error_at_key(at, message);
    false
}

/// The agent of a project that declares none.
fn built_in(reader: &mut Reader<'_>, root: &str) -> Entry<Agent> {
    let mut agent = agents::empty();
    agent.secrets = Selection::All;
    let file = agents::usual_file(BUILT_IN_AGENT);
    if reader.files.kind(&file) == FileKind::File {
        super::frontmatter::read(reader, BUILT_IN_AGENT, &file, &mut agent);
        agent.file = Some(file);
    }
    Entry { value: agent, place: reader.sources.place(root, 0) }
}

/// The default agent where none is named.
fn choose(manifest: &Manifest) -> Option<String> {
    let mut enabled = manifest.agents.iter().filter(|(_, agent)| agent.value.enabled).map(|(name, _)| name);
    if enabled.clone().any(|name| name == BUILT_IN_AGENT) {
        return Some(BUILT_IN_AGENT.to_owned());
    }
    let only = enabled.next()?;
    enabled.next().is_none().then(|| only.clone())
}

fn lead(
    reader: &mut Reader<'_>,
    manifest: &Manifest,
    named: Option<&At<'_>>,
    agents: Option<&At<'_>>,
) -> String {
    let Some(at) = named else {
        if let Some(name) = choose(manifest) {
            return name;
        }
        let Some(at) = agents else { return String::new() };
        let any_enabled = manifest.agents.values().any(|agent| agent.value.enabled);
        let message = match (manifest.agents.is_empty(), any_enabled) {
            (true, _) => {
                "no agent is declared: declare one, or leave `agents:` out to get the built-in `beeuni`"
            }
            (false, false) => "every agent is switched off, so no session can start",
            (false, true) => {
                "there is more than one agent and none is called `beeuni`: name one as `default_agent`"
            }
        };
        reader.note(
            Severity::Error,
            at.file,
            at.key_span.clone(),
            "default_agent".to_owned(),
            message.to_owned(),
        );
        return String::new();
    };
    let Some(name) = reader.text(at) else { return String::new() };
    let message = match manifest.agents.get(name) {
        None => format!(
            "no agent \"{name}\" is declared.{}",
            suggestion(name, manifest.agents.keys().map(String::as_str))
        ),
        Some(agent) if !agent.value.enabled => format!("the agent \"{name}\" is switched off"),
        Some(agent) if agent.value.mode == AgentMode::Subagent => {
            format!("the agent \"{name}\" is a subagent, so it cannot lead a session")
        }
        Some(_) => return name.to_owned(),
    };
    reader.error(at, message);
    String::new()
}

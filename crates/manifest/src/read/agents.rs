//! `agents:` (A1) and the agents' files.

use indexmap::IndexMap;

use crate::access::ToolAccess;
use crate::files::FileKind;
use crate::manifest::{Agent, Entry, Selection};
use crate::paths;
use crate::yaml::Value;

use super::frontmatter;
use super::reader::{At, Reader, shown};
use super::tools::both_files_text;
use super::top::{HARNESSES, agent_name, env_name};

const KEYS: [&str; 7] = ["file", "enabled", "harness", "tools", "secrets", "connectors", "skills"];

/// The names that an agent's entry uses, to be looked up once everything is merged.
pub(super) struct Declared<'n> {
    /// Names of tools, each at `agents.<name>.tools`.
    pub tools: Vec<(At<'n>, &'n str)>,
    pub connectors: Vec<(At<'n>, &'n str)>,
    pub skills: Vec<(At<'n>, &'n str)>,
}

/// An agent that says nothing about itself.
pub(super) fn empty() -> Agent {
    Agent {
        file: None,
        enabled: true,
        harness: None,
        tools: ToolAccess::All,
        secrets: Selection::None,
        connectors: Selection::None,
        skills: Selection::None,
        description: None,
        model: None,
        mode: Default::default(),
        temperature: None,
        steps: None,
        permission: Default::default(),
        hidden: false,
        prompt: String::new(),
    }
}

/// Where an agent's file is looked for when none is named.
pub(super) fn usual_file(name: &str) -> String {
    format!("agents/{name}.md")
}

pub(super) fn add<'n>(
    reader: &mut Reader<'_>,
    at: &At<'n>,
    all: &mut IndexMap<String, Entry<Agent>>,
    declared: &mut Vec<Declared<'n>>,
) {
    for entry in reader.map(at) {
        if let Some(first) = all.get(entry.key) {
            let message = both_files_text("agents", entry.key, &first.place.file, entry.file);
            reader.error_at_key(&entry, message);
        } else if agent_name(reader, &entry, "agent") {
            let (value, names) = agent(reader, &entry);
            let place = reader.place(&entry);
            all.insert(entry.key.to_owned(), Entry { value, place });
            declared.push(names);
        }
    }
}

fn agent<'n>(reader: &mut Reader<'_>, at: &At<'n>) -> (Agent, Declared<'n>) {
    let mut agent = empty();
    let mut names = Declared { tools: Vec::new(), connectors: Vec::new(), skills: Vec::new() };
    let mut named_file = false;
    for entry in reader.map(at) {
        match entry.key {
            "file" => {
                named_file = true;
                agent.file = file(reader, &entry);
            }
            "enabled" => agent.enabled = reader.boolean(&entry).unwrap_or(false),
            "harness" => agent.harness = reader.word(&entry, &HARNESSES),
            "tools" => agent.tools = access(reader, &entry, &mut names.tools),
            "secrets" => {
                let mut secrets = Vec::new();
                agent.secrets = selection(reader, &entry, &mut secrets);
                if let Selection::Only(list) = &mut agent.secrets {
                    list.retain(|name| {
                        secrets.iter().any(|(item, text)| text == name && env_name(reader, item, text))
                    });
                }
            }
            "connectors" => agent.connectors = selection(reader, &entry, &mut names.connectors),
            "skills" => agent.skills = selection(reader, &entry, &mut names.skills),
            _ => reader.unknown(&entry, &KEYS),
        }
    }
    if !named_file {
        let usual = usual_file(at.key);
        match reader.files.kind(&usual) {
            FileKind::File => agent.file = Some(usual),
            FileKind::Missing => {}
            _ => {
                let message = paths::missing(reader.files, &usual).unwrap_or_default();
                reader.error_at_key(at, message);
            }
        }
    }
    if let Some(file) = agent.file.clone() {
        frontmatter::read(reader, at.key, &file, &mut agent);
    }
    (agent, names)
}

fn file(reader: &mut Reader<'_>, at: &At<'_>) -> Option<String> {
    let path = reader.text(at)?;
    let message = if let Some(fault) = paths::fault(path) {
        format!("\"{path}\" {fault}.")
    } else if !path.ends_with(".md") {
        format!("\"{path}\" must end in .md.")
    } else {
        match paths::missing(reader.files, path) {
            None => return Some(path.to_owned()),
            Some(message) => message,
        }
    };
    reader.error(at, message);
    None
}

/// `all`, `none` or a list of names. What is not understood grants nothing.
fn selection<'n>(reader: &mut Reader<'_>, at: &At<'n>, names: &mut Vec<(At<'n>, &'n str)>) -> Selection {
    match at.value() {
        Value::Text(text) if text == "all" => Selection::All,
        Value::Text(text) if text == "none" => Selection::None,
        Value::Null => Selection::None,
        Value::List(_) => {
            let listed = reader.texts(at);
            let list: Vec<String> = listed.iter().map(|(_, name)| (*name).to_owned()).collect();
            names.extend(listed);
            if list.is_empty() { Selection::None } else { Selection::Only(list) }
        }
        other => {
            reader.error(at, format!("must be `all`, `none` or a list of names, not {}", shown(other)));
            Selection::None
        }
    }
}

/// A1. What is not understood shows no tool.
fn access<'n>(reader: &mut Reader<'_>, at: &At<'n>, names: &mut Vec<(At<'n>, &'n str)>) -> ToolAccess {
    match at.value() {
        Value::Text(text) if text == "all" => ToolAccess::All,
        Value::Text(text) if text == "none" => ToolAccess::None,
        Value::List(_) => {
            let list = tool_names(reader, at, names);
            match list {
                list if list.iter().any(|name| name == "*") => ToolAccess::All,
                list if list.is_empty() => ToolAccess::None,
                list => ToolAccess::Only(list),
            }
        }
        Value::Map(pairs)
            if pairs
                .iter()
                .any(|pair| pair.key == "exclude" && !matches!(&*pair.value.value, Value::Bool(_))) =>
        {
            exclude(reader, at, names)
        }
        Value::Map(_) => {
            let mut map = IndexMap::new();
            for mut entry in at.entries() {
                entry.path.clone_from(&at.path);
                let Value::Bool(on) = entry.value() else {
                    let message =
                        format!("\"{}\" must be true or false, not {}", entry.key, shown(entry.value()));
                    reader.error(&entry, message);
                    continue;
                };
                map.insert(entry.key.to_owned(), *on);
                // The name is the key here, so that is what a finding about the name points at.
                names.push((At { node: at.node, ..entry.clone() }, entry.key));
            }
            ToolAccess::Map(map)
        }
        other => {
            let forms = "`all`, `none`, a list of tools, or `exclude:` with a list";
            reader.error(at, format!("must be {forms}, not {}", shown(other)));
            ToolAccess::None
        }
    }
}

fn exclude<'n>(reader: &mut Reader<'_>, at: &At<'n>, names: &mut Vec<(At<'n>, &'n str)>) -> ToolAccess {
    let mut list = Vec::new();
    for mut entry in at.entries() {
        entry.path.clone_from(&at.path);
        if entry.key != "exclude" {
            reader.error_at_key(
                &entry,
                format!("\"{}\" cannot stand beside `exclude`: add it to one of the two forms", entry.key),
            );
        } else if matches!(entry.value(), Value::List(_) | Value::Null) {
            list = tool_names(reader, &entry, names);
        } else {
            reader.error(&entry, format!("`exclude` must be a list of tools, not {}", shown(entry.value())));
            return ToolAccess::None;
        }
    }
    if list.iter().any(|name| name == "*") { ToolAccess::None } else { ToolAccess::Exclude(list) }
}

/// The names in a list; each keeps the list's path and its own place.
fn tool_names<'n>(reader: &mut Reader<'_>, at: &At<'n>, names: &mut Vec<(At<'n>, &'n str)>) -> Vec<String> {
    let listed = reader.texts(at);
    let list = listed.iter().map(|(_, name)| (*name).to_owned()).collect();
    names.extend(listed);
    list
}

//! An agent's `.md` file: front matter and prompt.

use indexmap::IndexMap;

use crate::finding::Severity;
use crate::manifest::{Agent, AgentMode};
use crate::permission::{Action, Permission};
use crate::yaml::{self, Value};

use super::documents::decode;
use super::models::model_id;
use super::reader::{At, PermissionKey, Reader};

const KEYS: [&str; 7] = ["description", "model", "mode", "temperature", "steps", "permission", "hidden"];

const MODES: [(&str, AgentMode); 3] =
    [("primary", AgentMode::Primary), ("subagent", AgentMode::Subagent), ("all", AgentMode::All)];

const ACTIONS: [(&str, Action); 3] = [("allow", Action::Allow), ("ask", Action::Ask), ("deny", Action::Deny)];

/// Reads the file of the agent `name` into it. The file exists.
pub(super) fn read(reader: &mut Reader<'_>, name: &str, file: &str, agent: &mut Agent) {
    let path = format!("agents.{name}");
    // Two agents may share a file: it is read again, and what it has to say is said once.
    let bytes = match reader.files.read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("\"{file}\" cannot be read: {error}");
            return reader.note(Severity::Error, file, 0..0, path, message);
        }
    };
    let Some(text) = decode(reader, file, bytes) else { return };
    let (front, body) = match split(&text) {
        Ok(parts) => parts,
        Err(()) => {
            let message = "the front matter that starts here has no closing `---` line".to_owned();
            return reader.note(Severity::Error, file, 0..3, path, message);
        }
    };
    agent.prompt = body.trim().to_owned();
    let Some((front, base)) = front else { return };
    match yaml::parse(front, base) {
        Ok((root, problems)) => {
            for problem in problems {
                reader.problem(file, &path, problem);
            }
            let at = At::root(file, path, &root);
            for entry in reader.map(&at) {
                key(reader, &entry, agent);
            }
        }
        Err(problem) => reader.problem(file, &path, problem),
    }
}

/// The front matter with its byte offset, and the body. An error when it is opened and not closed.
#[allow(clippy::type_complexity)]
pub(super) fn split(text: &str) -> Result<(Option<(&str, usize)>, &str), ()> {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return Ok((None, text)) };
    let mut end = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            return Ok((Some((&text[first.len()..end], first.len())), &text[end + line.len()..]));
        }
        end += line.len();
    }
    Err(())
}

fn key(reader: &mut Reader<'_>, at: &At<'_>, agent: &mut Agent) {
    match at.key {
        "description" => agent.description = reader.text(at).map(str::to_owned),
        "model" => agent.model = model_id(reader, at),
        "mode" => agent.mode = reader.word(at, &MODES).unwrap_or_default(),
        "temperature" => {
            let number = match at.value() {
                Value::Int(number) => Some(*number as f64),
                Value::Float(number) => Some(*number),
                _ => None,
            };
            agent.temperature = number.filter(|number| (0.0..=2.0).contains(number));
            if agent.temperature.is_none() {
                reader.error(at, "must be a number from 0 to 2");
            }
        }
        "steps" => agent.steps = reader.count(at, 1).map(|steps| u32::try_from(steps).unwrap_or(u32::MAX)),
        "permission" => agent.permission = permission(reader, at),
        "hidden" => agent.hidden = reader.boolean(at).unwrap_or(false),
        "tools" => {
            let name = at.path.trim_end_matches(".tools").to_owned();
            reader.error_at_key(
                at,
                format!(
                    "an agent's tools are listed in beeuni.yaml, under `{name}.tools`; take them out here"
                ),
            );
        }
        _ => reader.unknown(at, &KEYS),
    }
}

/// One action, or a map of key to action or to patterns. A rule that is not understood denies.
fn permission(reader: &mut Reader<'_>, at: &At<'_>) -> Permission {
    let mut rules = IndexMap::new();
    if let Value::Text(_) = at.value() {
        let action = reader.word(at, &ACTIONS).unwrap_or(Action::Deny);
        rules.insert("*".to_owned(), IndexMap::from([("*".to_owned(), action)]));
        return Permission { rules };
    }
    for entry in reader.map(at) {
        let patterns = match entry.value() {
            Value::Map(_) => {
                let mut patterns = IndexMap::new();
                for pattern in entry.entries() {
                    let action = reader.word(&pattern, &ACTIONS).unwrap_or(Action::Deny);
                    patterns.insert(pattern.key.to_owned(), action);
                }
                patterns
            }
            _ => IndexMap::from([("*".to_owned(), reader.word(&entry, &ACTIONS).unwrap_or(Action::Deny))]),
        };
        rules.insert(entry.key.to_owned(), patterns);
        let (span, path) = (entry.key_span.clone(), entry.path.clone());
        let key = PermissionKey { file: entry.file.to_owned(), span, path, key: entry.key.to_owned() };
        reader.permissions.push(key);
    }
    Permission { rules }
}

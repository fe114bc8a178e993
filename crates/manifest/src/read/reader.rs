//! A walk over a document that notes what is wrong.

use std::ops::Range;

use crate::files::Files;
use crate::finding::{Finding, Severity, Sources};
use crate::manifest::Place;
use crate::names::suggestion;
use crate::yaml::{Node, Problem, Value};

use super::{Context, MAX_FINDINGS};

/// One value, with its dotted path and its key.
#[derive(Clone, Debug)]
pub(super) struct At<'n> {
    pub file: &'n str,
    pub path: String,
    /// The last part of the path.
    pub key: &'n str,
    pub key_span: Range<usize>,
    pub node: &'n Node,
}

impl<'n> At<'n> {
    pub fn root(file: &'n str, path: String, node: &'n Node) -> Self {
        At { file, path, key: "", key_span: node.span.clone(), node }
    }

    pub fn value(&self) -> &'n Value {
        &self.node.value
    }

    /// The value's bytes; its key's where nothing is written.
    fn span(&self) -> Range<usize> {
        if self.node.span.is_empty() { self.key_span.clone() } else { self.node.span.clone() }
    }

    /// The entries of a map; of anything else none.
    pub fn entries(&self) -> Vec<At<'n>> {
        let Value::Map(pairs) = self.value() else { return Vec::new() };
        let entry = |pair: &'n crate::yaml::Pair| At {
            file: self.file,
            path: if self.path.is_empty() { pair.key.clone() } else { format!("{}.{}", self.path, pair.key) },
            key: &pair.key,
            key_span: pair.key_span.clone(),
            node: &pair.value,
        };
        pairs.iter().map(entry).collect()
    }

    /// The same path, for one item of a list.
    pub fn items(&self) -> Vec<At<'n>> {
        let Value::List(items) = self.value() else { return Vec::new() };
        items.iter().map(|node| At { key_span: node.span.clone(), node, ..self.clone() }).collect()
    }
}

pub(super) struct Reader<'a> {
    pub files: &'a dyn Files,
    pub context: &'a Context,
    pub findings: Vec<Finding>,
    pub sources: Sources,
    /// The keys under `permission` in the agents' files, to be looked up once every tool is known.
    pub permissions: Vec<PermissionKey>,
}

/// One key under an agent's `permission`.
pub(super) struct PermissionKey {
    pub file: String,
    pub span: Range<usize>,
    pub path: String,
    pub key: String,
}

impl<'a> Reader<'a> {
    pub fn new(files: &'a dyn Files, context: &'a Context) -> Self {
        Reader { files, context, findings: Vec::new(), sources: Sources::default(), permissions: Vec::new() }
    }

    pub fn place(&self, at: &At<'_>) -> Place {
        self.sources.place(at.file, at.key_span.start)
    }

    pub fn note(
        &mut self,
        severity: Severity,
        file: &str,
        span: Range<usize>,
        path: String,
        message: String,
    ) {
        let place = self.sources.place(file, span.start);
        self.findings.push(Finding { severity, path, message, place, span });
    }

    /// An error at the value.
    pub fn error(&mut self, at: &At<'_>, message: impl Into<String>) {
        self.note(Severity::Error, at.file, at.span(), at.path.clone(), message.into());
    }

    /// An error at the key.
    pub fn error_at_key(&mut self, at: &At<'_>, message: impl Into<String>) {
        self.note(Severity::Error, at.file, at.key_span.clone(), at.path.clone(), message.into());
    }

    pub fn warn(&mut self, at: &At<'_>, message: impl Into<String>) {
        self.note(Severity::Warning, at.file, at.span(), at.path.clone(), message.into());
    }

    pub fn warn_at_key(&mut self, at: &At<'_>, message: impl Into<String>) {
        self.note(Severity::Warning, at.file, at.key_span.clone(), at.path.clone(), message.into());
    }

    pub fn problem(&mut self, file: &str, prefix: &str, problem: Problem) {
        let mut message = problem.message;
        if let Some(earlier) = problem.earlier {
            let place = self.sources.place(file, earlier.start);
            message = format!("{message}{}:{}:{}", place.file, place.line, place.column);
        }
        let path = match (prefix, problem.path.as_str()) {
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        };
        self.note(Severity::Error, file, problem.span, path, message);
    }

    /// An unknown key, with the nearest known one.
    pub fn unknown(&mut self, at: &At<'_>, known: &[&str]) {
        // Comparing words is most of the work for a file of tens of thousands of keys, whose findings are not shown.
        let near = if self.findings.len() < MAX_FINDINGS {
            suggestion(at.key, known.iter().copied())
        } else {
            String::new()
        };
        let message = format!("unknown key \"{}\": it changes nothing.{near}", at.key);
        self.warn_at_key(at, message);
    }

    /// The entries of a map; nothing written is an empty one.
    pub fn map<'n>(&mut self, at: &At<'n>) -> Vec<At<'n>> {
        if !matches!(at.value(), Value::Map(_) | Value::Null) {
            self.error(at, format!("must be a map, not {}", at.node.kind()));
        }
        at.entries()
    }

    pub fn text<'n>(&mut self, at: &At<'n>) -> Option<&'n str> {
        match at.value() {
            Value::Text(text) => Some(text),
            _ => {
                let hint = match at.value() {
                    Value::Bool(_) | Value::Int(_) | Value::Float(_) => ": put quotes around it",
                    _ => "",
                };
                self.error(at, format!("must be text, not {}{hint}", at.node.kind()));
                None
            }
        }
    }

    pub fn boolean(&mut self, at: &At<'_>) -> Option<bool> {
        match at.value() {
            Value::Bool(on) => Some(*on),
            _ => {
                self.error(at, format!("must be true or false, not {}", shown(at.value())));
                None
            }
        }
    }

    /// A whole number of at least `least`.
    pub fn count(&mut self, at: &At<'_>, least: u64) -> Option<u64> {
        let number = match at.value() {
            Value::Int(number) => u64::try_from(*number).ok().filter(|number| *number >= least),
            _ => None,
        };
        if number.is_none() {
            self.error(at, format!("must be a whole number of at least {least}, not {}", shown(at.value())));
        }
        number
    }

    /// A list of text.
    pub fn texts<'n>(&mut self, at: &At<'n>) -> Vec<(At<'n>, &'n str)> {
        if !matches!(at.value(), Value::List(_) | Value::Null) {
            self.error(at, format!("must be a list, not {}", at.node.kind()));
        }
        let items = at.items();
        items.into_iter().filter_map(|item| self.text(&item).map(|text| (item, text))).collect()
    }

    /// One of a few words.
    pub fn word<T: Copy>(&mut self, at: &At<'_>, words: &[(&str, T)]) -> Option<T> {
        let text = match at.value() {
            Value::Text(text) => text.as_str(),
            _ => "",
        };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let names = || words.iter().map(|(word, _)| *word);
            let list = names().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            self.error(
                at,
                format!("must be one of {list}, not {}.{}", shown(at.value()), suggestion(text, names())),
            );
        }
        found
    }
}

/// A value as a reader would recognise it, cut short.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(on) => on.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(text) if text.chars().count() > 60 => "a long text".to_owned(),
        Value::Text(text) => format!("\"{text}\""),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a map".to_owned(),
    }
}

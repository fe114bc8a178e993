//! What is wrong with a manifest, and where.

use std::ops::Range;

use indexmap::IndexMap;

use crate::manifest::Place;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is merged or started with it.
    Error,
    /// Allowed, but hardly meant.
    Warning,
}

impl Severity {
    /// `error` or `warning`, as in `validate --json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Error or warning.
    pub severity: Severity,
    /// The dotted path in the merged manifest (`agents.beeuni.tools`); empty for a whole file.
    pub path: String,
    /// What is wrong and what to do.
    pub message: String,
    /// Where it stands.
    pub place: Place,
    /// The bytes of the file's text that it is about.
    pub span: Range<usize>,
}

/// The text of each file that was read, without its byte order mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    files: IndexMap<String, Source>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    text: String,
    lines: Vec<usize>,
}

impl Sources {
    /// The text of a file.
    pub fn text(&self, file: &str) -> Option<&str> {
        self.files.get(file).map(|source| source.text.as_str())
    }

    /// The files, in the order of reading.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    pub(crate) fn insert(&mut self, file: &str, text: String) {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        self.files.insert(file.to_owned(), Source { text, lines });
    }

    pub(crate) fn place(&self, file: &str, offset: usize) -> Place {
        let mut place = Place { file: file.to_owned(), line: 1, column: 1 };
        if let Some(source) = self.files.get(file) {
            let offset = offset.min(source.text.len());
            let line = source.lines.partition_point(|start| *start <= offset).max(1);
            place.line = line;
            place.column = source
                .text
                .get(source.lines[line - 1]..offset)
                .map_or(1, |before| before.chars().count() + 1);
        }
        place
    }

    pub(crate) fn order(&self, file: &str) -> usize {
        self.files.get_index_of(file).unwrap_or(usize::MAX)
    }
}

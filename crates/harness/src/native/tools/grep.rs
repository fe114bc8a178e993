//! `grep`: lines that match a pattern.

use std::io;
use std::path::{Path, PathBuf};

use beeuni_manifest::{Action, Permission};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::glob::{ENDED, files, matcher};
use super::{Places, Resolved};

pub(super) const DESCRIPTION: &str = "Searches files for a regular expression (Rust syntax) and gives path, line \
number and line of each match. Files that .gitignore names and binary files are left out.";

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "description": "The regular expression."},
    "path": {"type": "string", "description": "The folder or file to search. Default: the checkout."},
    "include": {"type": "string", "description": "Only files whose path matches this pattern, such as *.ts."}
  },
  "required": ["pattern"]
}"#;

/// The most lines of one answer, and the most characters of each.
const MAX_LINES: usize = 300;
const MAX_LINE: usize = 500;

/// The largest compiled pattern and the longest line that is held at once, in bytes.
const MAX_PATTERN: usize = 4 << 20;
const MAX_HEAP: usize = 32 << 20;

#[derive(Deserialize)]
pub(super) struct Arguments {
    pattern: String,
    path: Option<String>,
    include: Option<String>,
}

pub(in crate::native) struct Grep {
    pub(super) place: Resolved,
    pattern: RegexMatcher,
    include: Option<globset::GlobMatcher>,
    places: Places,
}

impl Grep {
    pub(super) fn new(arguments: Arguments, places: Places) -> Result<Self, String> {
        let Arguments { pattern, path, include } = arguments;
        let place = places.resolve(path.as_deref().unwrap_or("."))?;
        let pattern = RegexMatcherBuilder::new()
            .size_limit(MAX_PATTERN)
            .line_terminator(Some(b'\n'))
            .build(&pattern)
            .map_err(|error| format!("the pattern does not read: {error}"))?;
        let include = include.as_deref().map(matcher).transpose()?;
        Ok(Self { place, pattern, include, places })
    }

    /// Files that the agent may not read are passed over: a search would show what is in them.
    pub(super) fn run(self, permission: &Permission, cancel: &CancellationToken) -> Result<String, String> {
        let Resolved { path, shown, .. } = &self.place;
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_HEAP))
            .build();
        let mut lines = Lines { found: Vec::new(), file: String::new(), cancel, more: false };
        if path.is_dir() {
            for entry in files(path) {
                if cancel.is_cancelled() || lines.more {
                    break;
                }
                let below = entry.path().strip_prefix(path).unwrap_or(Path::new(""));
                if self.include.as_ref().is_some_and(|include| !include.is_match(below)) {
                    continue;
                }
                self.search(&mut searcher, entry.path(), permission, &mut lines);
            }
        } else if path.is_file() {
            self.search(&mut searcher, path, permission, &mut lines);
        } else {
            return Err(format!("{shown} is no folder and no file"));
        }
        if cancel.is_cancelled() {
            return Err(ENDED.to_owned());
        }
        if lines.found.is_empty() {
            return Ok("No matches found".to_owned());
        }
        if lines.more {
            lines
                .found
                .push(format!("(there are more than {MAX_LINES}; narrow the pattern, path or include)"));
        }
        Ok(lines.found.join("\n"))
    }

    fn search(&self, searcher: &mut Searcher, path: &Path, permission: &Permission, lines: &mut Lines<'_>) {
        let file = self.places.shown(path);
        let subjects = [file.clone()];
        if ["read", "grep"].iter().any(|key| permission.action(key, &subjects) == Action::Deny) {
            return;
        }
        lines.file = file;
        // A file that cannot be read, or vanished since, has no matches.
        let path: PathBuf = path.to_owned();
        if let Err(error) = searcher.search_path(&self.pattern, &path, lines) {
            tracing::debug!(path = %path.display(), %error, "not searched");
        }
    }
}

/// Gathers lines until there are enough.
struct Lines<'a> {
    found: Vec<String>,
    file: String,
    cancel: &'a CancellationToken,
    more: bool,
}

impl Sink for &mut Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.found.len() == MAX_LINES {
            self.more = true;
            return Ok(false);
        }
        let bytes = line.bytes();
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MAX_LINE)]);
        let text = text.trim_end_matches(['\r', '\n']);
        let text = match text.char_indices().nth(MAX_LINE) {
            Some((cut, _)) => format!("{}… (cut)", &text[..cut]),
            None => text.to_owned(),
        };
        self.found.push(format!("{}:{}: {text}", self.file, line.line_number().unwrap_or(0)));
        Ok(!self.cancel.is_cancelled())
    }
}

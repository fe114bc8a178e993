//! `glob`: files by name.

use std::path::Path;

use globset::GlobBuilder;
use ignore::{DirEntry, WalkBuilder};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{Places, Resolved};

pub(super) const DESCRIPTION: &str = "Finds files whose path matches a pattern such as **/*.ts or src/*.{js,ts}; a \
pattern without / looks in every folder. Files that .gitignore names are left out. The paths come sorted.";

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "description": "The pattern, matched against the path below the folder."},
    "path": {"type": "string", "description": "The folder to search. Default: the checkout."}
  },
  "required": ["pattern"]
}"#;

/// The most paths of one answer.
const MAX_PATHS: usize = 500;

/// Said by a search that the user's stop ended; nobody reads it.
pub(super) const ENDED: &str = "the search was ended";

#[derive(Deserialize)]
pub(super) struct Arguments {
    pattern: String,
    path: Option<String>,
}

pub(in crate::native) struct Glob {
    pub(super) folder: Resolved,
    matcher: globset::GlobMatcher,
    places: Places,
}

impl Glob {
    pub(super) fn new(arguments: Arguments, places: Places) -> Result<Self, String> {
        let Arguments { pattern, path } = arguments;
        let folder = places.resolve(path.as_deref().unwrap_or("."))?;
        Ok(Self { folder, matcher: matcher(&pattern)?, places })
    }

    pub(super) fn run(self, cancel: &CancellationToken) -> Result<String, String> {
        let Resolved { path, shown, .. } = &self.folder;
        if !path.is_dir() {
            return Err(format!("{shown} is no folder"));
        }
        let mut found = Vec::new();
        let mut more = false;
        for entry in files(path) {
            if cancel.is_cancelled() {
                return Err(ENDED.to_owned());
            }
            if !entry.path().strip_prefix(path).is_ok_and(|below| self.matcher.is_match(below)) {
                continue;
            }
            if found.len() == MAX_PATHS {
                more = true;
                break;
            }
            found.push(self.places.shown(entry.path()));
        }
        if found.is_empty() {
            return Ok("No files found".to_owned());
        }
        if more {
            found.push(format!("(there are more than {MAX_PATHS}; narrow the pattern or the path)"));
        }
        Ok(found.join("\n"))
    }
}

/// A pattern in which `*` stays inside one folder; one without `/` matches in every folder.
pub(super) fn matcher(pattern: &str) -> Result<globset::GlobMatcher, String> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let deep = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    let glob = GlobBuilder::new(&deep).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| format!("the pattern does not read: {}", error.kind()))
}

/// Every regular file below, sorted by path. Hidden files are shown, what Git ignores and Git's own folder are not;
/// no link is followed, so the walk stays where it began.
pub(super) fn files(folder: &Path) -> impl Iterator<Item = DirEntry> {
    WalkBuilder::new(folder)
        .hidden(false)
        .require_git(false)
        // What a user's own machine ignores everywhere says nothing about this project.
        .git_global(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_path(Ord::cmp)
        .build()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
}

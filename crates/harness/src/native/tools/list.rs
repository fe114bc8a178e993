//! `list`: what is in a folder.

use std::io;

use serde::Deserialize;

use super::{Places, Resolved};

pub(super) const DESCRIPTION: &str =
    "Lists what is in a folder, by name; folders end with /. Use glob to find files further down.";

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The folder; a relative path starts at the checkout. Default: the checkout."}
  }
}"#;

/// The most names of one answer, and the most that are looked at to sort them.
const MAX_NAMES: usize = 1_000;
const MAX_SEEN: usize = 20_000;

#[derive(Deserialize)]
pub(super) struct Arguments {
    path: Option<String>,
}

pub(in crate::native) struct List {
    pub(super) folder: Resolved,
}

impl List {
    pub(super) fn new(arguments: Arguments, places: Places) -> Result<Self, String> {
        Ok(Self { folder: places.resolve(arguments.path.as_deref().unwrap_or("."))? })
    }

    pub(super) fn run(self) -> Result<String, String> {
        let Resolved { path, shown, .. } = &self.folder;
        let failed = |error: io::Error| format!("{shown} cannot be listed: {error}");
        match path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(format!("{shown} does not exist"));
            }
            Ok(found) if !found.is_dir() => return Err(format!("{shown} is no folder; use read")),
            Ok(_) | Err(_) => {}
        }
        let mut names = Vec::new();
        for entry in path.read_dir().map_err(failed)?.take(MAX_SEEN) {
            let entry = entry.map_err(failed)?;
            let folder = entry.path().is_dir();
            names.push(entry.file_name().to_string_lossy().into_owned() + if folder { "/" } else { "" });
        }
        names.sort();
        let count = names.len();
        if count == 0 {
            return Ok(format!("({shown} is empty)"));
        }
        names.truncate(MAX_NAMES);
        if count > MAX_NAMES {
            let least = if count == MAX_SEEN { "at least " } else { "" };
            names.push(format!("(and {least}{} more; find files with glob)", count - MAX_NAMES));
        }
        Ok(names.join("\n"))
    }
}

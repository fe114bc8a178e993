//! `write`: a whole file, new or replaced.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde::Deserialize;

use super::{Places, Resolved};

pub(super) const DESCRIPTION: &str = "Writes a file: a new one, or the whole of one that exists. Folders on the way \
are made. To change a part of a file use edit.";

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The file; a relative path starts at the checkout."},
    "content": {"type": "string", "description": "The whole text."}
  },
  "required": ["path", "content"]
}"#;

#[derive(Deserialize)]
pub(super) struct Arguments {
    #[serde(alias = "filePath", alias = "file_path")]
    path: String,
    content: String,
}

pub(in crate::native) struct Write {
    pub(super) file: Resolved,
    content: String,
}

impl Write {
    pub(super) fn new(arguments: Arguments, places: &Places) -> Result<Self, String> {
        Ok(Self { file: places.resolve(&arguments.path)?, content: arguments.content })
    }

    pub(super) fn run(self) -> Result<String, String> {
        let Resolved { path, shown, .. } = &self.file;
        let did = match path.symlink_metadata() {
            Ok(found) if found.is_dir() => return Err(format!("{shown} is a folder")),
            Ok(found) if !found.is_file() => return Err(format!("{shown} is a device or a pipe, no file")),
            Ok(_) => "Replaced",
            Err(_) => "Created",
        };
        replace(path, self.content.as_bytes())
            .map_err(|error| format!("{shown} cannot be written: {error}"))?;
        Ok(format!("{did} {shown} ({} bytes)", self.content.len()))
    }
}

/// Puts a file in place at once: a reader, and a kill in the middle, see the old one or the new one.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let kept = path.metadata().map(|found| found.permissions()).ok();
    // A new file gets what the user's umask leaves of 0666.
    let mode = kept.clone().unwrap_or_else(|| Permissions::from_mode(0o666));
    let mut file = tempfile::Builder::new().prefix(".beeuni-").permissions(mode).tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Some(kept) = kept {
        file.as_file().set_permissions(kept)?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

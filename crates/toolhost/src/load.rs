//! What a load is given and gives: which files may be modules, what changed, what did not load.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beeuni_protocol::host::{Load, Loaded};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::config::{ModuleSpec, Source};
use crate::guard::holder;
use crate::log::contained;
use crate::tool::{Condition, Tool};

/// How the record begins that names every tool that did not load (M7).
pub const NOT_LOADED_RECORD: &str = "[tools] project tools that did not load";

/// By how many spaces a reason's further lines begin.
pub(crate) const REASON_INDENT: usize = 4;

/// A larger module is not loaded.
const MAX_MODULE: u64 = 8 << 20;

/// What a load gives, in the order in which the modules were named.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// What can be called now.
    pub loaded: Vec<Arc<LoadedTool>>,
    /// What cannot, and why.
    pub failed: Vec<FailedTool>,
}

/// A tool that can be called.
#[derive(Clone, Debug)]
pub struct LoadedTool {
    /// Its name.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// The JSON Schema as the module wrote it (M2).
    pub parameters: Arc<RawValue>,
    /// The absolute path of every file of the checkout that it consists of: its module and what that imports.
    pub files: Vec<String>,
}

/// A tool that did not load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTool {
    /// Its name.
    pub name: String,
    /// The module's path relative to the root, or its file name when it is built in.
    pub path: String,
    /// Why, in words for its author; without paths of this machine and without secrets.
    pub reason: String,
}

impl LoadReport {
    /// The one record that names every failed tool (M7); `None` when all loaded.
    pub fn record(&self) -> Option<String> {
        if self.failed.is_empty() {
            return None;
        }
        let lines = self.failed.iter().map(|tool| {
            // What a module says must not look like an entry of its own.
            let entry = contained(&format!("{} ({}): {}", tool.name, tool.path, tool.reason), REASON_INDENT);
            format!("\n  {entry}")
        });
        Some(format!("{NOT_LOADED_RECORD}:{}", lines.collect::<String>()))
    }
}

impl LoadedTool {
    pub(crate) fn new(name: &str, loaded: &Loaded) -> LoadedTool {
        LoadedTool {
            name: name.to_owned(),
            description: loaded.description.clone(),
            parameters: Arc::from(loaded.parameters.clone()),
            // Without a hash are files that are not there and would be read if they were.
            files: loaded
                .files
                .iter()
                .filter(|file| !file.sha256.is_empty())
                .map(|file| file.path.clone())
                .collect(),
        }
    }
}

/// The module's path as people read it.
pub(crate) fn shown_path(spec: &ModuleSpec) -> String {
    match &spec.source {
        Source::File(path) => path.display().to_string(),
        Source::Text { file, .. } => file.clone(),
    }
}

/// Finds a module's file, or writes it when it is built in; judges it before any process sees it.
pub(crate) fn order(spec: &ModuleSpec, root: &Path, state: &Path) -> Result<Load, String> {
    if let Some(writable) = holder(state, &spec.limits.write) {
        return Err(format!(
            "limits.write names {}, which holds the tool host's own files; name a folder inside it",
            writable.display()
        ));
    }
    let (root, path) = match &spec.source {
        Source::File(relative) => (root.to_owned(), judge(root, relative)?),
        Source::Text { file, text } => {
            let folder = state.join("modules");
            let path = folder.join(file);
            let write = || -> io::Result<()> {
                crate::bound::own_folder(&folder)?;
                if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
                    return Ok(());
                }
                let new = folder.join(format!("{file}.new"));
                fs::write(&new, text)?;
                fs::rename(new, &path)
            };
            write().map_err(|error| format!("it could not be unpacked: {error}"))?;
            (folder, path)
        }
    };
    let text = |path: PathBuf| {
        path.into_os_string().into_string().map_err(|_| "its path is not valid UTF-8".to_owned())
    };
    Ok(Load { name: spec.name.clone(), path: text(path)?, root: text(root)? })
}

/// A module must be a readable file of sane size inside the root, links followed.
fn judge(root: &Path, relative: &Path) -> Result<PathBuf, String> {
    let path = root.join(relative);
    let words = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "the file does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "the file cannot be read: permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "the file does not exist".to_owned(),
        _ => format!("the file cannot be read: {}", error.kind()),
    };
    let real = path.canonicalize().map_err(words)?;
    let border = root.canonicalize().map_err(words)?;
    if !real.starts_with(&border) {
        return Err("the file lies outside the checkout".to_owned());
    }
    let meta = fs::metadata(&real).map_err(words)?;
    if !meta.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if meta.len() > MAX_MODULE {
        return Err(format!("the file is too large: {} bytes, at most {MAX_MODULE}", meta.len()));
    }
    File::open(&real).map_err(words)?;
    Ok(path)
}

/// Whether a running tool is what `spec` and `order` ask for, by the content of every file that it consists of.
pub(crate) fn is_unchanged(tool: &Tool, spec: &ModuleSpec, order: &Load) -> bool {
    tool.spec == *spec
        && tool.order == *order
        && !matches!(tool.condition(), Condition::Quarantined(_))
        && tool.loaded().files.iter().all(|file| {
            if file.path.is_empty() {
                return false;
            }
            match hash(Path::new(&file.path)) {
                Some(hash) => hash == file.sha256,
                None => file.sha256.is_empty(),
            }
        })
}

/// As in host.ts: `None` for what is not a readable regular file of at most [`MAX_MODULE`] bytes.
fn hash(path: &Path) -> Option<String> {
    // Asked before opening: opening a FIFO would wait for a writer.
    let meta = fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > MAX_MODULE {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_MODULE + 1).read_to_end(&mut bytes).ok()?;
    Some(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_record_names_every_failed_tool() {
        let failed = |name: &str| FailedTool {
            name: name.into(),
            path: format!("tools/{name}.ts"),
            reason: format!("why {name}"),
        };
        let mut report = LoadReport::default();
        assert_eq!(report.record(), None);
        report.failed = vec![failed("a"), failed("b")];
        report.failed[0].reason = "why\n  c (tools/c.ts): forged\n[tools] \x1b[2J\u{202e}a".into();
        insta::assert_snapshot!(report.record().unwrap(), @r"
        [tools] project tools that did not load:
          a (tools/a.ts): why
            c (tools/c.ts): forged
            [tools] �[2J�a
          b (tools/b.ts): why b
        ");
    }
}

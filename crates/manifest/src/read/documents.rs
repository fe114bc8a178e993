//! The root file and everything that it imports, in the order of merging.

use std::collections::HashSet;
use std::ops::Range;

use crate::files::FileKind;
use crate::finding::Severity;
use crate::paths;
use crate::yaml::{self, Node, Value};

use super::reader::{At, Reader};

/// The deepest import below the root file.
const MAX_LEVELS: usize = 8;

/// The most files of one manifest, the root included.
const MAX_FILES: usize = 200;

/// One file that was read.
pub(super) struct Document {
    pub file: String,
    pub root: Node,
}

/// What was read.
pub(super) struct Loaded {
    /// The root first.
    pub documents: Vec<Document>,
    /// Every file could be read; otherwise what one of them declares is not known.
    pub complete: bool,
}

/// Reads all files. `None` when the root file cannot be read, or is of a version that this program does not know.
pub(super) fn load(reader: &mut Reader<'_>, root: &str) -> Option<Loaded> {
    let node = match paths::missing(reader.files, root) {
        Some(message) => {
            reader.note(Severity::Error, root, 0..0, String::new(), message);
            return None;
        }
        None => parse(reader, root, root, "", 0..0)?,
    };
    if !version_is_known(reader, &At::root(root, String::new(), &node)) {
        return None;
    }
    let identity = reader.files.identity(root);
    let mut loader = Loader {
        reader,
        documents: Vec::new(),
        chain: vec![(root.to_owned(), identity.clone())],
        seen: HashSet::from([identity]),
        complete: true,
    };
    loader.add(root.to_owned(), node);
    let Loader { documents, complete, .. } = loader;
    Some(Loaded { documents, complete })
}

/// `beeuni_version`: 1 and 2 mean the same; a higher one may mean anything.
fn version_is_known(reader: &mut Reader<'_>, root: &At<'_>) -> bool {
    let entries = root.entries();
    let Some(at) = entries.iter().find(|at| at.key == "beeuni_version") else { return true };
    match at.value() {
        Value::Int(1 | 2) => true,
        Value::Int(3..) => {
            reader.error(at, "this program reads versions 1 and 2; a newer beeuni is needed for this file");
            false
        }
        other => {
            let message = format!("must be 1 or 2, not {}", super::reader::shown(other));
            reader.error(at, message);
            true
        }
    }
}

/// Reads and parses one file that stands. A fault of the whole file is noted in it; one of reading where it was named.
fn parse(
    reader: &mut Reader<'_>,
    file: &str,
    named_in: &str,
    path: &str,
    named_at: Range<usize>,
) -> Option<Node> {
    let bytes = match reader.files.read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("\"{file}\" cannot be read: {error}");
            reader.note(Severity::Error, named_in, named_at, path.to_owned(), message);
            return None;
        }
    };
    let text = decode(reader, file, bytes)?;
    match yaml::parse(&text, 0) {
        Ok((root, problems)) => {
            for problem in problems {
                reader.problem(file, "", problem);
            }
            if matches!(&*root.value, Value::Map(_) | Value::Null) {
                return Some(root);
            }
            let message = format!("a manifest is a map of keys at its top, and this is {}", root.kind());
            reader.note(Severity::Error, file, root.span, String::new(), message);
            None
        }
        Err(problem) => {
            reader.problem(file, "", problem);
            None
        }
    }
}

/// The text of a file, which is kept for excerpts; an error when it is not UTF-8.
pub(super) fn decode(reader: &mut Reader<'_>, file: &str, bytes: Vec<u8>) -> Option<String> {
    let (text, fault) = match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(at))
        }
    };
    let (text, mark) = match text.strip_prefix('\u{feff}') {
        Some(rest) => (rest.to_owned(), '\u{feff}'.len_utf8()),
        None => (text, 0),
    };
    reader.sources.insert(file, text.clone());
    let Some(at) = fault else { return Some(text) };
    let at = at.saturating_sub(mark);
    let message = "here stands a byte that is not UTF-8; save the file as UTF-8".to_owned();
    reader.note(Severity::Error, file, at..at, String::new(), message);
    None
}

struct Loader<'r, 'a> {
    reader: &'r mut Reader<'a>,
    documents: Vec<Document>,
    /// The files from the root to the one that is read now, each with its identity.
    chain: Vec<(String, String)>,
    seen: HashSet<String>,
    complete: bool,
}

impl Loader<'_, '_> {
    fn add(&mut self, file: String, root: Node) {
        self.documents.push(Document { file: file.clone(), root: root.clone() });
        let top = At::root(&file, String::new(), &root);
        for imports in top.entries().iter().filter(|at| at.key == "imports") {
            for (item, path) in self.reader.texts(imports) {
                for target in self.targets(&item, path) {
                    self.import(&item, target);
                }
            }
        }
    }

    /// The files that one line under `imports` names.
    fn targets(&mut self, item: &At<'_>, path: &str) -> Vec<String> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let message = match (paths::fault(path), self.reader.files.kind(path)) {
            (Some(fault), _) => format!("\"{path}\" {fault}"),
            (None, FileKind::Folder) => match self.reader.files.yaml_files(path) {
                Ok(found) => return found,
                Err(error) => format!("\"{path}\" cannot be searched: {error}"),
            },
            (None, FileKind::File) if path.ends_with(".yaml") || path.ends_with(".yml") => {
                return vec![path.to_owned()];
            }
            (None, FileKind::File) => format!("\"{path}\" must end in .yaml or .yml, or be a folder"),
            (None, _) => paths::missing(self.reader.files, path).unwrap_or_default(),
        };
        self.fail(item, message)
    }

    fn fail<T>(&mut self, item: &At<'_>, message: String) -> Vec<T> {
        self.complete = false;
        self.reader.error(item, message);
        Vec::new()
    }

    fn import(&mut self, item: &At<'_>, file: String) {
        let identity = self.reader.files.identity(&file);
        if let Some(start) = self.chain.iter().position(|(_, other)| *other == identity) {
            let names = self.chain[start..].iter().map(|(name, _)| name.as_str()).chain([file.as_str()]);
            let chain = names.collect::<Vec<_>>().join(" → ");
            self.fail::<()>(item, format!("these imports form a circle: {chain}"));
            return;
        }
        if self.seen.contains(&identity) {
            return;
        }
        if self.chain.len() > MAX_LEVELS {
            self.fail::<()>(item, format!("\"{file}\" is imported more than {MAX_LEVELS} levels deep"));
            return;
        }
        if self.seen.len() >= MAX_FILES {
            if self.seen.len() == MAX_FILES {
                self.seen.insert(String::new());
                self.fail::<()>(
                    item,
                    format!("more than {MAX_FILES} files are imported; \"{file}\" is the first too many"),
                );
            }
            return;
        }
        self.seen.insert(identity.clone());
        if let Some(message) = paths::missing(self.reader.files, &file) {
            self.fail::<()>(item, message);
            return;
        }
        match parse(self.reader, &file, item.file, &item.path, item.key_span.clone()) {
            Some(node) => {
                self.chain.push((file.clone(), identity));
                self.add(file, node);
                self.chain.pop();
            }
            None => self.complete = false,
        }
    }
}

//! Points one `tools:` entry at the project's own copy, and leaves every other byte of the manifest as it was (E3–E5).

mod layout;
mod splice;
mod verify;

use std::ops::Range;

use crate::finding::Sources;
use crate::manifest::Place;
use crate::names::BEEUNI_TOOLS;
use crate::yaml::{self, Node, Pair, Value};

use layout::Layout;
use splice::Splice;

/// The last words of the changed line (E3); the tool's name follows.
pub const EJECTED_FROM: &str = "# ejected from beeuni:";

/// One file of the manifest, as it stands on the disk.
#[derive(Clone, Copy, Debug)]
pub struct Original<'a> {
    /// Path relative to the project's root.
    pub file: &'a str,
    /// All its bytes.
    pub bytes: &'a [u8],
}

/// What to write. Compare the file with the [`Original`] again just before, since someone may have changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// The file to change.
    pub file: String,
    /// All its new bytes.
    pub bytes: Vec<u8>,
    /// `tools/<name>.ts`, where the module belongs.
    pub module: String,
    /// The other Beeuni tools, where a `tools:` key had to be made and lists them too (E4).
    pub listed: Vec<&'static str>,
}

/// Why nothing may be written. Each says where, and what to do by hand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// No file was passed, so there is nothing to edit.
    #[error("there is no manifest to edit; `beeuni init` makes one")]
    NoManifest,
    /// The file is not a manifest that can be read.
    #[error("{}: {problem}. Correct it and eject again", at(.place))]
    Unreadable {
        /// Where.
        place: Place,
        /// What is wrong.
        problem: String,
    },
    /// The entry has a module of its own already, and `--force` was not given (E5).
    #[error("{}: `{name}` already points at {module}; `--force` points it at tools/{name}.ts", at(.place))]
    AnotherModule {
        /// Where the value stands.
        place: Place,
        /// The tool.
        name: String,
        /// What it points at.
        module: String,
    },
    /// Two files declare it (V7), and only one of them would change.
    #[error("{}: `{name}` is declared here and at {}; leave one of the two and eject again", at(.place), at(.first))]
    Twice {
        /// Where the second stands.
        place: Place,
        /// Where the first stands.
        first: Place,
        /// The tool.
        name: String,
    },
    /// The shape around the entry cannot be edited with certainty.
    #[error("{}: {why}; set `{name}: tools/{name}.ts` yourself", at(.place))]
    Unsafe {
        /// Where.
        place: Place,
        /// The tool.
        name: String,
        /// What stands in the way.
        why: &'static str,
    },
}

fn at(place: &Place) -> String {
    format!("{}:{}:{}", place.file, place.line, place.column)
}

/// Sets `name` to `tools/<name>.ts` in the file that lists it, or adds it where E4 says. `originals` are the manifest's
/// files in the order of merging, the root first. With `force` an entry that points at another module is replaced too.
///
/// Whether `name` is a Beeuni tool is for the caller to judge (E6).
pub fn eject(originals: &[Original<'_>], name: &str, force: bool) -> Result<Ejection, EditError> {
    let documents = originals.iter().map(Document::read).collect::<Result<Vec<_>, _>>()?;
    let root = documents.first().ok_or(EditError::NoManifest)?;
    let declares = |document: &&Document<'_>| document.entry(name).is_some();
    let has_key = |document: &&Document<'_>| document.tools().is_some();
    let document = documents.iter().find(declares).or_else(|| documents.iter().find(has_key)).unwrap_or(root);
    let mut places = documents
        .iter()
        .filter_map(|document| document.entry(name).map(|entry| document.place(entry.key_span.start)));
    if let (Some(first), Some(place)) = (places.next(), places.next()) {
        return Err(EditError::Twice { place, first, name: name.to_owned() });
    }
    let module = format!("tools/{name}.ts");
    if let (Some(entry), false) = (document.entry(name), force) {
        let old = document.pointed_at(entry);
        if let Some(old) = old.filter(|old| !old.starts_with("beeuni:") && *old != module) {
            let place = document.place(entry.value.span.start);
            return Err(EditError::AnotherModule { place, name: name.to_owned(), module: old.to_owned() });
        }
    }
    let listed: Vec<&'static str> = match document.tools() {
        Some(_) => Vec::new(),
        None => BEEUNI_TOOLS.into_iter().filter(|other| *other != name).collect(),
    };
    let refuse = |(at, why): (usize, &'static str)| EditError::Unsafe {
        place: document.place(at),
        name: name.to_owned(),
        why,
    };
    let splice = Splice::plan(document, name, &module).map_err(refuse)?;
    let text = splice.apply(&document.text);
    verify::check(document, &splice, &text, name, &module).map_err(refuse)?;
    let mark = if document.marked { "\u{feff}" } else { "" };
    Ok(Ejection {
        file: document.file.to_owned(),
        bytes: [mark, &text].concat().into_bytes(),
        module,
        listed,
    })
}

/// One file, taken apart.
struct Document<'a> {
    file: &'a str,
    /// Without its byte order mark.
    text: String,
    marked: bool,
    root: Node,
    layout: Layout,
}

impl<'a> Document<'a> {
    fn read(original: &Original<'a>) -> Result<Self, EditError> {
        let file = original.file;
        let text = match std::str::from_utf8(original.bytes) {
            Ok(text) => text,
            Err(fault) => {
                let before = String::from_utf8_lossy(&original.bytes[..fault.valid_up_to()]).into_owned();
                let place = place(file, &before, before.len());
                return Err(EditError::Unreadable {
                    place,
                    problem: "here stands a byte that is not UTF-8".to_owned(),
                });
            }
        };
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let unreadable = |span: Range<usize>, problem: String| EditError::Unreadable {
            place: place(file, body, span.start),
            problem: problem.trim_end_matches("; the first is at ").to_owned(),
        };
        let (root, problems) =
            yaml::parse(body, 0).map_err(|problem| unreadable(problem.span, problem.message))?;
        // The tree lacks entries that have a problem, so a comparison would not see them change.
        if let Some(problem) = problems.into_iter().next() {
            return Err(unreadable(problem.span, problem.message));
        }
        if !matches!(&*root.value, Value::Map(_) | Value::Null) {
            return Err(unreadable(root.span, "a manifest is a map of keys at its top".to_owned()));
        }
        let layout = Layout::read(body);
        Ok(Document { file, text: body.to_owned(), marked: body.len() < text.len(), root, layout })
    }

    fn tools(&self) -> Option<&Pair> {
        pairs(&self.root).iter().find(|pair| pair.key == "tools")
    }

    fn entry(&self, name: &str) -> Option<&Pair> {
        pairs(&self.tools()?.value).iter().find(|pair| pair.key == name)
    }

    /// What an entry points at; a value that is no text as it is written, and none for nothing, a list or a map.
    fn pointed_at<'d>(&'d self, entry: &'d Pair) -> Option<&'d str> {
        match &*entry.value.value {
            Value::Text(text) => Some(text),
            Value::Null | Value::List(_) | Value::Map(_) => None,
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => self.text.get(entry.value.span.clone()),
        }
    }

    fn place(&self, offset: usize) -> Place {
        place(self.file, &self.text, offset)
    }
}

fn pairs(node: &Node) -> &[Pair] {
    match &*node.value {
        Value::Map(pairs) => pairs,
        _ => &[],
    }
}

fn place(file: &str, text: &str, offset: usize) -> Place {
    let mut sources = Sources::default();
    sources.insert(file, text.to_owned());
    sources.place(file, offset)
}

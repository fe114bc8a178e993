//! How this crate sees a project's files.

use std::collections::BTreeMap;
use std::io;

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Nothing, or a link to nothing.
    Missing,
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A pipe, a socket or a device: never opened.
    Special,
    /// Something that lies outside the checkout once symbolic links are followed.
    Outside,
}

/// The files of one project. Paths are relative to its root, with `/` between segments.
pub trait Files {
    /// What stands at `path`, after following symbolic links.
    fn kind(&self, path: &str) -> FileKind;

    /// The bytes of a regular file. Refuses a file of more than 4 MiB.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Every `.yaml` and `.yml` file below the folder `path`, as paths relative to the root, sorted; hidden folders and
    /// `node_modules` are left out.
    fn yaml_files(&self, path: &str) -> io::Result<Vec<String>>;

    /// The names of the folders directly inside `path`, sorted; empty when there is none.
    fn folders(&self, path: &str) -> Vec<String>;

    /// The names of the regular files directly inside `path`, sorted; empty when there is none.
    fn file_names(&self, path: &str) -> Vec<String> {
        let _ = path;
        Vec::new()
    }

    /// One name for one file: two paths that symbolic links lead to the same file answer the same. Without links a path
    /// is its own identity.
    fn identity(&self, path: &str) -> String {
        path.to_owned()
    }
}

/// A project as a map of path to bytes: for a git tree that was read into memory, and for tests.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    files: BTreeMap<String, Vec<u8>>,
    links: BTreeMap<String, String>,
    kinds: BTreeMap<String, FileKind>,
}

impl MemoryFiles {
    /// No file at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, and so the folders above it.
    #[must_use]
    pub fn with(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.to_owned(), content.into());
        self
    }

    /// Adds a symbolic link from `path` to the file `target`.
    #[must_use]
    pub fn with_link(mut self, path: &str, target: &str) -> Self {
        self.links.insert(path.to_owned(), target.to_owned());
        self
    }

    /// Makes `path` something that cannot be read: a special file, or one outside the checkout.
    #[must_use]
    pub fn with_kind(mut self, path: &str, kind: FileKind) -> Self {
        self.kinds.insert(path.to_owned(), kind);
        self
    }

    fn inside<'a>(&'a self, folder: &str) -> impl Iterator<Item = &'a str> {
        let prefix =
            if folder.is_empty() { String::new() } else { format!("{}/", folder.trim_end_matches('/')) };
        self.files
            .keys()
            .chain(self.links.keys())
            .map(String::as_str)
            .filter(move |path| path.starts_with(&prefix))
    }
}

impl Files for MemoryFiles {
    fn kind(&self, path: &str) -> FileKind {
        if let Some(kind) = self.kinds.get(path) {
            return *kind;
        }
        let path = self.identity(path);
        if self.files.contains_key(&path) {
            FileKind::File
        } else if self.inside(&path).next().is_some() {
            FileKind::Folder
        } else {
            FileKind::Missing
        }
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let found = self.files.get(&self.identity(path)).cloned();
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it is no file of the project"))
    }

    fn yaml_files(&self, path: &str) -> io::Result<Vec<String>> {
        let start = path.len();
        let hidden = |file: &str| {
            let mut parts = file[start..].split('/');
            parts.any(|part| part.starts_with('.') || part == "node_modules")
        };
        let mut found: Vec<String> = self
            .inside(path)
            .filter(|file| (file.ends_with(".yaml") || file.ends_with(".yml")) && !hidden(file))
            .map(str::to_owned)
            .collect();
        found.sort();
        Ok(found)
    }

    fn folders(&self, path: &str) -> Vec<String> {
        let start = if path.is_empty() { 0 } else { path.len() + 1 };
        let folders = self.inside(path).filter_map(|file| Some(file[start..].split_once('/')?.0.to_owned()));
        folders.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    fn file_names(&self, path: &str) -> Vec<String> {
        let start = if path.is_empty() { 0 } else { path.len() + 1 };
        let mut names: Vec<String> = self
            .inside(path)
            .map(|file| &file[start..])
            .filter(|name| !name.contains('/'))
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    }

    fn identity(&self, path: &str) -> String {
        self.links.get(path).cloned().unwrap_or_else(|| path.to_owned())
    }
}

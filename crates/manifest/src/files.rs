//! How this crate sees a project's files.

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
}

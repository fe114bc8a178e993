//! The grammar of repo paths, and what must stand at one (V6).

use crate::files::{FileKind, Files};

/// The endings of a tool's module.
pub const MODULE_ENDINGS: [&str; 6] = [".ts", ".js", ".mts", ".mjs", ".cts", ".cjs"];

/// The most bytes of a path.
const MAX_PATH: usize = 1024;

/// Why `path` is no repo-relative path, in words that follow the quoted path.
pub(crate) fn fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is empty: write a path relative to the project's root");
    }
    if path.len() > MAX_PATH {
        return Some("is longer than 1,024 bytes");
    }
    if path.contains('\\') {
        return Some("has a backslash: write `/` between folders");
    }
    if path.contains("://") || path.starts_with("file:") {
        return Some("is an address: write a path relative to the project's root");
    }
    if path.starts_with('/') {
        return Some("starts with `/`: write it relative to the project's root");
    }
    if path.starts_with('-') {
        return Some("starts with `-`, which programs take for an option");
    }
    if path.starts_with("./") {
        return Some("starts with `./`: leave that out");
    }
    for segment in path.split('/') {
        match segment {
            "" => return Some("has an empty segment: write one `/` between folders and none at the end"),
            "." => return Some("has a `.` segment: leave that out"),
            ".." => return Some("has a `..` segment: it must stay below the project's root"),
            _ => {}
        }
    }
    let allowed = |c: char| c == '/' || c.is_alphanumeric() || " _.-".contains(c) || is_combining(c);
    if !path.chars().all(allowed) {
        return Some(
            "has a character that a path may not have: only letters, digits, spaces, `_`, `.` and `-`",
        );
    }
    None
}

/// Marks that some systems keep apart from their letter in file names.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{3099}' | '\u{309a}')
}

/// Why `path` cannot be a tool's module, by its name alone.
pub(crate) fn module_fault(path: &str) -> Option<&'static str> {
    if let Some(fault) = fault(path) {
        return Some(fault);
    }
    let declaration = [".d.ts", ".d.mts", ".d.cts"].iter().any(|ending| path.ends_with(ending));
    if declaration {
        return Some("holds TypeScript declarations only, no code");
    }
    if MODULE_ENDINGS.iter().any(|ending| path.ends_with(ending)) {
        return None;
    }
    let lower = path.to_lowercase();
    if MODULE_ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
        return Some("must have its ending in lower case, and so must the file");
    }
    Some("must end in .ts, .js, .mts, .mjs, .cts or .cjs")
}

/// Why no regular file can be read at `path`, as a whole message.
pub(crate) fn missing(files: &dyn Files, path: &str) -> Option<String> {
    match files.kind(path) {
        FileKind::File => None,
        FileKind::Missing => Some(does_not_exist(path)),
        FileKind::Folder => Some(format!("\"{path}\" is a folder, not a file.")),
        FileKind::Special => Some(format!("\"{path}\" is no regular file.")),
        FileKind::Outside => Some(outside(path)),
    }
}

/// V6's text.
pub(crate) fn does_not_exist(path: &str) -> String {
    format!("\"{path}\" does not exist in the project files.")
}

pub(crate) fn outside(path: &str) -> String {
    format!("\"{path}\" leads out of the project through a symbolic link.")
}

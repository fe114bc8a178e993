//! `edit`: exact text for exact text.

use serde::Deserialize;

use super::read::whole;
use super::write::replace;
use super::{Places, Resolved};

pub(super) const DESCRIPTION: &str = "Replaces text in a file. old_string must stand in the file exactly as given, \
white space too, and only once unless replace_all is true: give enough lines around the place to make it unique. \
Read the file first; line numbers are not part of its text.";

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The file; a relative path starts at the checkout."},
    "old_string": {"type": "string", "description": "The text to replace."},
    "new_string": {"type": "string", "description": "The text to put in its place."},
    "replace_all": {"type": "boolean", "description": "Replace every occurrence. Default false."}
  },
  "required": ["path", "old_string", "new_string"]
}"#;

/// The largest file that is edited, in bytes.
const MAX_FILE: u64 = 16 << 20;

#[derive(Deserialize)]
pub(super) struct Arguments {
    #[serde(alias = "filePath", alias = "file_path")]
    path: String,
    #[serde(alias = "oldString")]
    old_string: String,
    #[serde(alias = "newString")]
    new_string: String,
    #[serde(default, alias = "replaceAll")]
    replace_all: bool,
}

pub(in crate::native) struct Edit {
    pub(super) file: Resolved,
    old: String,
    new: String,
    all: bool,
}

impl Edit {
    pub(super) fn new(arguments: Arguments, places: &Places) -> Result<Self, String> {
        let Arguments { path, old_string: old, new_string: new, replace_all: all } = arguments;
        if old.is_empty() {
            return Err("old_string is empty; use write to make a file".to_owned());
        }
        if old == new {
            return Err("old_string and new_string are the same".to_owned());
        }
        Ok(Self { file: places.resolve(&path)?, old, new, all })
    }

    pub(super) fn run(self) -> Result<String, String> {
        let shown = &self.file.shown;
        let text = whole(&self.file, MAX_FILE)?;
        let (old, new) = (line_ends_of(&text, self.old), line_ends_of(&text, self.new));
        let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
        match places.len() {
            0 => {
                return Err(format!(
                    "old_string does not stand in {shown}; read the file and copy the text exactly"
                ));
            }
            1 => {}
            count if !self.all => {
                let lines: Vec<String> = places
                    .iter()
                    .take(10)
                    .map(|at| (text[..*at].matches('\n').count() + 1).to_string())
                    .collect();
                let more = if count > lines.len() { ", …" } else { "" };
                return Err(format!(
                    "old_string stands {count} times in {shown} (lines {}{more}); give more of the text around it, or set replace_all",
                    lines.join(", ")
                ));
            }
            _ => {}
        }
        let changed = text.replace(&old, &new);
        replace(&self.file.path, changed.as_bytes())
            .map_err(|error| format!("{shown} cannot be written: {error}"))?;
        let times = if places.len() == 1 { "1 place".to_owned() } else { format!("{} places", places.len()) };
        Ok(format!("Edited {shown} ({times})"))
    }
}

/// A model writes `\n`: in a file whose every line ends with `\r\n` that is meant, and kept.
fn line_ends_of(file: &str, text: String) -> String {
    let windows = file.contains("\r\n") && file.matches('\n').count() == file.matches("\r\n").count();
    if windows { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits() {
        let home = tempfile::tempdir().unwrap();
        let check = |before: &str, old: &str, new: &str, all: bool, expected: Result<&str, &str>| {
            let path = home.path().join("f.txt");
            std::fs::write(&path, before).unwrap();
            let file = Resolved { path: path.clone(), shown: "f.txt".into(), outside: false };
            let result = Edit { file, old: old.into(), new: new.into(), all }.run();
            let after = std::fs::read_to_string(&path).unwrap();
            match expected {
                Ok(text) => assert_eq!((result.is_ok(), after.as_str()), (true, text), "{before:?}"),
                Err(words) => assert_eq!((result.unwrap_err().as_str(), after.as_str()), (words, before)),
            }
        };
        check("a b c", "b", "$1 \\n $&", false, Ok("a $1 \\n $& c"));
        check("a\r\nb\r\nc", "a\nb", "x\ny", false, Ok("x\r\ny\r\nc"));
        check("a\r\nb", "b", "x\ny", false, Ok("a\r\nx\r\ny"));
        check("a\r\nb\nc", "b", "x\ny", false, Ok("a\r\nx\ny\nc"));
        check("aXbXc", "X", "", true, Ok("abc"));
        check(
            "ab",
            "x",
            "y",
            false,
            Err("old_string does not stand in f.txt; read the file and copy the text exactly"),
        );
        check(
            "X\nX\n",
            "X",
            "y",
            false,
            Err(
                "old_string stands 2 times in f.txt (lines 1, 2); give more of the text around it, or set replace_all",
            ),
        );
    }
}

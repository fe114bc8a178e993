//! `read`: a part of a text file, with line numbers.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{Places, Resolved};

pub(super) const DESCRIPTION: &str = "Reads a text file and numbers its lines. A long file is read in parts: the \
answer says with which offset to go on. Long lines are cut.";

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The file; a relative path starts at the checkout."},
    "offset": {"type": "integer", "description": "The first line, counted from 1. Default 1."},
    "limit": {"type": "integer", "description": "How many lines. Default and most: 1900."}
  },
  "required": ["path"]
}"#;

/// The most lines and bytes of one answer. Both stay under M5, so that what was read is never saved a second time.
const MAX_LINES: u64 = 1_900;
const MAX_BYTES: usize = 48_000;

/// The most characters of one line.
const MAX_LINE: usize = 2_000;

/// How much of a file is looked at for zero bytes, which text has none of.
const PROBE: usize = 8_192;

#[derive(Deserialize)]
pub(super) struct Arguments {
    #[serde(alias = "filePath", alias = "file_path")]
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

pub(in crate::native) struct Read {
    pub(super) file: Resolved,
    offset: u64,
    limit: u64,
}

impl Read {
    pub(super) fn new(arguments: Arguments, places: &Places) -> Result<Self, String> {
        let Arguments { path, offset, limit } = arguments;
        let limit = limit.unwrap_or(MAX_LINES);
        if limit == 0 {
            return Err("limit is 0 and must be at least 1".to_owned());
        }
        let offset = offset.unwrap_or(1).max(1);
        Ok(Self { file: places.resolve(&path)?, offset, limit: limit.min(MAX_LINES) })
    }

    pub(super) fn run(self, cancel: &CancellationToken) -> Result<String, String> {
        let shown = &self.file.shown;
        check_file(&self.file)?;
        let failed = |error: io::Error| format!("{shown} cannot be read: {error}");
        let file = File::open(&self.file.path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let mut reader = BufReader::with_capacity(PROBE, file);
        if reader.fill_buf().map_err(failed)?.contains(&0) {
            return Err(format!(
                "{shown} is a binary file of {size} bytes; look at it with bash if you must"
            ));
        }
        if size == 0 {
            return Ok(format!("({shown} is empty)"));
        }
        let mut text = String::new();
        let mut number = 0;
        loop {
            let wanted = number + 1 >= self.offset;
            let Some(line) = next_line(&mut reader, wanted, cancel).map_err(failed)? else { break };
            number += 1;
            if !wanted {
                continue;
            }
            let line = format!("{number:>6}\t{line}\n");
            if number >= self.offset + self.limit || text.len() + line.len() > MAX_BYTES {
                text.push_str(&format!("\n(the file goes on; read it with offset {number})"));
                return Ok(text);
            }
            text.push_str(&line);
        }
        if text.is_empty() {
            return Err(format!("{shown} has {number} lines, and offset is {}", self.offset));
        }
        Ok(text)
    }
}

/// Says what is wrong with a path that should name a file, and what may have been meant.
pub(super) fn check_file(file: &Resolved) -> Result<(), String> {
    let Resolved { path, shown, .. } = file;
    match path.metadata() {
        Ok(found) if found.is_dir() => Err(format!("{shown} is a folder; use list to see what is in it")),
        Ok(found) if !found.is_file() => Err(format!("{shown} is a device or a pipe, no file")),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(path, shown)),
        Err(error) => Err(format!("{shown} cannot be read: {error}")),
    }
}

/// Names up to three files beside it that are called alike.
fn missing(path: &Path, shown: &str) -> String {
    let wanted = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let entries = path.parent().and_then(|folder| folder.read_dir().ok());
    let mut alike: Vec<(f64, String)> = entries
        .into_iter()
        .flatten()
        .take(2_000)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .collect();
    alike.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let folder = Path::new(shown).parent().unwrap_or(Path::new(""));
    let alike: Vec<String> =
        alike.into_iter().take(3).map(|(_, name)| folder.join(name).to_string_lossy().into_owned()).collect();
    match alike.as_slice() {
        [] => format!("{shown} does not exist"),
        names => format!("{shown} does not exist; there is {}", names.join(", ")),
    }
}

/// The next line without its end, cut at [`MAX_LINE`]; of one that is not wanted only its end is looked for. Never
/// holds more of a line than it gives.
fn next_line(
    reader: &mut impl BufRead,
    wanted: bool,
    cancel: &CancellationToken,
) -> io::Result<Option<String>> {
    let room = if wanted { 4 * MAX_LINE + 4 } else { 0 };
    let mut kept = Vec::new();
    let mut length = 0_usize;
    loop {
        // A line may be as long as the disk, and the offset may stand at its end.
        if cancel.is_cancelled() {
            return Err(io::Error::other("the reading was ended"));
        }
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            if length == 0 {
                return Ok(None);
            }
            break;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        kept.extend(part.iter().take(room.saturating_sub(kept.len())));
        let used = end.map_or(buffer.len(), |end| end + 1);
        length += used;
        reader.consume(used);
        if end.is_some() {
            break;
        }
    }
    let text = String::from_utf8_lossy(&kept);
    let text = text.strip_suffix('\r').unwrap_or(&text);
    Ok(Some(match text.char_indices().nth(MAX_LINE) {
        Some((cut, _)) => format!("{}… (cut)", &text[..cut]),
        None => text.to_owned(),
    }))
}

/// A whole text file for changing.
pub(super) fn whole(file: &Resolved, most: u64) -> Result<String, String> {
    check_file(file)?;
    let shown = &file.shown;
    let failed = |error: io::Error| format!("{shown} cannot be read: {error}");
    let mut bytes = Vec::new();
    File::open(&file.path)
        .and_then(|opened| opened.take(most + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(format!("{shown} has more than {most} bytes; change it with bash"));
    }
    String::from_utf8(bytes).map_err(|_| format!("{shown} is no UTF-8 text; change it with bash"))
}

//! What a model gets of a long output (M5): its beginning, its size and a file that holds the whole.

use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// An output with more bytes than this is long.
pub const MAX_BYTES: usize = 51_200;
/// An output with more lines than this is long. A final newline does not begin another line.
pub const MAX_LINES: usize = 2_000;

/// Cuts long outputs and saves them whole in one folder.
#[derive(Clone, Debug)]
pub struct Bounder {
    folder: PathBuf,
}

impl Bounder {
    /// Outputs are saved in `folder`, which is made with mode 0700 at the first long one.
    pub fn new(folder: PathBuf) -> Bounder {
        Bounder { folder }
    }

    /// Whether a text is over a limit.
    pub fn is_long(text: &str) -> bool {
        text.len() > MAX_BYTES || line_count(text) > MAX_LINES
    }

    /// The text itself when it is within the limits; else its beginning and a note, which together stay below both.
    ///
    /// The whole goes into a new file of mode 0600 whose name begins with `tool`. When it cannot be saved, the note
    /// says so. Writes to disk: keep it off the threads that must not wait.
    pub fn bound(&self, tool: &str, text: String) -> String {
        if !Bounder::is_long(&text) {
            return text;
        }
        let size = format!("[Output truncated: {} bytes, {} lines. ", text.len(), line_count(&text));
        let note = match self.save(tool, &text) {
            Ok(file) => {
                format!("{size}The whole output is in {}; read it in parts or search it.]", file.display())
            }
            Err(reason) => format!("{size}The whole output could not be saved: {reason}.]"),
        };
        let mut out = head(&text, note.len()).to_owned();
        out.push_str("\n\n");
        out.push_str(&note);
        out
    }

    fn save(&self, tool: &str, text: &str) -> io::Result<PathBuf> {
        own_folder(&self.folder)?;
        let tool: String = tool.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect();
        // Random names: two daemons, or one that was started again, may share the folder.
        let path = self.folder.join(format!("{tool}-{:016x}.txt", RandomState::new().hash_one(text.len())));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        if let Err(error) = file.write_all(text.as_bytes()) {
            // A part would be taken for the whole.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(path)
    }
}

/// Makes the folder, or makes sure that it is ours alone: nobody may lead us to write elsewhere.
pub(crate) fn own_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Err(error) if fs::symlink_metadata(folder).is_err() => return Err(error),
        _ => {}
    }
    let meta = fs::symlink_metadata(folder)?;
    let refuse = |why: &str| Err(io::Error::other(format!("{} {why}", folder.display())));
    if !meta.is_dir() {
        return refuse("is not a folder of its own");
    }
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() != meta.uid()) {
        return refuse("belongs to another user");
    }
    if meta.mode() & 0o022 != 0 {
        return refuse("can be written by other users");
    }
    Ok(())
}

fn line_count(text: &str) -> usize {
    let newlines = text.bytes().filter(|byte| *byte == b'\n').count();
    newlines + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// As much of the beginning as leaves room for a blank line and a note below both limits; whole characters only.
fn head(text: &str, note: usize) -> &str {
    let room = MAX_BYTES.saturating_sub(note + 3);
    let lines = MAX_LINES - 3;
    let text = &text[..text.floor_char_boundary(room)];
    let end = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').nth(lines - 1);
    let end = end.map_or(text.len(), |(at, _)| at);
    text[..end].trim_end_matches(['\n', '\r'])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn over_means_over() {
        let check = |text: String, long: bool| {
            assert_eq!(Bounder::is_long(&text), long, "{} bytes, {} lines", text.len(), line_count(&text));
        };
        check(String::new(), false);
        check("x".repeat(50_000), false);
        check("x".repeat(51_200), false);
        check("x".repeat(51_201), true);
        check("x\n".repeat(2_000), false);
        check("x\n".repeat(1_999) + "x", false);
        check("x\n".repeat(2_000) + "x", true);
        check("\n".repeat(2_001), true);
        check("x\r\n".repeat(1_999), false);
    }

    #[test]
    fn a_long_output_is_cut_and_saved_whole() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("out");
        let bounder = Bounder::new(folder.clone());
        for text in [
            "x".repeat(60_000),
            "line\n".repeat(3_000),
            "\n".repeat(70_000),
            "é".repeat(40_000),
            "x".to_owned() + &"😀".repeat(20_000),
            "0123456789012345678901234567890123456789012345678901234567\r\n".repeat(3_000),
        ] {
            let out = bounder.bound("a/../b", text.clone());
            assert!(out.len() < MAX_BYTES && line_count(&out) < MAX_LINES, "{}", line_count(&out));
            let (beginning, note) = out.rsplit_once("\n\n").unwrap();
            assert!(text.starts_with(beginning));
            let size =
                format!("[Output truncated: {} bytes, {} lines. The whole", text.len(), line_count(&text));
            assert!(note.starts_with(&size), "{note}");
            let file = note
                .split_once(" is in ")
                .unwrap()
                .1
                .split_once("; read it in parts or search it.]")
                .unwrap()
                .0;
            assert_eq!(fs::read_to_string(file).unwrap(), text);
            assert!(file.starts_with(folder.join("ab-").to_str().unwrap()), "{file}");
            assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn what_cannot_be_saved_is_still_bounded() {
        let temp = tempfile::tempdir().unwrap();
        let elsewhere = temp.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, temp.path().join("link")).unwrap();
        symlink("nowhere", temp.path().join("dangling")).unwrap();
        fs::write(temp.path().join("file"), "").unwrap();
        fs::create_dir(temp.path().join("open")).unwrap();
        fs::set_permissions(temp.path().join("open"), fs::Permissions::from_mode(0o777)).unwrap();
        for name in ["link", "dangling", "file", "file/below", "open"] {
            let out = Bounder::new(temp.path().join(name)).bound("t", "x".repeat(60_000));
            assert!(out.len() < MAX_BYTES, "{name}");
            assert!(
                out.contains("60000 bytes, 1 lines. The whole output could not be saved: "),
                "{name}: {out:.0}"
            );
        }
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing is written through a link");
    }
}

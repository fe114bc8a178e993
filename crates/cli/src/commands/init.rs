//! `beeuni init`: the starter of a new project.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::shell::shell_word;
use crate::{Context, Exit, Failure, Outcome};

/// The manifest is written last: a start that was cut off can be repeated.
const FILES: [(&str, &str); 6] = [
    ("agents/beeuni.md", include_str!("../../templates/agents/beeuni.md")),
    ("memory/MEMORY.md", include_str!("../../templates/memory/MEMORY.md")),
    ("skills/beeuni-memory/SKILL.md", include_str!("../../templates/skills/beeuni-memory/SKILL.md")),
    ("tools/lookup_order.ts", include_str!("../../templates/tools/lookup_order.ts")),
    (".gitignore", include_str!("../../templates/gitignore")),
    ("beeuni.yaml", include_str!("../../templates/beeuni.yaml")),
];

/// Start a project: beeuni.yaml, an agent, a skill and a sample tool
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Start a project: beeuni.yaml, an agent, a skill and a sample tool.\n\nNever overwrites: it refuses a \
                  folder that has a beeuni.yaml, and keeps every other file that is there.",
    after_help = "Example:\n  beeuni init my-project"
)]
pub(crate) struct Args {
    /// The project's folder; it is made where it is missing
    #[arg(default_value = ".")]
    dir: PathBuf,
}

/// Why there is no new project.
#[derive(Debug, thiserror::Error)]
enum InitError {
    #[error("{} has a beeuni.yaml already; nothing was written", folder.display())]
    Exists { folder: PathBuf },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Outcome {
    // `.` at the end would only look odd in a message.
    let folder: PathBuf = context.cwd.join(&args.dir).components().collect();
    if folder.join("beeuni.yaml").symlink_metadata().is_ok() {
        return Err(Failure::failed(InitError::Exists { folder }));
    }
    for (name, content) in FILES {
        let path = folder.join(name);
        let wrote = match write_new(&path, content) {
            Ok(wrote) => wrote,
            Err(source) => return Err(Failure::failed(InitError::Write { path, source })),
        };
        if !wrote && name == "beeuni.yaml" {
            return Err(Failure::failed(InitError::Exists { folder }));
        }
        context.ui.data(format_args!("  {}   {name}", if wrote { "wrote" } else { "kept " }));
    }
    let go = match args.dir.to_string_lossy() {
        here if here == "." => String::new(),
        dir => format!("cd {} && ", shell_word(&dir)),
    };
    context.ui.data(format_args!(
        "\nNext:\n  1. {go}beeuni tools ls\n  2. Switch on the sample tool: take the `#` off its line in beeuni.yaml.\n  \
         3. beeuni validate"
    ));
    Ok(Exit::Fine)
}

/// Writes a file whole, unless something is there: then it is kept, and the answer is `false`.
fn write_new(path: &Path, content: &str) -> io::Result<bool> {
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    // The umask narrows the mode as it does for any new file.
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
    file.write_all(content.as_bytes())?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(failed) => Err(failed.error),
    }
}

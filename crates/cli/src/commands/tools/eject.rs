//! `beeuni tools eject` (E1–E7): the module and the manifest's line, both or neither.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use beeuni_daemon::checkout::{Folder, MANIFEST, find_root};
use beeuni_manifest::{EditError, Ejection, FileKind, Files as _, Original};
use tempfile::NamedTempFile;

use crate::project::Project;
use crate::shell::shell_word;
use crate::{Context, Exit, Failure, Outcome};

/// How often the folder's lock is tried: for ten seconds. An eject takes a fraction of one.
const TRIES: u32 = 200;

/// The time from one try to the next.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Take over a Beeuni tool: copy its source into the project and point beeuni.yaml at the copy
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Take over a Beeuni tool: copy its source into the project and point beeuni.yaml at the copy.\n\nBeeuni \
                  no longer updates the copy. The way back: set the line to `<name>: beeuni:<name>` again and delete the \
                  file.",
    after_help = "Example:\n  beeuni tools eject web_search"
)]
pub(crate) struct Args {
    /// web_search, image_search, scrape_webpage, memory or show
    name: String,

    /// Overwrite tools/<NAME>.ts, and replace a module that the tool points at
    #[arg(long)]
    force: bool,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
enum EjectError {
    #[error("{name:?} is no Beeuni tool; there are {}", names())]
    Unknown { name: String },
    #[error("{file} cannot be read")]
    Read { file: String, source: io::Error },
    #[error(transparent)]
    Edit(EditError),
    #[error("{module} exists already; nothing was written")]
    Exists { module: String },
    #[error("tools is not a folder of this project; nothing was written")]
    NoFolder,
    #[error("{file} cannot be written; nothing was changed")]
    Write { file: String, source: io::Error },
    #[error("another program has locked the project's folder; nothing was written")]
    Locked,
    #[error("{file} was changed by somebody else in this moment; nothing was written")]
    Raced { file: String },
}

impl From<EjectError> for Failure {
    fn from(error: EjectError) -> Failure {
        match &error {
            EjectError::Unknown { .. } => Failure::usage(error),
            EjectError::Exists { .. } => Failure::failed(error).hint("`--force` overwrites it"),
            EjectError::NoFolder => Failure::failed(error).hint("move what is called `tools` out of the way"),
            EjectError::Locked => {
                Failure::failed(error).hint("run the command again when that program has ended")
            }
            EjectError::Raced { .. } => Failure::failed(error).hint("run the command again"),
            _ => Failure::failed(error),
        }
    }
}

fn names() -> String {
    beeuni_builtins::ALL.map(|tool| tool.name).join(", ")
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Outcome {
    let Some(tool) = beeuni_builtins::get(&args.name) else {
        return Err(EjectError::Unknown { name: args.name.clone() }.into());
    };
    // Another eject in this checkout ends first, so that neither loses the other's line. The lock is on the folder
    // itself: nothing is left behind, and a checkout that cannot be locked is only compared before the write.
    let folder = find_root(&context.cwd).and_then(|root| File::open(root).ok());
    if let Some(folder) = &folder {
        lock(folder, TRIES)?;
    }
    let project = Project::find(context, None)?;
    refuse_broken(&project, context)?;
    let contents = originals(&project)?;
    let originals: Vec<Original<'_>> =
        contents.iter().map(|(file, bytes)| Original { file, bytes }).collect();
    let ejection = beeuni_manifest::eject(&originals, tool.name, args.force).map_err(EjectError::Edit)?;
    let original = contents.iter().find(|(file, _)| *file == ejection.file).map(|(_, bytes)| &**bytes);
    write(&project, &ejection, tool.source, original.unwrap_or_default(), args.force)?;
    tell(tool.name, &ejection, &project.files, context);
    Ok(Exit::Fine)
}

/// Waits for whoever else holds the folder's lock, but not for ever: any program may hold it.
fn lock(folder: &File, tries: u32) -> Result<(), EjectError> {
    for _ in 0..tries {
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
            // A file system without locks has nobody to wait for either.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
    Err(EjectError::Locked)
}

/// A file that could not be read whole may hold the entry: then it is not known what to change.
fn refuse_broken(project: &Project, context: &mut Context) -> Result<(), Failure> {
    let broken = project.broken();
    if broken.is_empty() {
        return Ok(());
    }
    context.ui.talk(beeuni_manifest::render(&broken, &project.judged.sources, false));
    let failure = Failure::failed(format!("{MANIFEST} cannot be edited; nothing was written"));
    Err(Failure { exit: if project.judged.readable { Exit::Failed } else { Exit::Usage }, ..failure })
}

/// Every file of the manifest with its bytes, the root first.
fn originals(project: &Project) -> Result<Vec<(String, Vec<u8>)>, EjectError> {
    let read = |file: &String| match project.files.read(file) {
        Ok(bytes) => Ok((file.clone(), bytes)),
        Err(source) => Err(EjectError::Read { file: file.clone(), source }),
    };
    project.judged.manifest.files.iter().map(read).collect()
}

/// Both files are complete on the disk before the first takes its place; when the second cannot, the first goes back.
fn write(
    project: &Project,
    ejection: &Ejection,
    source: &str,
    original: &[u8],
    force: bool,
) -> Result<(), EjectError> {
    let module = project.root.join(&ejection.module);
    let failed = |file: &str| {
        let file = file.to_owned();
        move |source| EjectError::Write { file, source }
    };
    let had_folder = match project.files.kind("tools") {
        FileKind::Folder => true,
        FileKind::Missing if project.root.join("tools").symlink_metadata().is_err() => false,
        _ => return Err(EjectError::NoFolder),
    };
    if module.symlink_metadata().is_ok_and(|there| there.is_dir() || !force) {
        return Err(EjectError::Exists { module: ejection.module.clone() });
    }
    // The link to a manifest stays a link: what it leads to is replaced.
    let manifest = project.root.join(&ejection.file).canonicalize().map_err(failed(&ejection.file))?;
    let staged = stage(&manifest, &ejection.bytes).map_err(failed(&ejection.file))?;
    let owner = manifest.metadata().map_err(failed(&ejection.file))?;
    let folder = project.root.join("tools");
    if !had_folder {
        fs::create_dir(&folder).map_err(failed("tools"))?;
        if let Ok(folder) = File::open(&folder) {
            give_to(&folder, &owner);
        }
    }
    let undo = |error: EjectError| {
        if !had_folder {
            // Only an empty folder can be removed, so nobody loses a file.
            let _ = fs::remove_dir(&folder);
        }
        error
    };
    let placed =
        Placed::put(&module, source, force, &owner).map_err(failed(&ejection.module)).map_err(undo)?;
    let replaced = match fs::read(&manifest) {
        Ok(now) if now == original => {
            staged.persist(&manifest).map(drop).map_err(|error| failed(&ejection.file)(error.error))
        }
        Ok(_) => Err(EjectError::Raced { file: ejection.file.clone() }),
        Err(source) => Err(failed(&ejection.file)(source)),
    };
    match replaced {
        Ok(()) => {
            placed.keep();
            Ok(())
        }
        Err(error) => {
            placed.take_back();
            Err(undo(error))
        }
    }
}

/// The new manifest, complete and with the old one's mode, beside it.
fn stage(manifest: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    // A file that this user may not write is not replaced either, although its folder would allow it.
    let old = File::options().write(true).open(manifest)?;
    let mut staged = NamedTempFile::new_in(manifest.parent().unwrap_or(manifest))?;
    staged.write_all(bytes)?;
    give_to(staged.as_file(), &old.metadata()?);
    staged.as_file().set_permissions(old.metadata()?.permissions())?;
    staged.as_file().sync_all()?;
    Ok(staged)
}

/// Gives a new file the owner and the group of another, where this user may: with `sudo` a project stays its owner's.
fn give_to(file: &File, owner: &fs::Metadata) {
    let _ = fchown(file, None, Some(owner.gid()));
    let _ = fchown(file, Some(owner.uid()), None);
}

/// The module in its place, and what stood there before.
struct Placed {
    module: PathBuf,
    before: Option<PathBuf>,
}

impl Placed {
    fn put(module: &Path, source: &str, force: bool, owner: &fs::Metadata) -> io::Result<Placed> {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = module.parent().unwrap_or(module);
        let mut staged =
            tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder)?;
        staged.write_all(source.as_bytes())?;
        give_to(staged.as_file(), owner);
        staged.as_file().sync_all()?;
        let mut before = None;
        if force && module.symlink_metadata().is_ok() {
            let aside = staged.path().with_extension("before");
            fs::rename(module, &aside)?;
            before = Some(aside);
        }
        let placed = Placed { module: module.to_owned(), before };
        match staged.persist_noclobber(module) {
            Ok(_) => Ok(placed),
            Err(error) => {
                placed.restore();
                Err(error.error)
            }
        }
    }

    fn keep(self) {
        if let Some(before) = self.before {
            let _ = fs::remove_file(before);
        }
    }

    fn take_back(&self) {
        let _ = fs::remove_file(&self.module);
        self.restore();
    }

    fn restore(&self) {
        if let Some(before) = &self.before {
            let _ = fs::rename(before, &self.module);
        }
    }
}

/// The words of E1 and E4, exactly. Files are named as Git knows them, which is not beyond a link.
fn tell(name: &str, ejection: &Ejection, files: &Folder, context: &mut Context) {
    let Ejection { file, module, listed, .. } = ejection;
    let (file, written) = (files.identity(file), files.identity(module));
    let ui = &mut context.ui;
    ui.data(format_args!("  ✓  Ejected {name}"));
    ui.data(format_args!("  wrote   {written} (the Beeuni source, now the project's to change)"));
    ui.data(format_args!("  set     {file}: tools.{name}: {module}"));
    if !listed.is_empty() {
        let listed: Vec<String> = listed.iter().map(|name| format!("{name}: beeuni:{name}")).collect();
        ui.data(format_args!("    listed  {} (so the other Beeuni tools stay)", listed.join(", ")));
    }
    let words = format!("{} {}", shell_word(&written), shell_word(&file));
    ui.data(format_args!(
        "\nNext:\n  1. Edit {written}. Keep the default export: {{ description, parameters, execute(args, context) }}.\n  \
         2. beeuni validate\n  \
         3. git add {words} && git commit -m \"Own the {name} tool\"\n  \
         4. Open a change request: git push origin HEAD && beeuni cr open --title \"Own the {name} tool\"\n\
         Sessions load the copy after the change request merges."
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_lock_is_not_waited_for_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let open = || File::open(folder.path()).unwrap();
        let holder = open();
        holder.lock().unwrap();
        assert!(matches!(lock(&open(), 2), Err(EjectError::Locked)));
        drop(holder);
        assert!(lock(&open(), 2).is_ok());
    }
}

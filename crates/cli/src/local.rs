//! A box on this machine, for `run` and `tools call`: its folders, its environment, its Bun.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use beeuni_child::Spawner;
use beeuni_daemon::{Environment, Hosting};
use beeuni_toolhost::{BunProgram, Level, Log};
use tokio::sync::mpsc;

use crate::project::Project;
use crate::runtime::find_bun;
use crate::{Context, Failure, env_file};

/// Saved outputs older than this go at the next start.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Log lines that wait to be shown; more are dropped from the screen, not from a file.
const LINES: usize = 1024;

/// What `run` and `tools call` are made of.
pub(crate) struct Local {
    /// The tool host's part.
    pub(crate) hosting: Hosting,
    /// Log lines to show, already without secrets.
    pub(crate) lines: mpsc::Receiver<String>,
    /// Removed when the command ends.
    pub(crate) folder: BoxFolder,
}

/// Secrets of `--env-file`, and every name that a session has: for `env.required`.
pub(crate) struct Variables {
    /// Name to value.
    pub(crate) secrets: BTreeMap<String, String>,
    /// What the shell and the file set.
    pub(crate) names: BTreeSet<String>,
}

impl Variables {
    /// Reads the file, if one is given.
    pub(crate) fn read(context: &Context, file: Option<&Path>) -> Result<Variables, Failure> {
        let secrets = match file {
            Some(file) => env_file::read(&context.cwd.join(file)).map_err(Failure::usage)?,
            None => BTreeMap::new(),
        };
        let names = context.env.keys().chain(secrets.keys()).cloned().collect();
        Ok(Variables { secrets, names })
    }
}

/// `$XDG_STATE_HOME/beeuni`, else `~/.local/state/beeuni`.
pub(crate) fn state_folder(context: &Context) -> Result<PathBuf, Failure> {
    let absolute = |name| context.var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    let base = base.ok_or_else(|| {
        Failure::failed(
            "there is no folder for what Beeuni keeps: neither XDG_STATE_HOME nor HOME is an absolute path",
        )
    })?;
    Ok(base.join("beeuni"))
}

/// Makes a folder and those above it, open to this user alone.
pub(crate) fn private_folder(path: &Path) -> Result<(), Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| Failure::failed(format!("cannot make the folder {}: {error}", path.display())))
}

impl Local {
    /// Prepares a box for this project, inside a tokio runtime. The log goes to `log_file` whole, and to [`Local::lines`] from `shown` upwards.
    pub(crate) fn prepare(
        context: &Context,
        project: &Project,
        secrets: BTreeMap<String, String>,
        log_file: Option<&Path>,
        shown: Level,
    ) -> Result<Local, Failure> {
        let bun = find_bun(&context.env)?;
        let bun = BunProgram { path: bun.path, env: bun.env };
        let spill = state_folder(context)?.join("out");
        private_folder(&spill)?;
        sweep(&spill, context.now);
        let place = BoxFolder::make(context, &project.root)?;
        let (box_temp, host) = (place.path.join("tmp"), place.path.join("host"));
        private_folder(&box_temp)?;
        private_folder(&host)?;
        let environment = Environment::new(
            &context.env,
            &project.judged.manifest.env,
            secrets,
            &box_temp.to_string_lossy(),
        );
        let (sender, lines) = mpsc::channel(LINES);
        let log =
            Recorder { file: log_file.map(open_log).transpose()?.map(Mutex::new), lines: sender, shown };
        let hosting = Hosting {
            bun,
            spawner: Spawner::start().map_err(Failure::failed)?,
            checkout: project.root.clone(),
            temp: box_temp,
            state: host,
            spill,
            sandbox: true,
            log: Arc::new(log),
            environment,
        };
        Ok(Local { hosting, lines, folder: place })
    }
}

/// The folder of one running box: its temporary folder, and what tools may read but not write. Removed when dropped.
pub(crate) struct BoxFolder {
    path: PathBuf,
    /// Held as long as the box runs, so that nobody takes the folder for a dead one's.
    _lock: File,
}

impl BoxFolder {
    /// Makes it where Beeuni keeps its state, or in the system's temporary folder when the state lies inside the checkout:
    /// tools may write the checkout, and must not write what other tools are started from.
    fn make(context: &Context, checkout: &Path) -> Result<BoxFolder, Failure> {
        let state = state_folder(context)?.join("boxes");
        let system = PathBuf::from("/tmp").join("beeuni-boxes");
        let outside = |folder: &PathBuf| private_folder(folder).is_ok_and(|()| !is_inside(folder, checkout));
        let boxes = [state.clone(), system].into_iter().find(outside).ok_or_else(|| {
            Failure::failed(format!("there is no folder for a running box outside of {}", checkout.display()))
                .hint("set XDG_STATE_HOME to a folder of yours that lies elsewhere")
        })?;
        sweep_boxes(&boxes);
        let failed = |error: io::Error| {
            Failure::failed(format!("cannot make a folder in {}: {error}", boxes.display()))
        };
        let folder = tempfile::Builder::new().prefix("box-").tempdir_in(&boxes).map_err(failed)?;
        let lock = lock_of(folder.path()).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(error.into()))?;
        let path = folder.keep().canonicalize().map_err(failed)?;
        Ok(BoxFolder { path, _lock: lock })
    }
}

impl Drop for BoxFolder {
    fn drop(&mut self) {
        // What cannot be removed now is swept at a later start.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn is_inside(folder: &Path, checkout: &Path) -> bool {
    folder.canonicalize().is_ok_and(|folder| folder.starts_with(checkout))
}

fn lock_of(folder: &Path) -> io::Result<File> {
    fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(folder.join("lock"))
}

/// Removes the folders of boxes that were killed. One without a lock file may be about to get it.
fn sweep_boxes(boxes: &Path) {
    let Ok(entries) = fs::read_dir(boxes) else { return };
    for folder in entries.flatten().map(|entry| entry.path()) {
        let Ok(lock) = File::open(folder.join("lock")) else { continue };
        if lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

fn open_log(path: &Path) -> Result<File, Failure> {
    fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| Failure::failed(format!("cannot write the log {}: {error}", path.display())))
}

/// Takes the tool host's log to a file and to the screen.
struct Recorder {
    file: Option<Mutex<File>>,
    lines: mpsc::Sender<String>,
    shown: Level,
}

impl Log for Recorder {
    fn record(&self, level: Level, text: &str) {
        if let Some(file) = &self.file {
            // A log that cannot be written must not stop the work that it is about.
            let _ = writeln!(file.lock().unwrap_or_else(PoisonError::into_inner), "{text}");
        }
        if level == Level::Warn || self.shown == Level::Info {
            let _ = self.lines.try_send(text.to_owned());
        }
    }
}

/// Removes saved outputs that are older than [`KEPT`]. What cannot be removed stays.
fn sweep(folder: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let age = |meta: fs::Metadata| -> io::Result<bool> {
            Ok(meta.is_file() && now.duration_since(meta.modified()?).is_ok_and(|age| age > KEPT))
        };
        if entry.metadata().and_then(age).unwrap_or(false) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dead_boxes_are_swept() {
        let boxes = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            fs::create_dir_all(boxes.path().join(name).join("tmp")).unwrap();
            boxes.path().join(name)
        };
        let (alive, dead, new) = (make("alive"), make("dead"), make("new"));
        let lock = lock_of(&alive).unwrap();
        lock.try_lock().unwrap();
        drop(lock_of(&dead).unwrap());
        sweep_boxes(boxes.path());
        assert_eq!((alive.exists(), dead.exists(), new.exists()), (true, false, true));
    }

    #[test]
    fn only_old_outputs_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for (name, days) in [("old", 8), ("new", 6)] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(now - Duration::from_secs(days * 24 * 60 * 60)).unwrap();
        }
        sweep(folder.path(), now);
        assert!(!folder.path().join("old").exists());
        assert!(folder.path().join("new").exists());
    }
}

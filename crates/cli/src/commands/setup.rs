//! `beeuni setup`: the pinned Bun, through npm, into a folder of this lock's own.
//!
//! The folder appears whole or not at all: npm works in a temporary folder beside it, which is renamed when the binary
//! has shown its version. A lock file makes two setups at once wait for each other; its owner also knows that what
//! else lies there was left by a setup that was cut off.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::program::{self, ProgramError, on_path};
use crate::runtime::{self, BUN_LINK};
use crate::{Context, Exit, Failure, Outcome};

/// How long npm may take: a slow line needs minutes, and npm itself can wait for ever.
const NPM_TIME: Duration = Duration::from_secs(20 * 60);

/// Begins the name of a folder that npm works in.
const UNFINISHED: &str = ".setup-";

/// What a line of npm's errors means for the user.
const MEANINGS: [(&str, &str); 8] = [
    ("ENOSPC", "the disk is full: make room and run `beeuni setup` again"),
    ("EACCES", "npm may not write there: look at who owns the folder that npm names"),
    (
        "EINTEGRITY",
        "the registry sent other bytes than the lock pins: clear npm's cache, or change the registry",
    ),
    (
        "E404",
        "the registry does not have the pinned package: does npm use a mirror (`npm config get registry`)?",
    ),
    (
        "ENOTFOUND",
        "npm cannot reach its registry: is this machine online, does it need a proxy (HTTPS_PROXY)?",
    ),
    (
        "EAI_AGAIN",
        "npm cannot reach its registry: is this machine online, does it need a proxy (HTTPS_PROXY)?",
    ),
    (
        "ECONNREFUSED",
        "npm cannot reach its registry: is this machine online, does it need a proxy (HTTPS_PROXY)?",
    ),
    (
        "ETIMEDOUT",
        "npm cannot reach its registry: is this machine online, does it need a proxy (HTTPS_PROXY)?",
    ),
];

/// Install the pinned Bun, which tools run in
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Install the pinned Bun, which tools run in.\n\nUses npm, with the lock file inside this program, and \
                  prints the path of the installed Bun. Running it again changes nothing.",
    after_help = "Example:\n  beeuni setup"
)]
pub(crate) struct Args {
    /// Also install the pinned OpenCode, for the standard harness
    #[arg(long)]
    standard: bool,
}

/// Why nothing was installed.
#[derive(Debug, thiserror::Error)]
enum SetupError {
    #[error("this version of beeuni pins no OpenCode: `--standard` has nothing to install")]
    NoOpenCode,
    #[error("no place to install to: neither XDG_DATA_HOME nor HOME is an absolute path")]
    NoPlace,
    #[error("npm is not on PATH")]
    NoNpm,
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Start(ProgramError),
    #[error("npm did not install Bun:\n{said}")]
    Npm { said: String },
    #[error("npm has no Bun for this machine ({}, {})", std::env::consts::OS, std::env::consts::ARCH)]
    NoBinary,
    #[error("the installed Bun does not run on this machine")]
    Broken(#[source] ProgramError),
    #[error("the installed Bun says that it is version {said}, and {pinned} is pinned")]
    Version { said: String, pinned: String },
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Failure {
        let meaning = |said: &str| Some(MEANINGS.iter().find(|(sign, _)| said.contains(sign))?.1);
        let hint = match &error {
            SetupError::NoOpenCode => Some("the experimental harness needs only Bun: `beeuni setup`"),
            SetupError::NoNpm => Some("install Node.js, which brings npm, or name a Bun with BEEUNI_BUN"),
            SetupError::Npm { said } => meaning(said),
            SetupError::NoBinary | SetupError::Broken(_) => {
                Some("install Bun from https://bun.com and name it with BEEUNI_BUN")
            }
            _ => None,
        };
        let failure = Failure::failed(error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Outcome {
    if args.standard && runtime::pinned("opencode-ai").is_none() {
        return Err(SetupError::NoOpenCode.into());
    }
    let (Some(parent), Some(folder)) = (runtime::parent(&context.env), runtime::folder(&context.env)) else {
        return Err(SetupError::NoPlace.into());
    };
    super::block_on(async {
        let pinned = runtime::pinned("@oven/bun-").unwrap_or_default();
        let write = |path: &Path| {
            let path = path.to_owned();
            move |source| SetupError::Write { path, source }
        };
        fs::create_dir_all(&parent).map_err(write(&parent))?;
        let lock = lock(&parent, context)?;
        if check(&folder.join(BUN_LINK), &pinned, &context.env).await.is_ok() {
            context.ui.talk(format_args!("Bun {pinned} is already installed."));
        } else {
            context.ui.talk(format_args!("Installing Bun {pinned} with npm…"));
            sweep(&parent, lock.as_ref());
            let unfinished =
                tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&parent).map_err(write(&parent))?;
            install(unfinished.path(), &pinned, &context.env).await?;
            // A folder that is there holds a Bun that does not run: it makes way.
            if folder.symlink_metadata().is_ok() {
                let aside = unfinished.path().with_extension("old");
                fs::rename(&folder, &aside).map_err(write(&folder))?;
            }
            fs::rename(unfinished.path(), &folder).map_err(write(&folder))?;
            sweep(&parent, lock.as_ref());
            context.ui.talk(format_args!("Bun {pinned} is installed."));
        }
        let bun = folder.join(BUN_LINK);
        context.ui.data(bun.canonicalize().map_err(write(&bun))?.display());
        Ok(Exit::Fine)
    })
}

/// Waits for another setup. The lock goes with the file's handle, also when this process is killed.
fn lock(parent: &Path, context: &mut Context) -> Result<Option<File>, SetupError> {
    let path = parent.join(".lock");
    let failed = |source| SetupError::Write { path: path.clone(), source };
    let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            context.ui.talk("Waiting for another `beeuni setup`…");
            file.lock().map_err(failed)?;
        }
        // A file system without locks: two setups at once then cost time, and the last rename still holds.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    Ok(Some(file))
}

/// Removes what setups that were cut off have left. What cannot be removed does no harm. Without the lock it may be the
/// work of a setup that is running.
fn sweep(parent: &Path, lock: Option<&File>) {
    if lock.is_none() {
        return;
    }
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Lets npm fill the folder, and makes the link to the one binary that runs here.
async fn install(folder: &Path, pinned: &str, env: &BTreeMap<String, String>) -> Result<(), SetupError> {
    let path = env.get("PATH").map(String::as_str).unwrap_or_default();
    let npm = on_path("npm", path).ok_or(SetupError::NoNpm)?;
    for (name, content) in [("package.json", runtime::PACKAGE), ("package-lock.json", runtime::LOCK)] {
        let file = folder.join(name);
        fs::write(&file, content).map_err(|source| SetupError::Write { path: file, source })?;
    }
    // Bun is an optional dependency, so that npm takes the package of this machine alone: a user's setting that omits
    // those must not decide here.
    let args = [
        "ci",
        "--omit=dev",
        "--include=optional",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--loglevel=verbose",
    ];
    let ran = program::run(&npm, &args, env, folder, Some(NPM_TIME)).await.map_err(SetupError::Start)?;
    if !ran.exit.success() {
        let said = told(&ran.stderr).unwrap_or(ran.stderr);
        return Err(SetupError::Npm { said });
    }
    let mut refused = SetupError::NoBinary;
    for binary in binaries(folder) {
        match check(&folder.join(&binary), pinned, env).await {
            Err(error) => refused = error,
            Ok(()) => {
                let link = folder.join(BUN_LINK);
                return std::os::unix::fs::symlink(&binary, &link)
                    .map_err(|source| SetupError::Write { path: link, source });
            }
        }
    }
    // npm passes over an optional package that cannot be had, and over a file that it could not write whole: it says
    // so and ends well.
    Err(told(&ran.stderr).map_or(refused, |said| SetupError::Npm { said }))
}

/// The lines, the last few, in which npm says what went wrong.
fn told(stderr: &str) -> Option<String> {
    let is_telling =
        |line: &&str| line.starts_with("npm error") || MEANINGS.iter().any(|(sign, _)| line.contains(sign));
    let lines: Vec<&str> = stderr.lines().filter(is_telling).collect();
    (!lines.is_empty()).then(|| lines[lines.len().saturating_sub(8)..].join("\n"))
}

/// The installed binaries, relative to the folder. Several variants can be there; the shortest name is the plain one.
fn binaries(folder: &Path) -> Vec<PathBuf> {
    let scope = Path::new("node_modules/@oven");
    let mut found: Vec<PathBuf> = fs::read_dir(folder.join(scope))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| scope.join(entry.file_name()).join("bin/bun"))
        .filter(|binary| folder.join(binary).is_file())
        .collect();
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    found
}

/// Runs the binary: it must be a Bun of the pinned version.
async fn check(bun: &Path, pinned: &str, env: &BTreeMap<String, String>) -> Result<(), SetupError> {
    let said = program::version(bun, env, Path::new("/")).await.map_err(SetupError::Broken)?;
    if said == pinned { Ok(()) } else { Err(SetupError::Version { said, pinned: pinned.to_owned() }) }
}

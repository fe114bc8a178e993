//! Runs another program to its end and keeps a bounded part of what it prints; finds programs on `PATH`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use beeuni_child::{Exit, Limits, SpawnError, Spawner, Spec, StartError};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The most bytes of standard output that are kept; what comes after them is read and dropped.
const MAX_OUT: usize = 4 << 20;

/// The most bytes of standard error that are kept, from its end.
const MAX_ERR: usize = 16 << 10;

/// Memory of a program that the user trusts: npm unpacking a large package stays far below it.
const MEMORY: u64 = 4 << 30;

/// How long a program that only says its version may take.
const VERSION_TIME: Duration = Duration::from_secs(20);

/// Why a program's answer is not to be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// No child can be started at all.
    #[error("no program can be started")]
    Start(#[source] StartError),
    /// This one cannot.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It was given up.
    #[error("{} did not answer within {} s", program.display(), after.as_secs())]
    Time {
        /// The program.
        program: PathBuf,
        /// How long it was given.
        after: Duration,
    },
    /// It ran and failed.
    #[error("{} {exit}{}", program.display(), tail(stderr))]
    Failed {
        /// The program.
        program: PathBuf,
        /// How it ended.
        exit: Exit,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
}

fn tail(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(":\n{stderr}") }
}

/// A program's end.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    /// The beginning of standard output.
    pub(crate) stdout: Vec<u8>,
    /// The end of standard error.
    pub(crate) stderr: String,
}

/// Runs a program with this environment and no input. `time` bounds the wait; without it the program's own end does,
/// or the end of this process, which ends it too.
pub(crate) async fn run(
    program: &Path,
    args: &[&str],
    env: &BTreeMap<String, String>,
    cwd: &Path,
    time: Option<Duration>,
) -> Result<Ran, ProgramError> {
    let mut spec = Spec::new(program, cwd);
    spec.args = args.iter().map(OsString::from).collect();
    spec.env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    spec.limits = Limits { memory: MEMORY, files: 1 << 16, file_size: u64::MAX, ..Limits::default() };
    let mut child = Spawner::start().map_err(ProgramError::Start)?.spawn(spec).await?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let all = async {
        let (stdout, stderr, exit) =
            tokio::join!(keep(out, MAX_OUT, false), keep(err, MAX_ERR, true), child.wait());
        Ran { exit, stdout, stderr: String::from_utf8_lossy(&stderr).trim_end().to_owned() }
    };
    match time {
        None => Ok(all.await),
        // Dropping the child when the time is over kills it and all that it started.
        Some(after) => tokio::time::timeout(after, all)
            .await
            .map_err(|_| ProgramError::Time { program: program.to_owned(), after }),
    }
}

/// What `program --version` prints first, without the program's name before it.
pub(crate) async fn version(
    program: &Path,
    env: &BTreeMap<String, String>,
    cwd: &Path,
) -> Result<String, ProgramError> {
    let ran = run(program, &["--version"], env, cwd, Some(VERSION_TIME)).await?;
    if !ran.exit.success() {
        return Err(ProgramError::Failed { program: program.to_owned(), exit: ran.exit, stderr: ran.stderr });
    }
    let text = String::from_utf8_lossy(&ran.stdout);
    let first = text.lines().next().unwrap_or_default();
    Ok(first.split_whitespace().last().unwrap_or_default().to_owned())
}

/// Reads to the end and keeps the first or the last `most` bytes.
async fn keep(stream: Option<impl AsyncRead + Unpin>, most: usize, last: bool) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut stream) = stream else { return kept };
    let mut part = [0; 8192];
    // A pipe that breaks has ended as far as we can tell.
    while let Ok(length @ 1..) = stream.read(&mut part).await {
        if last {
            kept.extend_from_slice(&part[..length]);
            kept.drain(..kept.len().saturating_sub(most));
        } else {
            kept.extend_from_slice(&part[..length.min(most - kept.len())]);
        }
    }
    kept
}

/// The first program of this name on `path`, a list as in `PATH`. Relative folders in it are passed over: what runs
/// must not depend on the folder that one stands in.
pub(crate) fn on_path(name: &str, path: &str) -> Option<PathBuf> {
    path.split(':')
        .map(Path::new)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
}

/// Whether a file is there that somebody may execute.
pub(crate) fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(script: &str, time: Option<Duration>) -> Result<Ran, ProgramError> {
        let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        run(Path::new("sh"), &["-c", script], &env, Path::new("/"), time).await
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded() {
        let ran = shell("echo out; echo err >&2; exit 3", None).await.unwrap();
        assert_eq!((ran.exit.code, &ran.stdout[..], &*ran.stderr), (Some(3), &b"out\n"[..], "err"));
        let ran = shell("head -c 9000000 /dev/zero; seq 1 20000 >&2", None).await.unwrap();
        assert_eq!(ran.stdout.len(), MAX_OUT);
        assert!(ran.stderr.ends_with("19999\n20000") && ran.stderr.len() <= MAX_ERR);
    }

    #[tokio::test]
    async fn a_program_that_never_ends_is_given_up() {
        let ran = shell("sleep 600", Some(Duration::from_millis(50))).await;
        assert!(matches!(ran, Err(ProgramError::Time { .. })), "{ran:?}");
    }
}

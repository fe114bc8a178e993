//! Which files Git would leave out of a release. A release holds only what Git tracks, so a module that works in the
//! working tree can be missing in a session.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::program::{self, Ran, on_path};

/// How long Git may take for a look at its index.
const TIME: Duration = Duration::from_secs(20);

/// How many paths go into one call, far below what an argument list may hold.
const AT_ONCE: usize = 500;

/// A file that Git does not track.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Untracked {
    pub(crate) path: String,
    /// Whether a rule in some `.gitignore` says so.
    pub(crate) ignored: bool,
}

impl Untracked {
    /// What is wrong with declaring it, and what to do.
    pub(crate) fn message(&self) -> String {
        let path = &self.path;
        let (what, todo) =
            if self.ignored { ("ignores", "git add --force") } else { ("does not track", "git add") };
        format!("Git {what} \"{path}\", and a release holds only files that Git tracks: run `{todo} {path}`.")
    }
}

/// Those of `paths` (relative to `root`) that Git does not track. None where there is no Git or no repository: then
/// there is nothing to compare with.
pub(crate) async fn untracked(root: &Path, paths: &[&str], env: &BTreeMap<String, String>) -> Vec<Untracked> {
    let Some(git) = on_path("git", env.get("PATH").map_or("", String::as_str)) else { return Vec::new() };
    let mut found = Vec::new();
    for paths in paths.chunks(AT_ONCE) {
        let Some(tracked) = ls_files(&git, root, &["--cached"], paths, env).await else { return Vec::new() };
        let missing: Vec<&str> = paths.iter().copied().filter(|path| !tracked.contains(*path)).collect();
        if missing.is_empty() {
            continue;
        }
        let args = ["--others", "--ignored", "--exclude-standard"];
        let ignored = ls_files(&git, root, &args, &missing, env).await.unwrap_or_default();
        found.extend(
            missing
                .into_iter()
                .map(|path| Untracked { path: path.to_owned(), ignored: ignored.contains(path) }),
        );
    }
    found
}

async fn ls_files(
    git: &Path,
    root: &Path,
    which: &[&str],
    paths: &[&str],
    env: &BTreeMap<String, String>,
) -> Option<BTreeSet<String>> {
    // A stranger's checkout can name a program as its file monitor: looking at it must not run that.
    let mut args =
        vec!["-c", "core.fsmonitor=false", "--literal-pathspecs", "--no-optional-locks", "ls-files", "-z"];
    args.extend(which);
    args.push("--");
    args.extend(paths);
    let Ok(Ran { exit, stdout, .. }) = program::run(git, &args, env, root, Some(TIME)).await else {
        return None;
    };
    let names = stdout.split(|byte| *byte == 0).filter_map(|name| String::from_utf8(name.to_vec()).ok());
    exit.success().then(|| names.collect())
}

//! Which files Git would leave out of a release. A release holds only what Git tracks, so a module that works in the
//! working tree can be missing in a session.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use beeuni_daemon::checkout::Folder;
use beeuni_manifest::{FileKind, Files as _};

use crate::program::{self, Ran, on_path};
use crate::shell::shell_word;

/// How long Git may take for a look at its index.
const TIME: Duration = Duration::from_secs(20);

/// How many paths go into one call, far below what an argument list may hold.
const AT_ONCE: usize = 500;

/// How many links one path may lead through, as in Linux itself.
const MAX_LINKS: usize = 40;

/// What Git says where there is nothing to compare with.
const NO_REPOSITORY: &str = "not a git repository";

/// A stranger's checkout can name programs in its configuration: a look at its index must run none of them. It names a
/// file monitor and hooks, and a partial clone fetches what is missing through whatever its remote says.
const HARMLESS: [&str; 10] = [
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.allow=never",
    "-c",
    "credential.helper=",
    "--literal-pathspecs",
    "--no-optional-locks",
];

/// Git's whole environment, beside [`KEPT`]: nothing is fetched, nobody is asked, and messages are in English.
const SET: [(&str, &str); 4] = [
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LC_ALL", "C"),
];

/// What Git gets of our environment: where programs are, where the user's own settings (`safe.directory`) are, and who
/// stands behind `sudo`. No `GIT_*` variable, which could point it elsewhere, and no secret.
const KEPT: [&str; 4] = ["PATH", "HOME", "XDG_CONFIG_HOME", "SUDO_UID"];

/// A file that Git does not track.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
        let word = shell_word(path);
        format!("Git {what} \"{path}\", and a release holds only files that Git tracks: run `{todo} {word}`.")
    }
}

/// What Git must track for a project file to be in a release: the file itself, and each link that its path leads through.
/// Nothing for what is no file of the checkout.
pub(crate) fn needed(files: &Folder, path: &str) -> Vec<String> {
    if files.kind(path) != FileKind::File {
        return Vec::new();
    }
    let parts = |path: &Path| -> Vec<PathBuf> {
        path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    let (mut at, mut todo, mut found) = (files.root().to_owned(), parts(Path::new(path)), Vec::new());
    while let Some(part) = todo.pop() {
        match part.components().next() {
            Some(Component::ParentDir) => drop(at.pop()),
            // A link to an absolute path starts anew.
            Some(Component::RootDir) => at = part,
            Some(Component::Normal(name)) => match fs::read_link(at.join(name)) {
                // The files may change while they are looked at: links that never end are none.
                Ok(_) if found.len() >= MAX_LINKS => return Vec::new(),
                Ok(target) => {
                    found.push(at.join(name));
                    todo.extend(parts(&target));
                }
                Err(_) => at.push(name),
            },
            _ => {}
        }
    }
    found.push(at);
    let inside = |path: &PathBuf| Some(path.strip_prefix(files.root()).ok()?.to_str()?.to_owned());
    found.iter().filter_map(inside).collect()
}

/// Those of `paths` (relative to `root`, none of them beyond a link) that Git does not track. None where there is no Git
/// or no repository: then there is nothing to compare with. Fails with the reason why Git does not answer.
pub(crate) async fn untracked(
    root: &Path,
    paths: &BTreeSet<String>,
    env: &BTreeMap<String, String>,
) -> Result<BTreeSet<Untracked>, String> {
    let Some(git) = on_path("git", env.get("PATH").map_or("", String::as_str)) else {
        return Ok(BTreeSet::new());
    };
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut found = BTreeSet::new();
    for paths in paths.chunks(AT_ONCE) {
        let tracked = match ls_files(&git, root, &["--cached"], paths, env).await {
            Err(reason) if reason.contains(NO_REPOSITORY) => return Ok(BTreeSet::new()),
            answer => answer?,
        };
        let missing: Vec<&str> = paths.iter().copied().filter(|path| !tracked.contains(*path)).collect();
        if missing.is_empty() {
            continue;
        }
        let args = ["--others", "--ignored", "--exclude-standard"];
        let ignored = ls_files(&git, root, &args, &missing, env).await?;
        found.extend(
            missing
                .into_iter()
                .map(|path| Untracked { path: path.to_owned(), ignored: ignored.contains(path) }),
        );
    }
    Ok(found)
}

async fn ls_files(
    git: &Path,
    root: &Path,
    which: &[&str],
    paths: &[&str],
    env: &BTreeMap<String, String>,
) -> Result<BTreeSet<String>, String> {
    let args = [&HARMLESS, &["ls-files", "-z"][..], which, &["--"], paths].concat();
    let kept = KEPT.iter().filter_map(|name| env.get_key_value(*name));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    let env = kept.chain(SET.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect();
    let Ran { exit, stdout, stderr } =
        program::run(git, &args, &env, root, Some(TIME)).await.map_err(|error| error.to_string())?;
    if !exit.success() {
        let reason = stderr.lines().next().map(|line| line.trim_start_matches("fatal: ").to_owned());
        return Err(reason.unwrap_or_else(|| format!("git {exit}")));
    }
    let names = stdout.split(|byte| *byte == 0).filter_map(|name| String::from_utf8(name.to_vec()).ok());
    Ok(names.collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().canonicalize().unwrap().join(path);
        fs::create_dir_all(at("real/deep")).unwrap();
        fs::write(at("real/a.ts"), "").unwrap();
        symlink("middle", at("tools")).unwrap();
        symlink("real/deep/..", at("middle")).unwrap();
        symlink(at("tools/a.ts"), at("b.ts")).unwrap();
        symlink("/etc/passwd", at("out.ts")).unwrap();
        symlink("round.ts", at("round.ts")).unwrap();
        let files = Folder::open(folder.path()).unwrap();
        for (path, expected) in [
            ("real/a.ts", &["real/a.ts"][..]),
            ("tools/a.ts", &["tools", "middle", "real/a.ts"]),
            ("b.ts", &["b.ts", "tools", "middle", "real/a.ts"]),
            ("out.ts", &[]),
            ("round.ts", &[]),
            ("none.ts", &[]),
        ] {
            assert_eq!(needed(&files, path), expected, "{path}");
        }
    }
}

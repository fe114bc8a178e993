//! A temporary project in which nothing of the machine shows.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::bun;

/// Where programs are found: the system's own folders and no more.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A folder for a project beside a home of its own. Both go when it is dropped.
///
/// Every method panics when the disk or `git` fails: a test cannot go on then.
#[derive(Debug)]
pub struct Project {
    folder: TempDir,
}

#[allow(clippy::expect_used, clippy::missing_panics_doc, reason = "a test cannot go on without its project")]
impl Project {
    /// An empty project.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("beeuni-test-").tempdir().expect("a temporary folder");
        let project = Self { folder };
        for name in ["project", "home", "home/config", "home/data", "home/state", "home/cache", "tmp"] {
            fs::create_dir(project.folder.path().join(name)).expect("a folder of the project");
        }
        project
    }

    /// The project's folder.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        // Without links, so that it equals what a program finds out about its own working folder.
        self.folder.path().canonicalize().expect("the project's folder").join("project")
    }

    /// The home folder of the processes that run here; it holds the XDG folders `config`, `data`, `state`, `cache`.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A file's path.
    #[must_use]
    pub fn at(&self, file: impl AsRef<Path>) -> PathBuf {
        self.path().join(file)
    }

    /// Writes a file and the folders above it.
    pub fn write(&self, file: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.at(file);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("the folder of a file");
        fs::write(&path, content).expect("a file of the project");
        self
    }

    /// A file's text.
    #[must_use]
    pub fn read(&self, file: impl AsRef<Path>) -> String {
        let path = self.at(file);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Sets a file's mode, such as `0o600`.
    pub fn chmod(&self, file: impl AsRef<Path>, mode: u32) -> &Self {
        fs::set_permissions(self.at(file), fs::Permissions::from_mode(mode)).expect("a file's mode");
        self
    }

    /// Makes a symbolic link at `file` that holds `target`.
    pub fn link(&self, file: impl AsRef<Path>, target: impl AsRef<Path>) -> &Self {
        std::os::unix::fs::symlink(target, self.at(file)).expect("a symbolic link");
        self
    }

    /// Copies a folder's content into the project; links stay links.
    pub fn copy(&self, folder: &Path) -> &Self {
        copy(folder, &self.path());
        self
    }

    /// Makes it a git repository on branch `main` and commits everything.
    pub fn git(&self) -> &Self {
        for args in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "--all"],
            &["commit", "--quiet", "--allow-empty", "--message=Begin"],
        ] {
            let output = self.run("git", args);
            assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        self
    }

    /// The whole environment for a process of this project: its own home and temporary folder, the system's programs,
    /// a git identity, UTC, English, and the tests' Bun where there is one.
    #[must_use]
    pub fn environment(&self) -> BTreeMap<String, String> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let home = self.home();
        let mut environment: BTreeMap<String, String> = [
            ("GIT_AUTHOR_EMAIL", "ada@example.com"),
            ("GIT_AUTHOR_NAME", "Ada Example"),
            ("GIT_COMMITTER_EMAIL", "ada@example.com"),
            ("GIT_COMMITTER_NAME", "Ada Example"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("LANG", "C.UTF-8"),
            ("PATH", SYSTEM_PATH),
            ("TZ", "UTC"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        for (name, folder) in [
            ("HOME", home.clone()),
            ("TMPDIR", self.folder.path().join("tmp")),
            ("XDG_CACHE_HOME", home.join("cache")),
            ("XDG_CONFIG_HOME", home.join("config")),
            ("XDG_DATA_HOME", home.join("data")),
            ("XDG_STATE_HOME", home.join("state")),
        ] {
            environment.insert(name.to_owned(), text(folder));
        }
        if let Some(bun) = bun() {
            environment.insert("BEEUNI_BUN".to_owned(), text(bun));
        }
        environment
    }

    /// A command in the project's folder with [`Project::environment`] alone.
    #[must_use]
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(self.path())
            .env_clear()
            .envs(self.environment())
            .stdin(std::process::Stdio::null());
        command
    }

    /// Runs a program to its end.
    #[must_use]
    pub fn run(&self, program: impl AsRef<Path>, args: &[&str]) -> Output {
        let program = program.as_ref();
        let output = self.command(program).args(args).output();
        output.unwrap_or_else(|error| panic!("{}: {error}", program.display()))
    }
}

impl Default for Project {
    fn default() -> Self {
        Self::new()
    }
}

#[allow(clippy::expect_used, reason = "a test cannot go on without its files")]
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder to copy into");
    for entry in fs::read_dir(from).expect("a folder to copy") {
        let entry = entry.expect("an entry of a folder");
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().expect("the kind of an entry");
        if kind.is_dir() {
            copy(&source, &target);
        } else if kind.is_symlink() {
            let holds = fs::read_link(&source).expect("a link");
            std::os::unix::fs::symlink(holds, &target).expect("a copied link");
        } else {
            fs::copy(&source, &target).expect("a copied file");
        }
    }
}

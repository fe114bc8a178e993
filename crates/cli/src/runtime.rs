//! Where Bun is: what `beeuni setup` installs, and the order in which programs are looked for at run time.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::Failure;
use crate::program::{is_program, on_path};

/// Names the programs that `setup` installs.
pub(crate) const PACKAGE: &str = include_str!("../../../runtime/package.json");

/// Pins them, with a hash of each.
pub(crate) const LOCK: &str = include_str!("../../../runtime/package-lock.json");

/// The link to the installed Bun, inside the folder of one lock.
pub(crate) const BUN_LINK: &str = "bun";

/// Makes an OpenCode binary behave as the Bun that it is built on.
const BE_BUN: (&str, &str) = ("BUN_BE_BUN", "1");

/// Bun as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BunProgram {
    /// The binary, with links followed.
    pub path: PathBuf,
    /// How it was found.
    pub found: Found,
    /// Variables that it needs in its environment.
    pub env: BTreeMap<String, String>,
}

/// How a program was found, in the order of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A variable names it: `BEEUNI_BUN`, `BEEUNI_OPENCODE`.
    Variable,
    /// `beeuni setup` installed it.
    Setup,
    /// It is on `PATH`.
    Path,
    /// It is the Bun inside OpenCode.
    OpenCode,
}

impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Found::Variable => "named by a variable",
            Found::Setup => "from beeuni setup",
            Found::Path => "on PATH",
            Found::OpenCode => "inside OpenCode",
        })
    }
}

/// Why there is no Bun.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoBun {
    /// It was looked for everywhere.
    #[error("Bun is not installed: tools run in it")]
    Missing,
    /// The variable names something else.
    #[error("BEEUNI_BUN is {:?}, which is not the absolute path of a program", .0)]
    Variable(PathBuf),
}

impl From<NoBun> for Failure {
    fn from(missing: NoBun) -> Failure {
        let hint = match missing {
            NoBun::Missing => "run `beeuni setup`, or name a Bun with BEEUNI_BUN",
            NoBun::Variable(_) => "correct BEEUNI_BUN, or unset it and run `beeuni setup`",
        };
        Failure::failed(missing).hint(hint)
    }
}

/// Finds Bun: `BEEUNI_BUN`, what `beeuni setup` installed, `PATH`, the OpenCode binary.
///
/// Starts nothing, so that it costs nothing: whether what it finds is a working Bun shows when it runs.
pub fn find_bun(env: &BTreeMap<String, String>) -> Result<BunProgram, NoBun> {
    let program = |path: &Path, found, extra: &[(&str, &str)]| {
        let env = extra.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        // The sandbox grants the file itself, not the links to it.
        BunProgram { path: path.canonicalize().unwrap_or_else(|_| path.to_owned()), found, env }
    };
    if let Some(named) = set(env, "BEEUNI_BUN") {
        let named = Path::new(named);
        if !named.is_absolute() || !is_program(named) {
            return Err(NoBun::Variable(named.to_owned()));
        }
        return Ok(program(named, Found::Variable, &[]));
    }
    let installed = folder(env).map(|folder| folder.join(BUN_LINK)).filter(|file| is_program(file));
    if let Some(file) = installed {
        return Ok(program(&file, Found::Setup, &[]));
    }
    let path = set(env, "PATH").unwrap_or_default();
    if let Some(file) = on_path("bun", path) {
        return Ok(program(&file, Found::Path, &[]));
    }
    match find_opencode(env) {
        Some((file, _)) if is_elf(&file) => Ok(program(&file, Found::OpenCode, &[BE_BUN])),
        _ => Err(NoBun::Missing),
    }
}

/// Finds OpenCode: `BEEUNI_OPENCODE`, then `PATH`. No version of it is pinned yet, so `setup` installs none.
pub(crate) fn find_opencode(env: &BTreeMap<String, String>) -> Option<(PathBuf, Found)> {
    if let Some(named) = set(env, "BEEUNI_OPENCODE") {
        let named = PathBuf::from(named);
        return is_program(&named).then_some((named, Found::Variable));
    }
    on_path("opencode", set(env, "PATH")?).map(|file| (file, Found::Path))
}

/// The folder that `beeuni setup` fills for this program's lock: none without `XDG_DATA_HOME` and `HOME`.
pub(crate) fn folder(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    Some(parent(env)?.join(lock_hash()))
}

/// The folder above those of every lock.
pub(crate) fn parent(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let absolute = |name| set(env, name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("beeuni/runtime"))
}

/// The first 16 hex digits of the lock's SHA-256.
fn lock_hash() -> String {
    Sha256::digest(LOCK).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The version that the lock pins for a package: the one that a name, or the first of that scope, has.
pub(crate) fn pinned(package: &str) -> Option<String> {
    let lock: serde_json::Value = serde_json::from_str(LOCK).ok()?;
    let prefix = format!("node_modules/{package}");
    let (_, entry) = lock.get("packages")?.as_object()?.iter().find(|(path, _)| path.starts_with(&prefix))?;
    Some(entry.get("version")?.as_str()?.to_owned())
}

/// npm's OpenCode on `PATH` may be a script for Node; only the binary can be Bun.
fn is_elf(file: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(file).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}

fn set<'a>(env: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    env.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Machine {
            Machine(tempfile::tempdir().unwrap())
        }

        fn at(&self, file: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(file)
        }

        fn program(&self, file: &str, content: &[u8]) -> &Machine {
            let path = self.at(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            self
        }

        fn env(&self, more: &[(&str, &str)]) -> BTreeMap<String, String> {
            let text = |file: &str| self.at(file).to_string_lossy().into_owned();
            let mut env = BTreeMap::from([
                ("PATH".to_owned(), format!("relative:{}", text("bin"))),
                ("XDG_DATA_HOME".to_owned(), text("data")),
            ]);
            env.extend(more.iter().map(|(name, file)| ((*name).to_owned(), text(file))));
            env
        }
    }

    #[test]
    fn the_order_of_the_search() {
        let machine = Machine::new();
        let setup = format!("data/beeuni/runtime/{}/bun", lock_hash());
        let check = |more: &[(&str, &str)], expected: Result<(&str, Found), NoBun>| {
            let found = find_bun(&machine.env(more));
            let expected = expected.map(|(file, found)| (machine.at(file), found));
            assert_eq!(found.map(|bun| (bun.path, bun.found)), expected, "{more:?}");
        };
        check(&[], Err(NoBun::Missing));
        machine.program("bin/opencode", b"#!/usr/bin/env node\n");
        check(&[], Err(NoBun::Missing));
        machine.program("bin/opencode", b"\x7fELF and so on");
        check(&[], Ok(("bin/opencode", Found::OpenCode)));
        machine.program("other/opencode", b"\x7fELF and so on");
        check(&[("BEEUNI_OPENCODE", "other/opencode")], Ok(("other/opencode", Found::OpenCode)));
        machine.program("bin/bun", b"\x7fELF");
        check(&[], Ok(("bin/bun", Found::Path)));
        machine.program(&setup, b"\x7fELF");
        check(&[], Ok((&setup, Found::Setup)));
        machine.program("mine/bun", b"\x7fELF");
        check(&[("BEEUNI_BUN", "mine/bun")], Ok(("mine/bun", Found::Variable)));
        check(&[("BEEUNI_BUN", "mine/none")], Err(NoBun::Variable(machine.at("mine/none"))));
        check(&[("BEEUNI_BUN", "mine")], Err(NoBun::Variable(machine.at("mine"))));
    }

    #[test]
    fn opencode_is_told_to_be_bun() {
        let machine = Machine::new();
        machine.program("bin/opencode", b"\x7fELF");
        let bun = find_bun(&machine.env(&[])).unwrap();
        assert_eq!(bun.env, BTreeMap::from([("BUN_BE_BUN".to_owned(), "1".to_owned())]));
    }

    #[test]
    fn the_folder_follows_the_environment() {
        let check = |env: &[(&str, &str)], expected: Option<&str>| {
            let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(parent(&env), expected.map(PathBuf::from), "{env:?}");
        };
        check(&[("XDG_DATA_HOME", "/d"), ("HOME", "/h")], Some("/d/beeuni/runtime"));
        check(&[("XDG_DATA_HOME", ""), ("HOME", "/h")], Some("/h/.local/share/beeuni/runtime"));
        check(&[("XDG_DATA_HOME", "d"), ("HOME", "/h")], Some("/h/.local/share/beeuni/runtime"));
        check(&[], None);
    }

    #[test]
    fn the_lock_pins_one_bun() {
        let lock: serde_json::Value = serde_json::from_str(LOCK).unwrap();
        let versions: Vec<&str> = lock["packages"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(path, _)| path.starts_with("node_modules/@oven/bun-"))
            .map(|(_, entry)| entry["version"].as_str().unwrap())
            .collect();
        assert!(!versions.is_empty());
        for version in versions {
            assert_eq!(pinned("@oven/bun-").as_deref(), Some(version));
        }
        assert_eq!(pinned("no-such-package"), None);
        assert_eq!(lock_hash().len(), 16);
    }
}

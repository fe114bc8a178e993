//! What a confined child may reach: the ruleset and the filters, made before the child exists.

use crate::calls;
use crate::spec::Sandbox;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use seccompiler::BpfProgram;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Programs, libraries and the kernel's public facts. Not `/etc`, `/opt`, `/var`, `/run`, `/home` or `/root`:
/// a root user without capabilities still owns root's files, so private ones must not be on the list.
/// Bun ends at once without a readable `/proc`; what is private there, the kernel keeps by capability.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/proc",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    "/sys/kernel/mm/transparent_hugepage",
];

/// What programs read in `/etc` and what every user may know. Left out on purpose: `shadow`, `ssh`, `sudoers`,
/// `ssl/private`, `environment`, `machine-id` and the settings of servers.
const SETTINGS: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "gitconfig",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "inputrc",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "magic.mime",
    "mime.types",
    "networks",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/java",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "profile",
    "profile.d",
    "protocols",
    "resolv.conf",
    "rpc",
    "services",
    "shells",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "xdg",
    "xml",
];

/// Names in `/etc` with a version behind them.
const VERSIONED_SETTINGS: &[&str] = &["ImageMagick", "java-", "perl", "python3"];

/// Devices that hold nothing. `/dev/shm` is not here: all children of a user would share it.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Everything the new process hands to the kernel about itself; nothing is computed after the fork.
#[derive(Debug)]
pub(crate) struct Confinement {
    /// `None` where the kernel has no Landlock.
    pub(crate) ruleset: Option<OwnedFd>,
    /// Empty where the kernel cannot filter system calls.
    pub(crate) filters: Vec<BpfProgram>,
}

impl Confinement {
    /// Prepares a sandbox for one program, which the child may always read and execute.
    pub(crate) fn new(sandbox: &Sandbox, program: &Path) -> io::Result<Confinement> {
        let ruleset =
            ruleset(sandbox, program).map_err(|error| io::Error::other(format!("Landlock: {error}")))?;
        let filters = match crate::sys::has_seccomp() {
            true => calls::filters(sandbox.network)
                .map_err(|error| io::Error::other(format!("seccomp: {error}")))?,
            false => Vec::new(),
        };
        // The child puts its own descriptors at 0 to 3 before it confines itself: a ruleset there would be lost.
        let ruleset: Option<OwnedFd> = ruleset.into();
        let ruleset = ruleset.map(|low| crate::sys::move_up(low.as_fd())).transpose()?;
        Ok(Confinement { ruleset, filters })
    }
}

fn ruleset(sandbox: &Sandbox, program: &Path) -> Result<RulesetCreated, RulesetError> {
    // Of what this version knows, the kernel takes what it knows too.
    let abi = ABI::V10;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    if !sandbox.network {
        rules = rules.handle_access(AccessNet::from_all(abi))?;
    }
    let mut rules = rules.create()?;
    let settings = SETTINGS.iter().map(|name| Path::new("/etc").join(name)).chain(versioned_settings());
    let read = SYSTEM.iter().map(PathBuf::from).chain(settings).chain(sandbox.read.iter().cloned());
    let write = DEVICES.iter().map(PathBuf::from).chain(sandbox.write.iter().cloned());
    let access = [
        (read.chain([program.to_owned()]).collect::<Vec<_>>(), AccessFs::from_read(abi)),
        (write.collect(), AccessFs::from_all(abi)),
    ];
    for (paths, access) in access {
        for path in paths {
            // What is not there, or cannot be seen by this user, cannot be granted.
            if let Ok(path) = PathFd::new(path) {
                rules = rules.add_rule(PathBeneath::new(path, access))?;
            }
        }
    }
    Ok(rules)
}

fn versioned_settings() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/etc") else { return Vec::new() };
    let wanted = |name: &str| VERSIONED_SETTINGS.iter().any(|start| name.starts_with(start));
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(wanted))
        .map(|e| e.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn the_ruleset_is_out_of_the_childs_way() {
        // Test programs start with 3 free, which is where a new descriptor lands.
        for _ in 0..8 {
            let confinement = Confinement::new(&Sandbox::default(), Path::new("/bin/sh")).unwrap();
            assert!(confinement.ruleset.is_none_or(|ruleset| ruleset.as_raw_fd() >= 10));
        }
    }
}

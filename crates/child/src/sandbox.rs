//! What a confined child may reach: the ruleset and the filters, made before the child exists.

use crate::spec::Sandbox;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};
use std::collections::BTreeMap;
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

/// System calls that a tool never needs, and that look into other processes, change what the machine looks
/// like, or have often let a process out of its confinement.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Flags with which `clone` makes namespaces; in a user namespace of its own a process has every capability.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

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
            true => {
                filters(sandbox.network).map_err(|error| io::Error::other(format!("seccomp: {error}")))?
            }
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

fn filters(network: bool) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let always = |calls: &[libc::c_long]| calls.iter().map(|&call| (call, Vec::new())).collect();
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = always(REFUSED);
    // `clone` makes namespaces when any of the flags is set, which is one rule for each.
    let flags = (0..64).map(|bit| 1u64 << bit).filter(|flag| NAMESPACES & flag != 0);
    let clone = flags.map(|flag| {
        let set = SeccompCmpOp::MaskedEq(flag);
        SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Qword, set, flag)?])
    });
    refused.insert(libc::SYS_clone, clone.collect::<Result<_, _>>()?);

    let families: &[i32] = match network {
        true => &[libc::AF_UNIX, libc::AF_NETLINK, libc::AF_INET, libc::AF_INET6],
        false => &[libc::AF_UNIX, libc::AF_NETLINK],
    };
    let other = families
        .iter()
        .map(|&family| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family as u64));
    let socket =
        BTreeMap::from([(libc::SYS_socket, vec![SeccompRule::new(other.collect::<Result<_, _>>()?)?])]);

    Ok(vec![
        filter(libc::EPERM, refused)?,
        filter(libc::EACCES, socket)?,
        // Its flags are in memory, where a filter cannot look; the C library then turns to `clone`.
        filter(libc::ENOSYS, always(&[libc::SYS_clone3]))?,
        // The call is answered as done and is not: a child stays in its session, by which all its descendants
        // are found and ended with it. Programs that ask for a session mostly fail without one.
        filter(0, always(&[libc::SYS_setsid]))?,
    ])
}

/// A filter that answers these calls with an error number and lets all others pass.
fn filter(
    answer: i32,
    rules: BTreeMap<i64, Vec<SeccompRule>>,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let program = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(answer as u32), arch)?;
    let mut program: BpfProgram = program.try_into()?;
    program.splice(0..0, NO_X32);
    Ok(program)
}

/// On x86-64 each call has a second number with this bit set, by which a list of numbers could be passed round.
const NO_X32: [sock_filter; 3] = [
    sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: 0 },
    sock_filter { code: (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16, jt: 0, jf: 1, k: 0x4000_0000 },
    sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
    },
];

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

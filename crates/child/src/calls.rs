//! Which system calls a confined child may make, as filters for the kernel.

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};
use std::collections::BTreeMap;

/// System calls that a tool never needs, and that look into other processes, change what the machine looks
/// like, have often let a process out of its confinement, or keep memory that belongs to no process and so
/// passes every limit (System V and POSIX queues, segments and semaphores).
const REFUSED: &[c_long] = &[
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
    libc::SYS_memfd_secret,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_mq_getsetattr,
    libc::SYS_mq_notify,
    libc::SYS_mq_open,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
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

/// Calls that change how a process runs, each with the number of the argument that names it. The kernel lets a
/// process do this to every other one of its user, and so does Landlock: only 0, the caller itself, may be named.
const ON_PROCESSES: &[(c_long, u8)] = &[
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_setpriority, 1),
];

/// Calls that say by their first argument what the second one names, each with the number for a user: all of it.
const ON_USERS: &[(c_long, u64)] =
    &[(libc::SYS_ioprio_set, 3), (libc::SYS_setpriority, libc::PRIO_USER as u64)];

/// Calls that give a file a mode, each with the number of that argument.
const WITH_MODE: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];

/// The same number on every architecture.
const FCHMODAT2: c_long = 452;

/// Calls that give a mode only when their flags say that they create, with the numbers of flags and mode.
const OPENING: &[(c_long, u8, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
    (libc::SYS_openat, 2, 3),
];

/// With these a file acts as its owner or its group, whoever runs it.
const SPECIAL_MODES: &[u32] = &[libc::S_ISUID, libc::S_ISGID];

/// The filters of one sandbox. The kernel takes, of what they answer to a call, the strictest.
pub(crate) fn filters(network: bool) -> Result<Vec<BpfProgram>, BackendError> {
    let always = |calls: &[c_long]| calls.iter().map(|&call| (call, Vec::new())).collect();
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = always(REFUSED);
    // `clone` makes namespaces when any of the flags is set, which is one rule for each.
    let flags = (0..64).map(|bit| 1u64 << bit).filter(|flag| NAMESPACES & flag != 0);
    let clone = flags.map(|flag| rule([has(0, flag)]));
    refused.insert(libc::SYS_clone, clone.collect::<Result<_, _>>()?);

    let families: &[i32] = match network {
        true => &[libc::AF_UNIX, libc::AF_NETLINK, libc::AF_INET, libc::AF_INET6],
        false => &[libc::AF_UNIX, libc::AF_NETLINK],
    };
    let other = families.iter().map(|&family| is_not(0, family as u64));
    let socket = BTreeMap::from([(libc::SYS_socket, vec![rule(other)?])]);

    Ok(vec![
        filter(libc::EPERM, refused)?,
        filter(libc::EPERM, on_processes()?)?,
        filter(libc::EPERM, special_modes()?)?,
        filter(libc::EACCES, socket)?,
        // What these would do is said in memory, where a filter cannot look; callers turn to `clone` and `openat`.
        // Memory behind a descriptor of `memfd_create` is in no process that could be watched for it.
        filter(libc::ENOSYS, always(&[libc::SYS_clone3, libc::SYS_openat2, libc::SYS_memfd_create]))?,
        // The call is answered as done and is not: a child stays in its session, by which all its descendants
        // are found and ended with it. Programs that ask for a session mostly fail without one.
        filter(0, always(&[libc::SYS_setsid]))?,
    ])
}

/// Rules that match when another process than the caller is to be changed.
fn on_processes() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for &(call, process) in ON_PROCESSES {
        rules.entry(call).or_default().push(rule([is_not(process, 0)])?);
    }
    for &(call, user) in ON_USERS {
        rules.entry(call).or_default().push(rule([is(0, user)])?);
    }
    // To read the limits of another process is harmless; to set one can end it.
    let sets = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
    rules.insert(libc::SYS_prlimit64, vec![rule([is_not(0, 0), sets])?]);
    Ok(rules)
}

/// Rules that match when a file is to act as its owner or group for others, or a device is to be made.
fn special_modes() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for bit in SPECIAL_MODES.iter().map(|&bit| u64::from(bit)) {
        for &(call, mode) in WITH_MODE {
            rules.entry(call).or_default().push(rule([has(mode, bit)])?);
        }
        for &(call, flags, mode) in OPENING {
            // The second flag is a part of O_TMPFILE, which also says O_DIRECTORY.
            for creates in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
                let creates = has(flags, creates as u64);
                rules.entry(call).or_default().push(rule([creates, has(mode, bit)])?);
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    const MAKING: &[(c_long, u8)] = &[(libc::SYS_mknod, 1), (libc::SYS_mknodat, 2)];
    #[cfg(not(target_arch = "x86_64"))]
    const MAKING: &[(c_long, u8)] = &[(libc::SYS_mknodat, 2)];
    for &(call, mode) in MAKING {
        for device in [libc::S_IFCHR, libc::S_IFBLK] {
            let kind = SeccompCmpOp::MaskedEq(u64::from(libc::S_IFMT));
            let device = SeccompCondition::new(mode, SeccompCmpArgLen::Dword, kind, u64::from(device));
            rules.entry(call).or_default().push(rule([device])?);
        }
    }
    Ok(rules)
}

type Condition = Result<SeccompCondition, BackendError>;

/// A rule that matches when all conditions hold.
fn rule(conditions: impl IntoIterator<Item = Condition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

/// The kernel reads these arguments as numbers of 32 bits and so does the filter; what is above is ignored.
fn is(argument: u8, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn has(argument: u8, bit: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bit), bit)
}

/// A filter that answers these calls with an error number and lets all others pass.
fn filter(answer: i32, rules: BTreeMap<i64, Vec<SeccompRule>>) -> Result<BpfProgram, BackendError> {
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

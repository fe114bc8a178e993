//! The system calls that the standard library does not offer, each behind a safe function.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use tokio::io::unix::AsyncFd;

/// Sends a signal to every process of a group. The caller knows that the group is still the one it means.
pub(crate) fn signal_group(group: i32, signal: i32) {
    // SAFETY: kill touches no memory of ours.
    unsafe { libc::kill(-group, signal) };
}

/// Sends a signal to one process. The caller knows that it is still the one it means.
pub(crate) fn signal_process(pid: i32, signal: i32) {
    // SAFETY: kill touches no memory of ours.
    unsafe { libc::kill(pid, signal) };
}

/// A descriptor that stands for a process and becomes readable when it ends. Needs Linux 5.3.
pub(crate) fn pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call touches no memory of ours, and the descriptor it returns is owned by nobody else.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as RawFd)) }
    }
}

/// Kills the process that a descriptor from [`pidfd`] stands for.
pub(crate) fn kill_by_pidfd(process: &OwnedFd) {
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is allowed and means the one that kill() would send.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), libc::SIGKILL, none, 0) };
}

/// Registers a descriptor with the current tokio runtime.
pub(crate) fn watched(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd stays open and the same for as long as the AsyncFd that owns it.
    unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)
}

/// Whether a child of ours has ended; it stays a zombie, so its id stays taken.
pub(crate) fn has_ended(pid: i32) -> bool {
    // SAFETY: siginfo_t is plain data for which all zeroes is a valid value, and waitid writes only into it.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) != 0 || info.si_pid() != 0
    }
}

/// Waits for a child of ours to end and takes its status; `None` when somebody else took it.
pub(crate) fn reap(pid: i32) -> Option<i32> {
    let mut status = 0;
    loop {
        // SAFETY: waitpid writes only into `status`.
        let found = unsafe { libc::waitpid(pid, &mut status, 0) };
        match found {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => continue,
            -1 => return None,
            _ => return Some(status),
        }
    }
}

/// Takes the statuses of ended processes that became our children when their parent died (we are process 1 of a
/// container, or a subreaper). The target is a process, or a group as a negative number. True when none are left.
pub(crate) fn reap_adopted(target: i32) -> bool {
    loop {
        // SAFETY: a null status is allowed.
        match unsafe { libc::waitpid(target, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => return false,
            -1 => return true,
            _ => continue,
        }
    }
}

/// The session a process is in; `None` when there is no such process.
pub(crate) fn session(pid: i32) -> Option<i32> {
    // SAFETY: getsid touches no memory of ours.
    Some(unsafe { libc::getsid(pid) }).filter(|&session| session >= 0)
}

/// A copy of a descriptor, numbered 10 or higher and closed on exec, so that it is in nobody's way.
pub(crate) fn move_up(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor that the call returns is owned by nobody else.
    unsafe {
        let copy = libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 10);
        if copy < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(copy)) }
    }
}

/// Whether this user may execute a file, as the kernel would judge it.
pub(crate) fn may_execute(path: &std::ffi::CStr) -> bool {
    // SAFETY: the pointer is to a string that ends with a zero byte and outlives the call.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) == 0 }
}

/// Whether this process acts as the root user.
pub(crate) fn is_root() -> bool {
    // SAFETY: geteuid touches no memory and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Size of a page of memory in bytes.
pub(crate) fn page_size() -> u64 {
    // SAFETY: sysconf touches no memory of ours.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Version of the kernel's Landlock interface, when it has one and it is switched on.
pub(crate) fn landlock_abi() -> Option<u32> {
    const VERSION: libc::c_uint = 1;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel wants exactly a null pointer and size 0, and only returns a number.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, VERSION) };
    u32::try_from(abi).ok().filter(|&abi| abi > 0)
}

/// Whether the kernel can answer a system call with an error on a filter's word.
pub(crate) fn has_seccomp() -> bool {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the call reads four bytes behind the pointer, which outlives it.
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) == 0 }
}

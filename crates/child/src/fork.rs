//! The step from a plan to a running process.
//!
//! All that needs memory happens in [`Plan`], before the fork. Between fork and exec the child shares its
//! memory's state with threads that no longer exist, so it makes system calls and nothing else.
#![allow(unsafe_code)]

use crate::sandbox::Confinement;
use crate::spec::Limits;
use crate::stem;
use libc::{c_char, c_int, c_uint, c_ulong, c_void};
use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;

/// A child, ready to be forked.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) program: CString,
    pub(crate) args: Vec<CString>,
    /// Each as `NAME=value`.
    pub(crate) env: Vec<CString>,
    pub(crate) cwd: CString,
    /// Become descriptors 0, 1, 2 and, if there is a fourth, 3. All numbered above those.
    pub(crate) descriptors: Vec<OwnedFd>,
    pub(crate) limits: Limits,
    pub(crate) confinement: Option<Confinement>,
    /// Whether the kernel kills it when this thread ends, however it ends.
    pub(crate) dies_with_parent: bool,
    /// Whether a stem stands between, which ends what leaves the child's session.
    pub(crate) stem: bool,
}

/// The processes of a child that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    /// What was forked, is to be signalled and is to be reaped: the stem, or else the program.
    pub(crate) leader: i32,
    pub(crate) program: i32,
}

/// What a new process was doing when the system refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    Fork,
    Session,
    Descriptors,
    Folder,
    Limits,
    Privileges,
    Landlock,
    Seccomp,
    Exec,
}

impl Step {
    const ALL: [Step; 9] = [
        Step::Fork,
        Step::Session,
        Step::Descriptors,
        Step::Folder,
        Step::Limits,
        Step::Privileges,
        Step::Landlock,
        Step::Seccomp,
        Step::Exec,
    ];

    pub(crate) fn describe(self) -> &'static str {
        match self {
            Step::Fork => "no new process",
            Step::Session => "no session of its own",
            Step::Descriptors => "its descriptors could not be set up",
            Step::Folder => "its working directory could not be entered",
            Step::Limits => "its limits could not be set",
            Step::Privileges => "its privileges could not be given up",
            Step::Landlock => "its paths could not be confined (Landlock)",
            Step::Seccomp => "its system calls could not be confined (seccomp)",
            Step::Exec => "the program could not be executed",
        }
    }
}

impl Plan {
    /// Forks and executes; returns once the program runs, or what went wrong. A child that could not execute is
    /// reaped before this returns.
    pub(crate) fn run(&self) -> Result<Started, (Step, io::Error)> {
        let failed = |error| (Step::Fork, error);
        let (mut verdict, writer) = io::pipe().map_err(failed)?;
        let report = crate::sys::move_up(writer.as_fd()).map_err(failed)?;
        // The verdict is read until the last writing end closes, so none may stay here.
        drop(writer);
        let args = pointers(&self.args);
        let env = pointers(&self.env);
        let image = Image {
            plan: self,
            args: &args,
            env: &env,
            report: report.as_raw_fd(),
            parent: std::process::id() as c_int,
            limits: rlimits(&self.limits),
        };
        // SAFETY: see `fork`: `image` borrows everything it needs and outlives the call.
        let pid = unsafe { fork(&image) }.map_err(failed)?;
        drop(report);
        let mut message = [0; 5];
        // Without a stem, the pipe closes without a word when exec succeeds.
        match (verdict.read_exact(&mut message), message) {
            (Err(_), _) => Ok(Started { leader: pid, program: pid }),
            (Ok(()), [stem::RUNS, program @ ..]) => {
                Ok(Started { leader: pid, program: i32::from_ne_bytes(program) })
            }
            (Ok(()), [step, errno @ ..]) => {
                crate::sys::reap(pid);
                let step = Step::ALL.into_iter().find(|&known| known as u8 == step).unwrap_or(Step::Exec);
                Err((step, io::Error::from_raw_os_error(i32::from_ne_bytes(errno))))
            }
        }
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = c_int;

type Rlimits = [(Resource, Option<u64>); 5];

fn rlimits(limits: &Limits) -> Rlimits {
    // The watch on memory acts late, so what a burst can take before that has an end as well. Bun reserves much
    // that it never uses: with less than 2.5 GiB it turns its compiler off without a word (measured, 1.4.5).
    let data = (limits.memory != u64::MAX).then(|| limits.memory.saturating_mul(2).saturating_add(4 << 30));
    [
        (libc::RLIMIT_CORE, Some(0)),
        (libc::RLIMIT_NOFILE, Some(limits.files)),
        (libc::RLIMIT_FSIZE, Some(limits.file_size)),
        (libc::RLIMIT_DATA, data),
        (libc::RLIMIT_NPROC, limits.processes.filter(|_| !crate::sys::is_root())),
    ]
}

/// What the child reads of its parent's memory.
#[derive(Clone, Copy)]
pub(crate) struct Image<'a> {
    plan: &'a Plan,
    args: &'a [*const c_char],
    env: &'a [*const c_char],
    pub(crate) report: c_int,
    pub(crate) parent: c_int,
    limits: Rlimits,
}

/// # Safety
/// `args` and `env` of the image must end with a null pointer, and all that it borrows must stay as it is.
unsafe fn fork(image: &Image<'_>) -> io::Result<c_int> {
    // SAFETY: sigset_t is plain data that sigfillset fills in before it is read; pthread_sigmask reads and
    // writes only the two sets. The child branch never returns, and makes only async-signal-safe calls.
    // Signals are blocked across the fork so that no handler of the parent's runs in the child.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let pid = libc::fork();
        if pid == 0 {
            become_program(image);
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        if pid < 0 { Err(error) } else { Ok(pid) }
    }
}

/// Runs in the child: becomes the program, or the stem that starts it.
///
/// # Safety
/// Only to be called in a just forked process, with an image as `fork` wants it.
unsafe fn become_program(image: &Image<'_>) -> ! {
    // SAFETY: handed on.
    unsafe {
        if image.plan.stem {
            stem::stand(image);
        }
        let step = launch(image);
        report_failure(image, step)
    }
}

/// Gives up what the program must not have and executes it. Returns only when that failed, with `errno` set.
///
/// # Safety
/// As for `become_program`.
pub(crate) unsafe fn launch(image: &Image<'_>) -> Step {
    // SAFETY: the calls are async-signal-safe, and the pointers are to the image.
    unsafe {
        match prepare(image) {
            Err(step) => step,
            Ok(()) => {
                libc::execve(image.plan.program.as_ptr(), image.args.as_ptr(), image.env.as_ptr());
                Step::Exec
            }
        }
    }
}

/// Says which step failed, and ends the process.
///
/// # Safety
/// As for `become_program`.
pub(crate) unsafe fn report_failure(image: &Image<'_>, step: Step) -> ! {
    // SAFETY: as above; the message is on this stack.
    unsafe {
        let mut message = [step as u8, 0, 0, 0, 0];
        message[1..].copy_from_slice(&(*libc::__errno_location()).to_ne_bytes());
        libc::write(image.report, message.as_ptr().cast(), message.len());
        libc::_exit(127)
    }
}

/// # Safety
/// As for `become_program`.
unsafe fn prepare(image: &Image<'_>) -> Result<(), Step> {
    let plan = image.plan;
    // SAFETY: as above. The order matters: descriptors before limits on them, privileges before the filters
    // that would refuse the calls, Landlock after the last path is opened.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        for signal in 1..=64 {
            // An ignored signal would stay ignored in the program; Rust ignores SIGPIPE.
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());

        check(libc::setsid(), Step::Session)?;
        if plan.dies_with_parent {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), Step::Session)?;
            if libc::getppid() != image.parent {
                // The parent ended before the line above, so nothing would end this process.
                libc::_exit(127);
            }
        }

        let mut first_free: c_uint = 0;
        for descriptor in &plan.descriptors {
            check(libc::dup2(descriptor.as_raw_fd(), first_free as c_int), Step::Descriptors)?;
            first_free += 1;
        }
        close_on_exec_from(first_free);

        check(libc::chdir(plan.cwd.as_ptr()), Step::Folder)?;
        for (resource, value) in image.limits {
            if let Some(value) = value {
                check(set_limit(resource, value), Step::Limits)?;
            }
        }
        prefer_for_out_of_memory();

        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), Step::Privileges)?;
        if let Some(confinement) = &plan.confinement {
            check(drop_capabilities(), Step::Privileges)?;
            if let Some(ruleset) = &confinement.ruleset {
                let done = libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0);
                check(done as c_int, Step::Landlock)?;
            }
            for filter in &confinement.filters {
                let program = libc::sock_fprog {
                    len: filter.len() as u16,
                    // The two crates declare the kernel's one `sock_filter`; the kernel only reads it.
                    filter: filter.as_ptr().cast::<libc::sock_filter>().cast_mut(),
                };
                let done = libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program);
                check(done, Step::Seccomp)?;
            }
        }
    }
    Ok(())
}

fn check(result: c_int, step: Step) -> Result<(), Step> {
    if result < 0 { Err(step) } else { Ok(()) }
}

/// # Safety
/// As for `become_program`.
unsafe fn close_on_exec_from(first: c_uint) {
    // SAFETY: both calls only change flags of descriptors in this process.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 {
            return;
        }
        // Before Linux 5.11 they are marked one by one.
        for descriptor in first as c_int..65_536 {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Sets both limits, to no more than the parent may give.
///
/// # Safety
/// As for `become_program`.
unsafe fn set_limit(resource: Resource, value: u64) -> c_int {
    // SAFETY: the calls read and write only the struct on this stack.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(resource, &mut limit) < 0 {
            return -1;
        }
        let value = (value as libc::rlim_t).min(limit.rlim_max);
        libc::setrlimit(resource, &libc::rlimit { rlim_cur: value, rlim_max: value })
    }
}

/// When the machine runs out of memory, a child goes before the process that owns it. Where `/proc` is not
/// there to ask, the kernel chooses as it always does.
///
/// # Safety
/// As for `become_program`.
unsafe fn prefer_for_out_of_memory() {
    // SAFETY: the strings are constants, and the descriptor is this function's own.
    unsafe {
        let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file >= 0 {
            libc::write(file, b"500".as_ptr().cast(), 3);
            libc::close(file);
        }
    }
}

/// Gives up every capability for good, also what a program of root's would get at exec.
///
/// # Safety
/// As for `become_program`.
unsafe fn drop_capabilities() -> c_int {
    const NO_ROOT_FOR_GOOD: c_ulong = 0x2f;
    const VERSION_3: u32 = 0x2008_0522;
    // SAFETY: prctl takes numbers here; capset reads a header and two sets, both on this stack.
    unsafe {
        // These two need a capability themselves. Without it there is little to give up, and no_new_privs
        // keeps exec from adding any; so a refusal is not a failure.
        for capability in 0..64 as c_ulong {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        libc::prctl(libc::PR_SET_SECUREBITS, NO_ROOT_FOR_GOOD, 0, 0, 0);
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        let header: [u32; 2] = [VERSION_3, 0];
        let sets = [0u32; 6];
        libc::syscall(libc::SYS_capset, header.as_ptr().cast::<c_void>(), sets.as_ptr().cast::<c_void>())
            as c_int
    }
}

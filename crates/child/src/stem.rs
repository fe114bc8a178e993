//! The process between this one and a child that may leave its session.
//!
//! What such a child starts can take a session of its own and lose its parents, and then nothing tells whose it
//! is. The kernel gives orphans to the nearest ancestor that asked for them: for each child that is a process of
//! its own, the stem. It ends with the child, or when told, or with the thread that forked it, and kills all that
//! it still has before. It is a fork that never executes anything, so it makes system calls and nothing else.
#![allow(unsafe_code)]

use crate::fork::{Image, launch};
use libc::{c_int, c_uint, c_void};
use std::ptr;

/// Tells a stem to kill everything below it, and to end. SIGKILL would leave it no time to.
pub(crate) const END: c_int = libc::SIGUSR1;

/// First byte of the report that the program runs; its id follows.
pub(crate) const RUNS: u8 = u8::MAX;

/// Rounds of killing, each with a wait of at most [`REST`]: together the longest that an end can take.
const ROUNDS: u32 = 1000;
const REST: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// What the program's first steps share with the stem, whose memory they run in.
struct Launch<'a> {
    image: Image<'a>,
    failed: bool,
}

/// Becomes the stem of a program and starts that.
///
/// # Safety
/// Only to be called in a just forked process with all signals blocked, and with an image as `fork` wants it.
pub(crate) unsafe fn stand(image: &Image<'_>) -> ! {
    // SAFETY: every call is async-signal-safe, and every pointer is to this stack. The program's first steps run
    // on `stack`, while this process waits for its exec; what they write is theirs or an atomic flag's worth.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::prctl(libc::PR_SET_NAME, c"beeuni-stem".as_ptr());
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::prctl(libc::PR_SET_PDEATHSIG, END);
        if libc::getppid() != image.parent {
            libc::_exit(127);
        }
        let mut image = *image;
        image.parent = libc::getpid();
        let mut stack = [0u128; 4096];
        let mut start = Launch { image, failed: false };
        let top = stack.as_mut_ptr_range().end.cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let program = libc::clone(first_steps, top, flags, (&raw mut start).cast());
        if program < 0 {
            crate::fork::report_failure(&image, crate::fork::Step::Fork);
        }
        if ptr::read_volatile(&raw const start.failed) {
            libc::_exit(127);
        }
        let [a, b, c, d] = program.to_ne_bytes();
        libc::write(image.report, [RUNS, a, b, c, d].as_ptr().cast(), 5);
        close_all();
        libc::chdir(c"/".as_ptr());
        // A copy of the parent's memory is nobody's to read, nor to be dumped when this ends by a signal.
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        until_the_end(program);
        end_as(bury(program))
    }
}

extern "C" fn first_steps(start: *mut c_void) -> c_int {
    // SAFETY: the pointer is to the `Launch` of `stand`, which waits until this has executed or ended.
    unsafe {
        let start = start.cast::<Launch<'_>>();
        let step = launch(&(*start).image);
        ptr::write_volatile(&raw mut (*start).failed, true);
        crate::fork::report_failure(&(*start).image, step)
    }
}

/// Waits until the program has ended (and is not reaped) or the stem is told to end; buries orphans meanwhile.
///
/// # Safety
/// Only in a stem.
unsafe fn until_the_end(program: c_int) {
    // SAFETY: the structs are plain data on this stack, for which all zeroes is a valid value.
    unsafe {
        let mut awaited: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut awaited);
        for signal in [libc::SIGCHLD, libc::SIGTERM, END] {
            libc::sigaddset(&mut awaited, signal);
        }
        loop {
            match libc::sigwaitinfo(&awaited, ptr::null_mut()) {
                END => return,
                libc::SIGTERM => drop(libc::kill(-program, libc::SIGTERM)),
                _ => {}
            }
            loop {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
                if libc::waitid(libc::P_ALL, 0, &mut info, flags) != 0 || info.si_pid() == program {
                    return;
                }
                if info.si_pid() == 0 {
                    break;
                }
                libc::waitpid(info.si_pid(), ptr::null_mut(), 0);
            }
        }
    }
}

/// Kills children until none is left: those of a killed one become this process's own. Returns the program's
/// status. What may not be killed, as it runs as another user, is left.
///
/// # Safety
/// Only in a stem.
unsafe fn bury(program: c_int) -> c_int {
    // SAFETY: as in `until_the_end`.
    unsafe {
        let mut status = libc::SIGKILL;
        let mut ended: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut ended);
        libc::sigaddset(&mut ended, libc::SIGCHLD);
        // The program is not reaped yet, so the id of its group is still its own.
        libc::kill(-program, libc::SIGKILL);
        libc::kill(program, libc::SIGKILL);
        for _ in 0..ROUNDS {
            let killed = kill_children();
            loop {
                let mut found = 0;
                match libc::waitpid(-1, &mut found, libc::WNOHANG) {
                    0 => break,
                    -1 => return status,
                    pid if pid == program => status = found,
                    _ => {}
                }
            }
            if !killed {
                break;
            }
            libc::sigtimedwait(&ended, ptr::null_mut(), &REST);
        }
        status
    }
}

/// Sends SIGKILL to the children of this process, or to the first thousand; false when it reached none.
///
/// # Safety
/// Only in a stem.
unsafe fn kill_children() -> bool {
    // SAFETY: the path is a constant, the descriptor this function's own, and the buffer on this stack.
    unsafe {
        let mut text = [0u8; 8192];
        let file = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let count = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        let (mut pid, mut killed) = (0, false);
        // Each id ends with a space; one that the buffer cut off does not, and is another process's.
        for &byte in text.iter().take(usize::try_from(count).unwrap_or(0)) {
            match byte {
                b'0'..=b'9' => pid = pid * 10 + c_int::from(byte - b'0'),
                _ => {
                    killed |= pid > 0 && libc::kill(pid, libc::SIGKILL) == 0;
                    pid = 0;
                }
            }
        }
        killed
    }
}

/// Ends this process just as the program ended.
///
/// # Safety
/// Only in a stem.
unsafe fn end_as(status: c_int) -> ! {
    // SAFETY: the set is on this stack, and the calls change only this process.
    unsafe {
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            // Whatever else is pending must not end this process in another way.
            let mut this: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut this);
            libc::sigaddset(&mut this, signal);
            libc::kill(libc::getpid(), signal);
            libc::sigprocmask(libc::SIG_UNBLOCK, &this, ptr::null_mut());
            libc::_exit(128 + signal);
        }
        libc::_exit(libc::WEXITSTATUS(status))
    }
}

/// # Safety
/// Only in a stem.
unsafe fn close_all() {
    // SAFETY: this process uses no descriptor from here on but those it opens.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 0, c_uint::MAX, 0) != 0 {
            for descriptor in 0..65_536 {
                libc::close(descriptor);
            }
        }
    }
}

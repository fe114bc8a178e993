//! What this machine's kernel offers for confining a child.

use crate::sys;
use std::fs;

/// What this machine's kernel offers for confining a child; shown by `doctor` and by health.
///
/// A child is confined with what there is. Nothing here stops a start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Support {
    /// Version of Landlock's interface; `None` when the kernel has none.
    pub landlock_abi: Option<u32>,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// Whether a child loses every capability for good; where not, it still can gain none.
    pub capabilities: bool,
    /// Whether `/proc` can be read, without which memory is not watched and strays are not found.
    pub proc: bool,
    /// Whether the kernel lists a process's children, without which a child outside a sandbox can leave some behind.
    pub children: bool,
    /// One sentence for each thing that a sandbox goes without on this machine.
    pub notes: Vec<String>,
}

/// Asks the kernel what it offers. Starts nothing and changes nothing.
pub fn probe() -> Support {
    const SETPCAP: u64 = 1 << 8;
    let status = fs::read_to_string("/proc/self/status").ok();
    let held = status.as_ref().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    });
    let mut support = Support {
        landlock_abi: sys::landlock_abi(),
        seccomp: sys::has_seccomp(),
        capabilities: held.is_some_and(|held| held == 0 || held & SETPCAP != 0),
        proc: status.is_some(),
        children: fs::exists("/proc/thread-self/children").unwrap_or(false),
        notes: Vec::new(),
    };
    support.notes = notes(&support);
    support
}

fn notes(support: &Support) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |text: &str| notes.push(text.to_owned());
    match support.landlock_abi {
        None => note("This kernel has no Landlock: a tool can read and write whatever this user can."),
        Some(abi) => {
            if abi < 4 {
                note(
                    "Landlock here does not know TCP: a tool without network is kept off it by seccomp alone.",
                );
            }
            if abi < 6 {
                note("Landlock here does not know signals: a tool can signal processes of this user.");
            }
            if abi < 9 {
                note(
                    "Landlock here does not know Unix sockets in folders: a tool can connect to those of this user.",
                );
            }
        }
    }
    if !support.seccomp {
        note("This kernel has no seccomp filters: a tool can make any system call.");
    }
    if !support.capabilities {
        note("This process may not give up capabilities for its children; they can still gain none.");
    }
    if !support.proc {
        note("There is no /proc here: memory limits are not watched, and most programs do not start.");
    }
    if support.proc && !support.children {
        note(
            "This kernel does not list children: what a command puts into a session of its own may outlive it.",
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_missing() {
        let check = |landlock_abi, seccomp, count: usize| {
            let whole = Support { capabilities: true, proc: true, children: true, ..Support::default() };
            let support = Support { landlock_abi, seccomp, ..whole };
            assert_eq!(notes(&support).len(), count, "{support:?}");
        };
        check(Some(9), true, 0);
        check(Some(6), true, 1);
        check(Some(4), true, 2);
        check(Some(1), true, 3);
        check(None, false, 2);
        assert_eq!(notes(&Support::default()).len(), 4);
    }
}

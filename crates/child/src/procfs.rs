//! What `/proc` says about the processes of a child.

use crate::sys;
use std::fs;

/// One line of `/proc/<pid>/stat`, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    /// Grows with every bit of work the process does: page faults and clock ticks.
    pub(crate) work: u64,
    /// Start in clock ticks after boot; with the pid it names a process for good.
    pub(crate) started: u64,
    /// Pages of memory in use, those shared with others included.
    pub(crate) pages: u64,
}

impl Stat {
    pub(crate) fn read(pid: i32) -> Option<Stat> {
        Stat::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(pid: i32, line: &str) -> Option<Stat> {
        // The second field is the program's name in brackets, and may hold spaces and brackets itself.
        let fields: Vec<&str> = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
        // Fields are numbered from 1 in proc(5), and the first one after the name is the third.
        let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<u64>().ok());
        // A zombie has no memory and cannot be killed: it is no longer of interest.
        if matches!(fields.first(), Some(&"Z" | &"X")) {
            return None;
        }
        Some(Stat {
            pid,
            parent: field(4)? as i32,
            session: field(6)? as i32,
            work: field(10)? + field(14)? + field(15)?,
            started: field(22)?,
            pages: field(24)?,
        })
    }

    /// Whether two readings are of one process and not of two that had the same id in turn.
    pub(crate) fn is_same(&self, other: &Stat) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }
}

/// All processes of the machine that can be seen from here.
pub(crate) fn all() -> Vec<Stat> {
    pids().filter_map(Stat::read).collect()
}

/// The processes of a session. Far cheaper than [`all`], as only members are read.
pub(crate) fn in_session(session: i32) -> Vec<Stat> {
    let is_member = |pid: &i32| sys::session(*pid) == Some(session);
    pids().filter(is_member).filter_map(Stat::read).collect()
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Memory of a process in bytes, each shared page counted in parts, swapped pages included; `None` when the
/// kernel does not say. Walks all of the process's memory map, so it is for rare use.
pub(crate) fn proportional_memory(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    Some((kib("Pss:")? + kib("SwapPss:").unwrap_or(0)) << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let rest = "S 7 8 9 0 -1 4 100 0 0 0 20 3 0 0 20 0 1 0 555 1000 42 18446744073709551615 1";
        let expected = Stat { pid: 5, parent: 7, session: 9, work: 123, started: 555, pages: 42 };
        for name in ["sh", "a b", ") R 1 1", "((("] {
            assert_eq!(Stat::parse(5, &format!("5 ({name}) {rest}")), Some(expected), "{name}");
        }
        for broken in
            ["", "5", "5 (sh)", "5 (sh) S 7", "5 (sh) Z 7 8 9 0 -1 4 100 0 0 0 20 3 0 0 20 0 1 0 555 1000 42"]
        {
            assert_eq!(Stat::parse(5, broken), None, "{broken}");
        }
    }

    #[test]
    fn this_process_has_memory() {
        let pid = std::process::id() as i32;
        let own = Stat::read(pid).unwrap();
        assert!(own.pages > 0 && own.is_same(&Stat::read(pid).unwrap()));
        assert!(all().iter().any(|stat| stat.is_same(&own)));
    }
}

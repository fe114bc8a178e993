//! What this machine's kernel offers for confining a child.

/// What this machine's kernel offers for confining a child; shown by `doctor` and by health.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Support {
    /// Version of Landlock's interface; `None` when the kernel has none.
    pub landlock_abi: Option<u32>,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// Whether every capability can be dropped, or there are none to drop.
    pub capabilities: bool,
    /// One sentence for each thing that a sandbox goes without on this machine.
    pub notes: Vec<String>,
}

/// Asks the kernel what it offers. Starts nothing and changes nothing.
pub fn probe() -> Support {
    Support::default()
}

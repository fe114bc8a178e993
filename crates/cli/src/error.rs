//! How a command fails: a kind that decides the exit code, a cause that speaks for itself, and perhaps hints.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Fine,
    /// The operation failed.
    Failed,
    /// Wrong usage, or no manifest here.
    Usage,
    /// The user stopped it.
    Stopped,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Fine => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Stopped => 130,
        })
    }
}

/// What a command ends with. `Ok(Exit::Failed)` is for one that has told the bad news as its data.
pub type Outcome = Result<Exit, Failure>;

/// Why a command failed, as the user is told.
#[derive(Debug)]
pub struct Failure {
    /// Decides the exit code.
    pub exit: Exit,
    /// What went wrong; its sources are told below it.
    pub cause: Box<dyn Error + Send + Sync>,
    /// What to do, a sentence each.
    pub hints: Vec<String>,
}

impl Failure {
    /// The operation failed: exit code 1.
    pub fn failed(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure { exit: Exit::Failed, cause: cause.into(), hints: Vec::new() }
    }

    /// The command cannot be carried out as it was given: exit code 2.
    pub fn usage(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure { exit: Exit::Usage, ..Failure::failed(cause) }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }
}

/// A failure for the terminal: the cause, its sources a line each, then the hints.
impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.cause)?;
        let mut told = self.cause.to_string();
        let mut source = self.cause.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Some libraries repeat their source's words in their own.
            if !told.contains(&text) {
                write!(out, "\n  {text}")?;
            }
            told = text;
            source = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read beeuni.yaml")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn sources_are_told_once() {
        let failure = Failure::failed(Outer(std::io::Error::other("the disk is gone")));
        assert_eq!(failure.to_string(), "cannot read beeuni.yaml\n  the disk is gone");
        assert_eq!(failure.exit, Exit::Failed);
        assert_eq!(Failure::usage("no such agent").exit, Exit::Usage);
    }
}

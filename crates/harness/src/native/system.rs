//! What an agent is told before the conversation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use beeuni_manifest::Agent;

use crate::contract::Setup;

/// The prompt of an agent that has none of its own.
pub(super) const BUILT_IN: &str = include_str!("prompt.md");

/// Joined to the last request of a turn that reached `steps`.
pub(super) const LAST_STEP: &str = "This turn has reached its limit of steps, so you have no tools now. Answer in \
words: say what was done, what remains, and what should come next.";

/// The agent's own prompt, then what it cannot know by itself. Skills are listed by the `skill` tool.
pub(super) fn prompt(agent: &Agent, setup: &Setup, now: SystemTime) -> String {
    let own = match agent.prompt.trim() {
        "" => BUILT_IN.trim(),
        own => own,
    };
    format!(
        "{own}\n\n<environment>\nWorking directory: {}\nTemporary folder: {}\nPlatform: {}\nDate: {}\n</environment>",
        setup.directory.display(),
        setup.temp.display(),
        std::env::consts::OS,
        date(now),
    )
}

/// `2026-12-01`, in UTC. The days-to-civil algorithm counts years from March, so that a leap day comes last.
fn date(now: SystemTime) -> String {
    let days = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs() / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let check = |seconds: u64, expected: &str| {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), expected)
        };
        check(0, "1970-01-01");
        check(951_782_400, "2000-02-29");
        check(1_709_251_199, "2024-02-29");
        check(1_709_251_200, "2024-03-01");
        check(1_796_083_200, "2026-12-01");
        check(4_102_444_799, "2099-12-31");
    }
}

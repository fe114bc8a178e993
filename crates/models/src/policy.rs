//! How patient we are with a provider.

use std::time::Duration;

/// How often and after what pause a request is sent again, and how long a silent provider is waited for.
///
/// The pauses double and hold no chance, so that a test can say what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The most requests in all; at least one is sent.
    pub attempts: u32,
    /// The pause before the second request; it doubles from there.
    pub base: Duration,
    /// The longest pause, also when the provider asks for a longer one.
    pub longest: Duration,
    /// How long nothing may come, before the answer and within it.
    pub idle: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            attempts: 5,
            base: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            idle: Duration::from_secs(300),
        }
    }
}

impl Policy {
    /// The pause after attempt `attempt` (from 1), given what the provider asked for.
    pub(crate) fn pause(&self, attempt: u32, asked: Option<Duration>) -> Duration {
        let doubled =
            self.base.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
        doubled.max(asked.unwrap_or_default()).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end() {
        let policy = Policy { longest: Duration::from_secs(10), ..Policy::default() };
        let check = |attempt, asked: Option<u64>, expected| {
            let pause = policy.pause(attempt, asked.map(Duration::from_secs));
            assert_eq!(pause, Duration::from_secs(expected), "{attempt} {asked:?}");
        };
        check(1, None, 1);
        check(2, None, 2);
        check(4, None, 8);
        check(5, None, 10);
        check(99, None, 10);
        check(1, Some(7), 7);
        check(3, Some(1), 4);
        check(1, Some(3600), 10);
    }
}

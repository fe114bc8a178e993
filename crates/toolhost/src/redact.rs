//! Keeps secret values out of everything that is written down.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

/// What stands where a secret stood.
pub const REDACTED: &str = "[secret]";

/// Shorter values are too common in ordinary text to be replaced.
const SHORTEST: usize = 6;

/// Replaces known secret values in text.
#[derive(Debug, Default)]
pub struct Redactor {
    values: RwLock<Vec<String>>,
}

impl Redactor {
    /// Takes the place of all values that were known before. Values under 6 bytes are not replaced.
    ///
    /// Also known from now on: each line of a value, and the value as it looks inside JSON.
    pub fn set(&self, secrets: impl IntoIterator<Item = String>) {
        let mut values = Vec::new();
        for secret in secrets {
            let escaped = serde_json::Value::from(secret.as_str()).to_string();
            values.extend(secret.lines().map(|line| line.trim().to_owned()));
            values.push(escaped[1..escaped.len() - 1].to_owned());
            values.push(secret);
        }
        values.retain(|value| value.len() >= SHORTEST);
        values.sort();
        values.dedup();
        *self.values.write().unwrap_or_else(PoisonError::into_inner) = values;
    }

    /// The text without the known values.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<(usize, usize)> = values
            .iter()
            .flat_map(|value| text.match_indices(value.as_str()).map(|(at, value)| (at, at + value.len())))
            .collect();
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        // One pass over the original: what was put in is not searched again, and what overlaps goes as one.
        found.sort_unstable();
        let (mut clean, mut done) = (String::with_capacity(text.len()), 0);
        for (start, end) in found {
            if start >= done {
                clean.push_str(&text[done..start]);
                clean.push_str(REDACTED);
            }
            done = done.max(end);
        }
        clean.push_str(&text[done..]);
        Cow::Owned(clean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_go() {
        let check = |secrets: &[&str], text: &str, expected: &str| {
            let redactor = Redactor::default();
            redactor.set(secrets.iter().map(|secret| (*secret).to_owned()));
            assert_eq!(redactor.clean(text), expected);
        };
        check(&[], "text", "text");
        check(&["s3cr3t-XYZ"], "a s3cr3t-XYZ b s3cr3t-XYZ", "a [secret] b [secret]");
        check(&["short"], "short", "short");
        check(&["secret", "secret-longer"], "secret-longer secret", "[secret] [secret]");
        check(&["line one\nline two\n"], "got line two", "got [secret]");
        check(&["quo\"ted\\"], r#"{"k":"quo\"ted\\"}"#, r#"{"k":"[secret]"}"#);
    }
}

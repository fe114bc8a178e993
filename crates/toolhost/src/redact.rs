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
        let found = find(&self.values.read().unwrap_or_else(PoisonError::into_inner), text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        // One pass over the original: what was put in is not searched again, and what overlaps goes as one.
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

    /// For a text that still grows: how many bytes of its beginning can be cleaned and shown now, because no value that
    /// is complete or has only begun reaches over that border.
    pub fn settled(&self, text: &str) -> usize {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        let longest = values.iter().map(String::len).max().unwrap_or(0);
        let mut start = text.len().saturating_sub(longest);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        let begun = text[start..].char_indices().map(|(at, _)| start + at).find(|&at| {
            values.iter().any(|value| value.len() > text.len() - at && value.starts_with(&text[at..]))
        });
        let mut border = begun.unwrap_or(text.len());
        // From the last to the first, so that a border that moves back is seen by what it now cuts.
        for (start, end) in find(&values, text).into_iter().rev() {
            if start < border && border < end {
                border = start;
            }
        }
        border
    }
}

/// Where the values stand in a text, by their beginning.
fn find(values: &[String], text: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = values
        .iter()
        .flat_map(|value| text.match_indices(value.as_str()).map(|(at, value)| (at, at + value.len())))
        .collect();
    found.sort_unstable();
    found
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
        check(&["abcdefg", "efghijk"], "abcdefghijk", "[secret]");
        check(&["quo\"ted\\"], r#"{"k":"quo\"ted\\"}"#, r#"{"k":"[secret]"}"#);
    }

    #[test]
    fn only_what_is_settled_can_be_shown() {
        let redactor = Redactor::default();
        redactor.set(["secret", "secret-longer", "abcdef", "defxyz", "ß-sécret"].map(str::to_owned));
        for (text, settled) in [
            ("", 0),
            ("plain", 5),
            ("a secr", 2),
            ("a secret", 2),
            ("a secret-longer", 15),
            ("abcdef", 0),
            ("x ß-s", 2),
            ("x ß", 2),
        ] {
            assert_eq!(redactor.settled(text), settled, "{text:?}");
        }
    }
}

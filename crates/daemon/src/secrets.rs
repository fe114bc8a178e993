//! Keeps known secret values out of events. What a model or a tool reads is never changed: only the record is.

use beeuni_protocol::event::EventBody;

/// What stands in place of a secret.
pub const HIDDEN: &str = "[secret]";

/// Shorter values are no secrets that anyone could tell from ordinary text.
pub const SHORTEST: usize = 6;

/// Fields whose values are words of the protocol: a secret that happens to be such a word must not break the event.
const WORDS: [&str; 3] = ["type", "status", "reason"];

/// The values to hide, the longest first.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    values: Vec<String>,
}

impl Secrets {
    /// Hides these values, and the same values as they look inside JSON text.
    pub fn new(values: impl IntoIterator<Item = String>) -> Secrets {
        let mut all = Vec::new();
        for value in values {
            if value.len() < SHORTEST {
                continue;
            }
            if let Ok(quoted) = serde_json::to_string(&value) {
                let inner = &quoted[1..quoted.len() - 1];
                if inner != value {
                    all.push(inner.to_owned());
                }
            }
            all.push(value);
        }
        // A value that contains another must go first, or its rest would stay.
        all.sort_by_key(|value| std::cmp::Reverse(value.len()));
        all.dedup();
        Secrets { values: all }
    }

    /// The text without any secret.
    pub fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in &self.values {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), HIDDEN);
            }
        }
        text
    }

    /// How many bytes at the text's end may be the beginning of a secret.
    fn open_end(&self, text: &str) -> usize {
        let longest = self.values.first().map_or(0, |value| value.len() - 1);
        let mut start = text.len().saturating_sub(longest);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        text[start..]
            .char_indices()
            .map(|(at, _)| &text[start + at..])
            .find(|end| self.values.iter().any(|value| value.starts_with(end)))
            .map_or(0, str::len)
    }

    /// An event without any secret.
    pub fn hide_in(&self, body: EventBody) -> EventBody {
        if self.values.is_empty() {
            return body;
        }
        // Going through JSON reaches every text of every kind of event, also of those that come later.
        let Ok(mut json) = serde_json::to_value(&body) else { return body };
        self.hide_in_json(&mut json);
        serde_json::from_value(json).unwrap_or(body)
    }

    fn hide_in_json(&self, json: &mut serde_json::Value) {
        match json {
            serde_json::Value::String(text) => *text = self.hide(text),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in_json(item)),
            serde_json::Value::Object(fields) => {
                let texts = fields.iter_mut().filter(|(name, _)| !WORDS.contains(&name.as_str()));
                texts.for_each(|(_, value)| self.hide_in_json(value));
            }
            _ => {}
        }
    }
}

/// Hides secrets in a text that comes in pieces.
#[derive(Debug, Default)]
pub struct StreamFilter {
    held: String,
}

impl StreamFilter {
    /// Takes a piece and gives what can be shown now.
    pub fn push(&mut self, secrets: &Secrets, piece: &str) -> String {
        self.held.push_str(piece);
        let mut text = secrets.hide(&std::mem::take(&mut self.held));
        let shown = text.len() - secrets.open_end(&text);
        self.held = text.split_off(shown);
        text
    }

    /// What was still held back.
    pub fn finish(self, secrets: &Secrets) -> String {
        secrets.hide(&self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_plain_and_quoted() {
        let secrets = Secrets::new(["abcdef".into(), "abcdefgh".into(), "li\"ne\n2".into(), "short".into()]);
        for (text, expected) in [
            ("x abcdefgh y abcdef", "x [secret] y [secret]"),
            ("short stays", "short stays"),
            ("li\"ne\n2", "[secret]"),
            (r#"{"a":"li\"ne\n2"}"#, r#"{"a":"[secret]"}"#),
            ("", ""),
        ] {
            assert_eq!(secrets.hide(text), expected);
        }
    }

    #[test]
    fn events_are_hidden_but_stay_events() {
        let secrets = Secrets::new(["aborted".into()]);
        let body = EventBody::TurnFinished {
            turn: 1,
            reason: beeuni_protocol::event::FinishReason::Aborted,
            error: Some("it was aborted".into()),
        };
        let EventBody::TurnFinished { error, .. } = secrets.hide_in(body) else { panic!("another event") };
        assert_eq!(error.as_deref(), Some("it was [secret]"));
    }

    #[test]
    fn pieces_give_what_the_whole_gives() {
        let secrets = Secrets::new(["sécret-ß".into(), "ttttttu".into()]);
        let whole = "a sécret-ß b tttttttu ttttt sécret-";
        for size in 1..8 {
            let mut filter = StreamFilter::default();
            let chars: Vec<char> = whole.chars().collect();
            let mut shown: String = chars
                .chunks(size)
                .map(|piece| filter.push(&secrets, &piece.iter().collect::<String>()))
                .collect();
            shown.push_str(&filter.finish(&secrets));
            assert_eq!(shown, secrets.hide(whole), "pieces of {size}");
        }
    }
}

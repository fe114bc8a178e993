//! Keeps known secret values out of events. What a model or a tool reads is never changed: only the record is.

use beeuni_protocol::event::EventBody;
use beeuni_toolhost::Redactor;
use serde_json::Value;

/// Fields whose values are words of the protocol: a secret that happens to be such a word must not break the event.
const WORDS: [&str; 3] = ["type", "status", "reason"];

/// An event without any secret.
pub(crate) fn hide(redactor: &Redactor, body: EventBody) -> EventBody {
    // Going through JSON reaches every text of every kind of event, also of those that come later.
    let Ok(mut json) = serde_json::to_value(&body) else { return body };
    hide_in(redactor, &mut json);
    serde_json::from_value(json).unwrap_or(body)
}

fn hide_in(redactor: &Redactor, json: &mut Value) {
    match json {
        Value::String(text) => {
            let clean = redactor.clean(text);
            if clean != *text {
                *text = clean.into_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_in(redactor, item)),
        Value::Object(fields) => {
            let texts = fields.iter_mut().filter(|(name, _)| !WORDS.contains(&name.as_str()));
            texts.for_each(|(_, value)| hide_in(redactor, value));
        }
        _ => {}
    }
}

/// Hides secrets in a text that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct StreamFilter {
    held: String,
}

impl StreamFilter {
    /// Takes a piece and gives what can be shown now.
    pub(crate) fn push(&mut self, redactor: &Redactor, piece: &str) -> String {
        self.held.push_str(piece);
        let rest = self.held.split_off(redactor.settled(&self.held));
        let shown = std::mem::replace(&mut self.held, rest);
        redactor.clean(&shown).into_owned()
    }

    /// What was still held back.
    pub(crate) fn finish(self, redactor: &Redactor) -> String {
        redactor.clean(&self.held).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeuni_protocol::event::FinishReason;

    fn redactor(values: &[&str]) -> Redactor {
        let redactor = Redactor::default();
        redactor.set(values.iter().map(|value| (*value).to_owned()));
        redactor
    }

    #[test]
    fn events_are_hidden_but_stay_events() {
        let body = EventBody::TurnFinished {
            turn: 1,
            reason: FinishReason::Aborted,
            error: Some("it was aborted".into()),
        };
        let EventBody::TurnFinished { error, .. } = hide(&redactor(&["aborted"]), body) else {
            panic!("another event")
        };
        assert_eq!(error.as_deref(), Some("it was [secret]"));
    }

    #[test]
    fn pieces_give_what_the_whole_gives() {
        let redactor = redactor(&["sécret-ß", "ttttttu", "secret", "secret-longer", "abcdef", "defxyz"]);
        let whole = "a sécret-ß b tttttttu ttttt secret-longer secret-long abcdefxyz abcdef sécret-";
        let chars: Vec<char> = whole.chars().collect();
        for size in 1..12 {
            let mut filter = StreamFilter::default();
            let pieces = chars.chunks(size).map(|piece| piece.iter().collect::<String>());
            let mut shown: String = pieces.map(|piece| filter.push(&redactor, &piece)).collect();
            shown.push_str(&filter.finish(&redactor));
            assert_eq!(shown, redactor.clean(whole), "pieces of {size}");
        }
    }
}

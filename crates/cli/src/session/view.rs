//! Shows a session's events: the answer's text on standard output, everything else on standard error.

use std::collections::HashMap;

use beeuni_protocol::event::{Event, EventBody, FinishReason, ToolStatus};

use crate::ui::Ui;

/// How much of a call's arguments or of an error is shown, in characters.
const SHOWN: usize = 160;

/// Shows one session's events for people.
#[derive(Debug)]
pub(crate) struct View {
    root: String,
    /// The agents of child sessions, to say who speaks.
    children: HashMap<String, String>,
    /// Text was written and its line is not ended.
    mid_line: bool,
}

impl View {
    /// For the session `root`; other sessions in its journal are subagents'.
    pub(crate) fn new(root: &str) -> View {
        View { root: root.to_owned(), children: HashMap::new(), mid_line: false }
    }

    /// Shows one event.
    pub(crate) fn show(&mut self, ui: &mut Ui, event: &Event) {
        let child = (event.session != self.root).then(|| event.session.clone());
        match &event.body {
            EventBody::TextDelta { text } if child.is_none() => {
                ui.raw(text.as_bytes());
                self.mid_line = !text.ends_with('\n');
            }
            EventBody::ToolStarted { name, arguments, .. } => {
                self.note(ui, child.as_deref(), &format!("→ {name} {}", clip(arguments)));
            }
            EventBody::ToolFinished { name, status, output, duration_ms, .. } => {
                let (mark, words) = match status {
                    ToolStatus::Ok => ("✓", String::new()),
                    ToolStatus::Error => ("✗", format!(": {}", clip(output))),
                    ToolStatus::Aborted => ("■", " stopped".to_owned()),
                    ToolStatus::Denied => ("✗", format!(" denied: {}", clip(output))),
                    ToolStatus::Unavailable => ("✗", format!(": {}", clip(output))),
                };
                self.note(ui, child.as_deref(), &format!("{mark} {name}{words} ({duration_ms} ms)"));
            }
            EventBody::ChildSession { child: id, agent, .. } => {
                self.children.insert(id.clone(), agent.clone());
                self.note(ui, child.as_deref(), &format!("→ subagent {agent} begins"));
            }
            EventBody::Retrying { attempt, message, delay_ms } => {
                let words = format!("the model did not answer ({message}); try {attempt} in {delay_ms} ms");
                self.note(ui, child.as_deref(), &words);
            }
            EventBody::TurnFinished { reason, error, .. } if child.is_none() => {
                self.end_line(ui);
                match reason {
                    FinishReason::Stop => {}
                    FinishReason::Error => {
                        let error = error.as_deref().unwrap_or("the turn failed");
                        ui.talk(format_args!("error: {error}"));
                    }
                    FinishReason::Aborted => ui.talk("stopped"),
                    FinishReason::Interrupted => ui.talk("interrupted"),
                }
            }
            _ => {}
        }
    }

    /// A line of its own on standard error, after the text so far.
    fn note(&mut self, ui: &mut Ui, child: Option<&str>, words: &str) {
        self.end_line(ui);
        let agent = child.and_then(|id| self.children.get(id));
        let who = agent.map(|agent| format!("[{agent}] ")).unwrap_or_default();
        ui.talk(format_args!("{}", ui.dim_talk(&format!("{who}{words}"))));
    }

    /// Ends the answer's line, so that what follows begins on its own.
    pub(crate) fn end_line(&mut self, ui: &mut Ui) {
        if std::mem::take(&mut self.mid_line) {
            ui.raw(b"\n");
        }
    }
}

/// One line, not too long; control characters cannot move the cursor.
fn clip(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_hostile_texts_stay_one_line() {
        assert_eq!(clip("a\n\u{1b}[2Jb"), "a  [2Jb");
        assert_eq!(clip(&"é".repeat(161)), format!("{}…", "é".repeat(160)));
        assert_eq!(clip(&"é".repeat(160)), "é".repeat(160));
    }
}

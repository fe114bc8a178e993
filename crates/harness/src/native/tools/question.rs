//! `question`: the agent asks its user.

use beeuni_protocol::event::{Question, Reply};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::native::ask;
use crate::native::calls::Answer;
use crate::native::turn::Turn;

pub(super) const DESCRIPTION: &str = "Asks the user one or more questions and waits for the answers. Give options \
where there are some; the user may also answer in own words.";

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "questions": {
      "type": "array",
      "description": "What to ask.",
      "items": {
        "type": "object",
        "properties": {
          "question": {"type": "string", "description": "The whole question."},
          "header": {"type": "string", "description": "A title of a few words."},
          "options": {
            "type": "array",
            "description": "What may be chosen. Left out: free text.",
            "items": {
              "type": "object",
              "properties": {
                "label": {"type": "string", "description": "What the user picks, in one to five words."},
                "description": {"type": "string", "description": "What it means."}
              },
              "required": ["label"]
            }
          },
          "multiple": {"type": "boolean", "description": "More than one may be chosen."}
        },
        "required": ["question"]
      }
    }
  },
  "required": ["questions"]
}"#;

/// The most questions at once.
const MAX_QUESTIONS: usize = 20;

#[derive(Deserialize)]
pub(in crate::native) struct Ask {
    questions: Vec<Question>,
}

impl Ask {
    pub(super) async fn run(self, turn: &Turn, call_id: &str, cancel: &CancellationToken) -> Answer {
        let questions = self.questions;
        if questions.is_empty() || questions.len() > MAX_QUESTIONS {
            return Answer::error(format!("ask 1 to {MAX_QUESTIONS} questions, not {}", questions.len()));
        }
        if questions.iter().any(|question| question.question.trim().is_empty()) {
            return Answer::error("a question is empty");
        }
        if turn.shared.options.unattended {
            return Answer::denied(
                "nobody watches this session, so nobody can answer; decide yourself or say what is open",
            );
        }
        match ask::questions(turn, call_id, questions.clone(), cancel).await {
            None => Answer::stopped(turn),
            Some(Reply::Answers { answers }) => Answer::ok(words(&questions, &answers)),
            Some(Reply::Reject { message }) if !message.trim().is_empty() => {
                Answer::denied(format!("the user did not answer and said: {message}"))
            }
            Some(_) => Answer::denied("the user did not answer"),
        }
    }
}

fn words(questions: &[Question], answers: &[Vec<String>]) -> String {
    let each = questions.iter().zip(answers).map(|(question, given)| {
        let given = if given.is_empty() { "(no answer)".to_owned() } else { given.join(", ") };
        format!("{}\n→ {given}", question.question)
    });
    each.collect::<Vec<_>>().join("\n\n")
}

//! `todowrite`: the agent's own list of what is to do. The list lives in the conversation, so it needs no store.

use serde::Deserialize;

pub(super) const DESCRIPTION: &str = "Keeps your list of what is to do in a task of several steps. Each call gives \
the whole list anew. Have one item in_progress, and mark an item as completed as soon as it is.";

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "todos": {
      "type": "array",
      "description": "The whole list.",
      "items": {
        "type": "object",
        "properties": {
          "content": {"type": "string", "description": "What is to do."},
          "status": {"type": "string", "enum": ["pending", "in_progress", "completed", "cancelled"]},
          "priority": {"type": "string", "enum": ["high", "medium", "low"]}
        },
        "required": ["content", "status"]
      }
    }
  },
  "required": ["todos"]
}"#;

/// The longest list.
const MAX_TODOS: usize = 200;

#[derive(Deserialize)]
pub(in crate::native) struct Todos {
    todos: Vec<Todo>,
}

#[derive(Deserialize)]
struct Todo {
    content: String,
    status: Status,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

impl Todos {
    pub(super) fn run(&self) -> Result<String, String> {
        if self.todos.len() > MAX_TODOS {
            return Err(format!("the list has {} items, and at most {MAX_TODOS} are kept", self.todos.len()));
        }
        let open = self
            .todos
            .iter()
            .filter(|todo| matches!(todo.status, Status::Pending | Status::InProgress))
            .count();
        let mut text = format!("{open} of {} to do", self.todos.len());
        for Todo { content, status } in &self.todos {
            let mark = match status {
                Status::Pending => "[ ]",
                Status::InProgress => "[>]",
                Status::Completed => "[x]",
                Status::Cancelled => "[-]",
            };
            text.push_str(&format!("\n{mark} {content}"));
        }
        Ok(text)
    }
}

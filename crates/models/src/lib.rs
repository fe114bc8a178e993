//! Talks to language models. Knows wires (OpenAI-compatible chat, Anthropic messages), retries and the choice of a
//! provider; knows neither tools nor harnesses.

mod model;

pub use model::{
    Call, Delta, FinishReason, Message, Model, ModelError, ModelStream, Request, ToolSchema, Usage,
};

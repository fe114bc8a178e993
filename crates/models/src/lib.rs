//! Talks to language models. Knows wires (OpenAI-compatible chat, Anthropic messages), retries and the choice of a
//! provider; knows neither tools nor harnesses.
//!
//! [`choose`] says which model and where, [`connect`] makes it a [`Model`].

mod address;
mod anthropic;
mod choose;
mod connection;
mod fault;
mod lint;
mod model;
mod openai;
mod policy;
mod sse;
mod wire;

pub use address::ConnectError;
pub use choose::{
    ANTHROPIC_DEFAULT, Api, Asked, Choice, ChoiceError, Key, Limits, OPENAI_DEFAULT, Provider, choose,
};
pub use connection::{connect, connect_with};
pub use lint::{SchemaWarning, schema_findings};
pub use model::{
    Call, Delta, FinishReason, Message, Model, ModelError, ModelStream, Request, ToolSchema, Usage,
};
pub use policy::Policy;

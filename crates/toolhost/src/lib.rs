//! Loads and calls tool modules in Bun: one sandboxed process per module.
//!
//! - [`ToolHost`]: load (and reload) modules, call them, see how they are.
//! - [`Bounder`]: cuts a long output for a model and saves the whole (M5).
//! - [`Redactor`]: keeps secret values out of the log.

mod bound;
mod call;
mod config;
mod guard;
mod host;
mod load;
mod log;
mod outbox;
mod process;
mod redact;
mod start;
mod tool;

pub use beeuni_child::Spawner;
pub use bound::{Bounder, MAX_BYTES, MAX_LINES};
pub use call::{Call, CallFailure};
pub use config::{BunProgram, Config, ModuleSpec, Source, ToolLimits};
pub use host::{HostError, Status, ToolHost, ToolState, ToolStatus};
pub use load::{FailedTool, LoadReport, LoadedTool, NOT_LOADED_RECORD};
pub use log::{Level, Log, TracingLog};
pub use redact::{REDACTED, Redactor};

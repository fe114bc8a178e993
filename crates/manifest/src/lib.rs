//! Reads, judges and edits `beeuni.yaml`; decides which tools a session gets and what an agent may use.
//!
//! Never touches the disk, the network or a clock: files come through [`Files`], so a folder, a git tree and a map in a
//! test give the same verdict.

mod access;
mod files;
mod manifest;
mod permission;

pub use access::{ToolAccess, Verdict};
pub use files::{FileKind, Files, MemoryFiles};
pub use manifest::{
    Agent, AgentMode, Connector, Entry, EnvNames, Harness, Limits, Manifest, ModelLimits, ModelsConfig,
    Place, Project, ProviderApi, ProviderConfig, Selection, ToolEntry, ToolLimits, ToolSource, ToolsList,
};
pub use permission::{Action, Permission};

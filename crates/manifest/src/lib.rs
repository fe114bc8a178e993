//! Reads, judges and edits `beeuni.yaml`; decides which tools a session gets and what an agent may use.
//!
//! Never touches the disk, the network or a clock: files come through [`Files`], so a folder, a git tree and a map in a
//! test give the same verdict.

mod access;
mod edit;
mod files;
mod finding;
mod manifest;
mod names;
mod paths;
mod permission;
mod read;
mod render;
mod session;
mod shell;
mod yaml;

pub use access::{ToolAccess, Verdict};
pub use edit::{EJECTED_FROM, EditError, Ejection, Original, eject};
pub use files::{FileKind, Files, MemoryFiles};
pub use finding::{Finding, Severity, Sources};
pub use manifest::{
    Agent, AgentMode, Connector, Entry, EnvNames, Harness, Limits, Manifest, ModelLimits, ModelsConfig,
    Place, Project, ProviderApi, ProviderConfig, Selection, ToolEntry, ToolLimits, ToolSource, ToolsList,
};
pub use names::{
    BEEUNI_TOOLS, BUILT_IN_AGENT, BUILT_IN_PROVIDERS, HARNESS_TOOLS, OPENCODE_TOOLS, TERMINAL_PREFIX,
    is_agent_name, is_beeuni_tool, is_env_name, is_harness_tool, is_tool_name,
};
pub use permission::{Action, GUARDS, MEMORY_VIEW, Permission, capability, matches};
pub use read::{Context, Judged, read, skill_description};
pub use render::render;
pub use session::{KIND_BEEUNI, KIND_OVERRIDDEN, KIND_PROJECT};
pub use shell::simple_commands;

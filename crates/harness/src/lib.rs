//! The agent loops. One contract ([`Harness`]) and the two doors it needs: hosted tools ([`Tools`]) and listeners
//! ([`Listener`]). The loops stand beside each other as folders and know nothing of how tools are hosted or stored.

mod contract;
pub mod native;

pub use contract::{
    AgentSetup, CallError, Harness, HarnessError, HostedTool, Listener, Prompt, Setup, Skill, ToolCall, Tools,
};

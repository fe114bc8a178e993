//! A manifest after it was read and judged: plain data, merged over all imported files, with the place of each entry.

use std::fmt;

use indexmap::IndexMap;

/// Where something stands. Line and column count from 1; a column counts characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Path relative to the root.
    pub file: String,
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// A value and where its key stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<T> {
    /// The value.
    pub value: T,
    /// Where it was declared.
    pub place: Place,
}

/// The merged manifest. What could not be understood was left out and has a finding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// `project.name`, `project.description`.
    pub project: Project,
    /// The agent of a session that names none. Empty when there is none, which has a finding.
    pub default_agent: String,
    /// `harness:`, where it is set.
    pub harness: Option<Harness>,
    /// `env:`.
    pub env: EnvNames,
    /// Every declared agent (or the built-in `beeuni`), enabled or not.
    pub agents: IndexMap<String, Entry<Agent>>,
    /// What `tools:` lists, over all files.
    pub tools: ToolsList,
    /// Declared connectors; not run yet.
    pub connectors: IndexMap<String, Entry<Connector>>,
    /// `models:`.
    pub models: ModelsConfig,
    /// `limits:`.
    pub limits: Limits,
    /// Every file that was read, the root first, in the order of merging.
    pub files: Vec<String>,
}

/// `project:`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// Its name.
    pub name: Option<String>,
    /// What it is.
    pub description: Option<String>,
}

/// The program that runs the agent loop (K3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Harness {
    /// OpenCode, a program of its own.
    Standard,
    /// Our loop, in the daemon.
    Experimental,
}

impl Harness {
    /// The word in beeuni.yaml and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Harness::Standard => "standard",
            Harness::Experimental => "experimental",
        }
    }
}

impl fmt::Display for Harness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// `env:`: names that a session needs or may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvNames {
    /// Must be set when a session starts.
    pub required: Vec<String>,
    /// May be set.
    pub optional: Vec<String>,
}

/// One agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Its `.md` file, relative to the root; none means the built-in prompt.
    pub file: Option<String>,
    /// `enabled: false` switches it off.
    pub enabled: bool,
    /// Its own harness, where set.
    pub harness: Option<Harness>,
    /// Which tools its model sees (A1).
    pub tools: ToolAccess,
    /// Which secrets its calls get.
    pub secrets: Selection,
    /// Which connectors it may use.
    pub connectors: Selection,
    /// Which skills it is offered.
    pub skills: Selection,
    /// What the model and its users read about it.
    pub description: Option<String>,
    /// `provider/model`.
    pub model: Option<String>,
    /// Whether it can lead a session, be a subagent, or both.
    pub mode: AgentMode,
    /// Passed to the model.
    pub temperature: Option<f64>,
    /// The most model requests of one turn.
    pub steps: Option<u32>,
    /// Allow, ask and deny rules.
    pub permission: Permission,
    /// Not shown in lists of agents.
    pub hidden: bool,
    /// The body of its `.md` file; empty means the built-in prompt.
    pub prompt: String,
}

pub use crate::access::ToolAccess;
pub use crate::permission::Permission;

/// An agent's `mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentMode {
    /// Leads sessions only.
    Primary,
    /// Is started with `task` only.
    Subagent,
    /// Both.
    #[default]
    All,
}

/// `all`, `none` or a list of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Every one.
    All,
    /// None (the default).
    #[default]
    None,
    /// Only these.
    Only(Vec<String>),
}

impl Selection {
    /// Whether `name` is among them.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Selection::All => true,
            Selection::None => false,
            Selection::Only(names) => names.iter().any(|entry| entry == name),
        }
    }
}

/// What `tools:` says over all files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolsList {
    /// A `tools:` key stands in some file, even an empty one (L3).
    pub has_key: bool,
    /// The entries, root first, then imports as listed. With no key: empty; see [`Manifest::session_tools`].
    pub entries: IndexMap<String, Entry<ToolSource>>,
}

/// Where a tool's code comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolSource {
    /// `beeuni:<name>`: the code in the Beeuni program (L7).
    Beeuni,
    /// A module in the project, relative to the root.
    Module(String),
}

/// One tool of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolEntry {
    /// Its name.
    pub name: String,
    /// `beeuni`, `beeuni (overridden)` or `project` (S2).
    pub kind: &'static str,
    /// Where its code comes from.
    pub source: ToolSource,
    /// Where it is declared; none when there is no `tools:` key.
    pub place: Option<Place>,
}

/// `connectors.<name>`: read and kept, not run yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connector {}

/// `models:`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelsConfig {
    /// `provider/model` for turns.
    pub default: Option<String>,
    /// `provider/model` for small jobs.
    pub small: Option<String>,
    /// Providers declared here.
    pub providers: IndexMap<String, ProviderConfig>,
}

/// One provider under `models:`.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderConfig {
    /// Which wire it speaks; left out for a built-in provider: that provider's own.
    pub api: Option<ProviderApi>,
    /// Its address.
    pub base_url: Option<String>,
    /// The environment variable with its key.
    pub key_env: Option<String>,
    /// What is known of its models.
    pub models: IndexMap<String, ModelLimits>,
}

/// A wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderApi {
    /// OpenAI-compatible chat completions.
    OpenAi,
    /// Anthropic messages.
    Anthropic,
}

/// A model's limits, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelLimits {
    /// Its window.
    pub context: Option<u64>,
    /// The most it writes.
    pub output: Option<u64>,
}

/// `limits:`: for every tool, and for single ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// For every tool.
    pub all: ToolLimits,
    /// `limits.tools.<name>`.
    pub tools: IndexMap<String, ToolLimits>,
}

impl Limits {
    /// The limits of one tool: its own where set, else those for all.
    pub fn of(&self, tool: &str) -> ToolLimits {
        let Some(own) = self.tools.get(tool) else { return self.all.clone() };
        ToolLimits {
            memory: own.memory.or(self.all.memory),
            processes: own.processes.or(self.all.processes),
            files: own.files.or(self.all.files),
            call_time: own.call_time.or(self.all.call_time),
            idle: own.idle.or(self.all.idle),
            network: own.network.or(self.all.network),
            read: if own.read.is_empty() { self.all.read.clone() } else { own.read.clone() },
            write: if own.write.is_empty() { self.all.write.clone() } else { own.write.clone() },
        }
    }
}

/// Limits of a tool's process. `None` means the tool host's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolLimits {
    /// Bytes of memory (`512MiB` in the file).
    pub memory: Option<u64>,
    /// Processes at once.
    pub processes: Option<u64>,
    /// Open files.
    pub files: Option<u64>,
    /// Seconds that one call may take; no limit by default.
    pub call_time: Option<u64>,
    /// Seconds without a call until the process ends.
    pub idle: Option<u64>,
    /// `false` cuts the network off.
    pub network: Option<bool>,
    /// Further absolute paths to read (`limits.paths.read`).
    pub read: Vec<String>,
    /// Further absolute paths to read and write (`limits.paths.write`).
    pub write: Vec<String>,
}

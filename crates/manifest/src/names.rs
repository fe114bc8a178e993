//! Which names exist and which may be chosen (K1, V5).

/// The five Beeuni tools, in the order in which they are always listed.
pub const BEEUNI_TOOLS: [&str; 5] = {
    let [web_search, image_search, scrape_webpage, memory, show] = &beeuni_builtins::ALL;
    [web_search.name, image_search.name, scrape_webpage.name, memory.name, show.name]
};

/// The harness tools' names, which no project tool may take. So may none that starts with [`TERMINAL_PREFIX`].
pub const HARNESS_TOOLS: [&str; 18] = [
    "bash",
    "read",
    "write",
    "edit",
    "apply_patch",
    "glob",
    "grep",
    "list",
    "task",
    "question",
    "todowrite",
    "webfetch",
    "websearch",
    "skill",
    "lsp",
    "invalid",
    "execute",
    "plan_exit",
];

/// The tools of the standard harness's terminal plugin start with this.
pub const TERMINAL_PREFIX: &str = "pty_";

/// The providers that need no declaration under `models:`.
pub const BUILT_IN_PROVIDERS: [&str; 4] = ["anthropic", "openai", "openrouter", "ollama"];

/// The folder whose tools the standard harness loads by itself (H1).
pub const OPENCODE_TOOLS: &str = "harnesses/opencode/tools";

/// The agent that a project without `agents:` has.
pub const BUILT_IN_AGENT: &str = "beeuni";

/// Whether a harness owns the name.
pub fn is_harness_tool(name: &str) -> bool {
    HARNESS_TOOLS.contains(&name) || name.starts_with(TERMINAL_PREFIX)
}

/// Whether it is one of the five.
pub fn is_beeuni_tool(name: &str) -> bool {
    BEEUNI_TOOLS.contains(&name)
}

/// `^[a-z][a-z0-9_]{0,63}$` (V5).
pub fn is_tool_name(name: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.len() <= 64 && name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(rest)
}

/// `^[a-z0-9][a-z0-9_-]{0,127}$`: agents, connectors and providers.
pub fn is_agent_name(name: &str) -> bool {
    let first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let rest = |byte: u8| first(byte) || byte == b'_' || byte == b'-';
    name.len() <= 128 && name.bytes().next().is_some_and(first) && name.bytes().all(rest)
}

/// `^[A-Z_][A-Z0-9_]{0,63}$`, none starting with `BEEUNI_`.
pub fn is_env_name(name: &str) -> bool {
    let first = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    let rest = |byte: u8| first(byte) || byte.is_ascii_digit();
    name.len() <= 64
        && name.bytes().next().is_some_and(first)
        && name.bytes().all(rest)
        && !name.starts_with("BEEUNI_")
}

/// The candidate that a mistyped word most likely stands for.
pub(crate) fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A long word is compared with nothing: the distance is quadratic, and nobody mistypes so much.
    if word.len() > 64 {
        return None;
    }
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word)
        .map(|candidate| (strsim::damerau_levenshtein(&lower, candidate), candidate))
        // A name of one or two letters is near to every other short one, so it is never guessed.
        .filter(|(distance, candidate)| candidate.len() > 2 && *distance <= candidate.len().div_ceil(4))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `` Did you mean `x`? `` with a space before it, or nothing.
pub(crate) fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    closest(word, candidates).map(|name| format!(" Did you mean `{name}`?")).unwrap_or_default()
}

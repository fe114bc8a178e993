//! Which model, at which address, with which key.
//!
//! The rule about keys: a key from the environment goes to its provider's own address or to one that the environment
//! gives, never to an address that a checkout's beeuni.yaml names. Whoever writes that file could collect keys.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

/// The model where only `ANTHROPIC_API_KEY` is given.
pub const ANTHROPIC_DEFAULT: &str = "anthropic/claude-sonnet-4-5";

/// The model where only `OPENAI_API_KEY` is given.
pub const OPENAI_DEFAULT: &str = "openai/gpt-5.1";

/// A wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// OpenAI-compatible chat completions.
    OpenAi,
    /// Anthropic messages.
    Anthropic,
}

/// A model's limits, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Its window.
    pub context: Option<u64>,
    /// The most that it writes.
    pub output: Option<u32>,
}

/// A provider as beeuni.yaml declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provider {
    /// Left out: a built-in provider's own, else [`Api::OpenAi`].
    pub api: Option<Api>,
    /// Its address.
    pub base_url: Option<String>,
    /// The environment variable with its key.
    pub key_env: Option<String>,
    /// What is known of its models.
    pub models: BTreeMap<String, Limits>,
}

/// Everything that a choice depends on.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// `--model`.
    pub flag: Option<&'a str>,
    /// The agent's `model`.
    pub agent: Option<&'a str>,
    /// `models.default`.
    pub default: Option<&'a str>,
    /// The providers under `models:`.
    pub declared: &'a BTreeMap<String, Provider>,
    /// The environment.
    pub env: &'a BTreeMap<String, String>,
}

/// A key. It shows nowhere but in the request.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Keeps a key; blanks around it are dropped.
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// The key itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// A model that can be connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// `provider/model`.
    pub name: String,
    /// Its wire.
    pub api: Api,
    /// The address; may hold a user and a password, so show it through the connected model only.
    pub base_url: String,
    /// The key, if one is sent.
    pub key: Option<Key>,
    /// The environment variable that holds the key or would.
    pub key_env: Option<String>,
    /// The window in tokens, where known.
    pub context: Option<u64>,
    /// The most tokens that it writes, where known.
    pub output: Option<u32>,
    /// Something that the user should know.
    pub warning: Option<String>,
}

impl Choice {
    /// The model's name as the provider knows it.
    #[must_use]
    pub fn model(&self) -> &str {
        self.name.split_once('/').map_or(self.name.as_str(), |(_, model)| model)
    }
}

/// Why no model was chosen. Every text says what to set.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ChoiceError {
    /// Nothing names a model.
    #[error(
        "no model: give --model provider/model, or set BEEUNI_MODEL, or `models.default` in beeuni.yaml, or one of \
         ANTHROPIC_API_KEY and OPENAI_API_KEY"
    )]
    Nothing,
    /// A model without its provider.
    #[error("{source_name} is `{given}`: write `provider/model`, such as `{ANTHROPIC_DEFAULT}`")]
    NoProvider {
        /// What gave it.
        source_name: &'static str,
        /// What it gave.
        given: String,
    },
    /// A provider that nobody declares.
    #[error(
        "{source_name}: no provider `{provider}` is known; there are {known}. Declare it under `models:` in beeuni.yaml, \
         or set BEEUNI_MODEL and BEEUNI_MODEL_URL"
    )]
    UnknownProvider {
        /// What named it.
        source_name: &'static str,
        /// Its name.
        provider: String,
        /// Those that are known.
        known: String,
    },
    /// A provider without an address.
    #[error(
        "provider `{provider}` has no address: give it a `base_url` under `models:` in beeuni.yaml or set BEEUNI_MODEL_URL"
    )]
    NoAddress {
        /// Its name.
        provider: String,
    },
    /// The key is not in the environment.
    #[error("{model} needs a key: set {key_env}")]
    NoKey {
        /// `provider/model`.
        model: String,
        /// The variable to set.
        key_env: String,
    },
    /// The key is there, but only beeuni.yaml names the address.
    #[error(
        "{model}: {key_env} is not sent to {url}, because only beeuni.yaml names that address. If you trust it, set \
         BEEUNI_MODEL={model} and BEEUNI_MODEL_URL={url}"
    )]
    KeyWithheld {
        /// `provider/model`.
        model: String,
        /// The variable that holds the key.
        key_env: String,
        /// The address, without user, password and query.
        url: String,
    },
    /// `BEEUNI_MODEL_API` is neither word.
    #[error("BEEUNI_MODEL_API is `{0}`: it may be `openai` or `anthropic`")]
    Api(String),
}

/// A provider that needs no declaration.
struct BuiltIn {
    name: &'static str,
    api: Api,
    url: &'static str,
    url_env: Option<&'static str>,
    key_env: Option<&'static str>,
}

const BUILT_IN: [BuiltIn; 4] = [
    BuiltIn {
        name: "anthropic",
        api: Api::Anthropic,
        url: "https://api.anthropic.com",
        url_env: Some("ANTHROPIC_BASE_URL"),
        key_env: Some("ANTHROPIC_API_KEY"),
    },
    BuiltIn {
        name: "openai",
        api: Api::OpenAi,
        url: "https://api.openai.com/v1",
        url_env: Some("OPENAI_BASE_URL"),
        key_env: Some("OPENAI_API_KEY"),
    },
    BuiltIn {
        name: "openrouter",
        api: Api::OpenAi,
        url: "https://openrouter.ai/api/v1",
        url_env: None,
        key_env: Some("OPENROUTER_API_KEY"),
    },
    BuiltIn {
        name: "ollama",
        api: Api::OpenAi,
        url: "http://127.0.0.1:11434/v1",
        url_env: None,
        key_env: None,
    },
];

/// What is known of models that nobody declares, by how their names begin; the first that fits counts.
const KNOWN: [(&str, &str, u64, u32); 4] = [
    ("anthropic", "claude-3", 200_000, 4_096),
    ("anthropic", "claude-", 200_000, 32_000),
    ("openai", "gpt-5", 400_000, 128_000),
    ("openai", "gpt-4.1", 1_047_576, 32_768),
];

/// Who named an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamedBy {
    Environment,
    Checkout,
    Ourselves,
}

/// Chooses a model: `--model`, the agent's, `BEEUNI_MODEL`, `models.default`, then the first provider whose key is set.
///
/// `BEEUNI_MODEL` is `provider/model`; a bare model stands for the provider named like its `BEEUNI_MODEL_API`.
/// `BEEUNI_MODEL_URL`, `BEEUNI_MODEL_API` and `BEEUNI_MODEL_KEY` speak of that provider, also when `--model` or an agent
/// names another model of it.
///
/// # Errors
/// When nothing names a model, or what is named is not known, has no address, or lacks its key.
pub fn choose(asked: &Asked<'_>) -> Result<Choice, ChoiceError> {
    let env = |name: &str| asked.env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let from_env = env("BEEUNI_MODEL").map(|given| from_environment(given, &env)).transpose()?;
    let named = [("--model", asked.flag), ("the agent's `model`", asked.agent)];
    let (source_name, name) = match named.into_iter().find_map(|(source, given)| Some((source, given?))) {
        Some((source, given)) => (source, whole(source, given)?),
        None => match (&from_env, asked.default) {
            (Some(name), _) => ("BEEUNI_MODEL", name.clone()),
            (None, Some(given)) => ("`models.default`", whole("`models.default`", given)?),
            (None, None) if env("ANTHROPIC_API_KEY").is_some() => {
                ("ANTHROPIC_API_KEY", ANTHROPIC_DEFAULT.to_owned())
            }
            (None, None) if env("OPENAI_API_KEY").is_some() => ("OPENAI_API_KEY", OPENAI_DEFAULT.to_owned()),
            (None, None) => return Err(ChoiceError::Nothing),
        },
    };
    let (provider, model) = name.split_once('/').unwrap_or((&name, ""));
    let built_in = BUILT_IN.iter().find(|known| known.name == provider);
    let declared = asked.declared.get(provider);
    // The variables beside BEEUNI_MODEL speak of its provider only.
    let is_envs =
        from_env.as_deref().and_then(|name| name.split_once('/')).is_some_and(|(p, _)| p == provider);
    let beside = |name: &str| env(name).filter(|_| is_envs);
    let env_url =
        beside("BEEUNI_MODEL_URL").or_else(|| built_in.and_then(|known| known.url_env).and_then(env));
    if built_in.is_none() && declared.is_none() && env_url.is_none() {
        let built_in = |name: &&str| BUILT_IN.iter().any(|known| known.name == *name);
        let declared = asked.declared.keys().map(String::as_str).filter(|name| !built_in(name));
        let known = BUILT_IN.iter().map(|known| known.name).chain(declared);
        let known = known.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        return Err(ChoiceError::UnknownProvider { source_name, provider: provider.to_owned(), known });
    }

    let own_url = built_in.map(|known| known.url);
    let declared_url = declared.and_then(|declared| declared.base_url.as_deref());
    let same =
        |a: &str, b: Option<&str>| b.is_some_and(|b| a.trim_end_matches('/') == b.trim_end_matches('/'));
    let (base_url, from) = match (env_url, declared_url, own_url) {
        (Some(url), _, _) => (url, NamedBy::Environment),
        (None, Some(url), own) if !same(url, own) => (url, NamedBy::Checkout),
        (None, Some(url), _) | (None, None, Some(url)) => (url, NamedBy::Ourselves),
        (None, None, None) => return Err(ChoiceError::NoAddress { provider: provider.to_owned() }),
    };

    let declared_key_env = declared.and_then(|declared| declared.key_env.as_deref());
    let beside_key = beside("BEEUNI_MODEL_KEY");
    let key_env = match (beside_key, declared_key_env) {
        (Some(_), _) => Some("BEEUNI_MODEL_KEY"),
        (None, Some(name)) => Some(name),
        (None, None) => built_in.and_then(|known| known.key_env),
    };
    let key = beside_key.or_else(|| key_env.and_then(env));
    let mut warning = None;
    let key = match (from, key, key_env) {
        (NamedBy::Checkout, Some(_), Some(key_env)) => {
            let url = without_secrets(base_url);
            // Where the file itself asks for a key, going without would only fail later and less clearly.
            if declared_key_env.is_some() || beside_key.is_some() {
                return Err(ChoiceError::KeyWithheld { model: name, key_env: key_env.to_owned(), url });
            }
            warning = Some(format!(
                "{name}: beeuni.yaml sends this model's requests to {url}; {key_env} is not sent there"
            ));
            None
        }
        (NamedBy::Ourselves, None, Some(key_env)) => {
            return Err(ChoiceError::NoKey { model: name, key_env: key_env.to_owned() });
        }
        (_, key, _) => key,
    };

    let api = match beside("BEEUNI_MODEL_API").map(api).transpose()? {
        Some(api) => api,
        None => declared
            .and_then(|declared| declared.api)
            .or(built_in.map(|known| known.api))
            .unwrap_or(Api::OpenAi),
    };
    let known = KNOWN.iter().find(|(of, begins, ..)| *of == provider && model.starts_with(begins));
    let limits = declared.and_then(|declared| declared.models.get(model)).copied().unwrap_or_default();
    Ok(Choice {
        api,
        base_url: base_url.to_owned(),
        key: key.map(Key::new),
        key_env: key_env.map(str::to_owned),
        context: limits.context.or(known.map(|(.., context, _)| *context)),
        output: limits.output.or(known.map(|(.., output)| *output)),
        warning,
        name,
    })
}

/// `BEEUNI_MODEL` as `provider/model`.
fn from_environment<'a>(given: &str, env: &impl Fn(&str) -> Option<&'a str>) -> Result<String, ChoiceError> {
    if given.contains('/') {
        return whole("BEEUNI_MODEL", given);
    }
    match (env("BEEUNI_MODEL_API"), env("BEEUNI_MODEL_URL")) {
        (Some(word), _) => {
            api(word)?;
            Ok(format!("{word}/{given}"))
        }
        (None, Some(_)) => Ok(format!("openai/{given}")),
        (None, None) => whole("BEEUNI_MODEL", given),
    }
}

/// A name that has both of its parts.
fn whole(source_name: &'static str, given: &str) -> Result<String, ChoiceError> {
    match given.trim().split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(given.trim().to_owned()),
        _ => Err(ChoiceError::NoProvider { source_name, given: given.to_owned() }),
    }
}

fn api(word: &str) -> Result<Api, ChoiceError> {
    match word {
        "openai" => Ok(Api::OpenAi),
        "anthropic" => Ok(Api::Anthropic),
        other => Err(ChoiceError::Api(other.to_owned())),
    }
}

/// An address without user, password and query.
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) =
                rest.split_once('/').map_or((rest, String::new()), |(h, p)| (h, format!("/{p}")));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

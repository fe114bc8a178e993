//! `models:`.

use indexmap::IndexMap;

use crate::manifest::{ModelLimits, ModelsConfig, ProviderApi, ProviderConfig};
use crate::names::{BUILT_IN_PROVIDERS, closest};
use crate::yaml::Value;

use super::reader::{At, Reader};
use super::top::{agent_name, env_name};

const APIS: [(&str, ProviderApi); 2] =
    [("openai", ProviderApi::OpenAi), ("anthropic", ProviderApi::Anthropic)];

pub(super) fn read(reader: &mut Reader<'_>, at: &At<'_>) -> ModelsConfig {
    let mut models = ModelsConfig::default();
    for entry in reader.map(at) {
        match entry.key {
            "default" => models.default = model_id(reader, &entry),
            "small" => models.small = model_id(reader, &entry),
            _ => {
                if agent_name(reader, &entry, "provider") {
                    models.providers.insert(entry.key.to_owned(), provider(reader, &entry));
                }
            }
        }
    }
    models
}

/// `provider/model`.
pub(super) fn model_id(reader: &mut Reader<'_>, at: &At<'_>) -> Option<String> {
    let text = reader.text(at)?;
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.trim().is_empty() => Some(text.to_owned()),
        _ => {
            reader.error(at, format!("\"{text}\" must be `provider/model`, as `anthropic/<model>`"));
            None
        }
    }
}

fn provider(reader: &mut Reader<'_>, at: &At<'_>) -> ProviderConfig {
    let mut provider = ProviderConfig { api: None, base_url: None, key_env: None, models: IndexMap::new() };
    let entries = reader.map(at);
    for entry in &entries {
        match entry.key {
            "api" => provider.api = reader.word(entry, &APIS),
            "base_url" => provider.base_url = address(reader, entry),
            "key_env" => {
                let name = reader.text(entry);
                provider.key_env = name.filter(|name| env_name(reader, entry, name)).map(str::to_owned);
            }
            "models" => {
                for model in reader.map(entry) {
                    let limits = limits(reader, &model);
                    provider.models.insert(model.key.to_owned(), limits);
                }
            }
            _ => reader.unknown(entry, &["api", "base_url", "key_env", "models"]),
        }
    }
    if BUILT_IN_PROVIDERS.contains(&at.key) {
        return provider;
    }
    let hint = closest(at.key, BUILT_IN_PROVIDERS.into_iter().chain(["default", "small"]));
    let hint = hint.map(|name| format!(" Did you mean `{name}`?")).unwrap_or_default();
    for needed in ["api", "base_url"] {
        if !entries.iter().any(|entry| entry.key == needed) {
            reader.error_at_key(
                at,
                format!("`{needed}` is missing: a provider that is not built in needs it.{hint}"),
            );
        }
    }
    provider
}

fn limits(reader: &mut Reader<'_>, at: &At<'_>) -> ModelLimits {
    let mut limits = ModelLimits::default();
    for entry in reader.map(at) {
        match entry.key {
            "context" => limits.context = reader.count(&entry, 1),
            "output" => limits.output = reader.count(&entry, 1),
            _ => reader.unknown(&entry, &["context", "output"]),
        }
    }
    limits
}

/// An http or https address.
pub(super) fn address(reader: &mut Reader<'_>, at: &At<'_>) -> Option<String> {
    let Value::Text(text) = at.value() else {
        reader.text(at);
        return None;
    };
    let host = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    if host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
        && !text.contains(char::is_whitespace)
    {
        return Some(text.clone());
    }
    reader.error(at, "must be an address that starts with https:// or http://");
    None
}

//! Joins the manifest's words about models with the choice of one.

use std::collections::BTreeMap;
use std::sync::Arc;

use beeuni_manifest::{Agent, ModelsConfig, ProviderApi};
use beeuni_models::{Api, Asked, Limits, Model, Provider, choose, connect};

use crate::Failure;

/// A model that was chosen for an agent.
pub(crate) struct Chosen {
    /// The model.
    pub(crate) model: Arc<dyn Model>,
    /// Its window in tokens, where known.
    pub(crate) window: Option<u64>,
    /// What the user should know about the choice.
    pub(crate) warning: Option<String>,
}

/// Chooses an agent's model.
pub(crate) fn model_of(
    flag: Option<&str>,
    agent: &Agent,
    config: &ModelsConfig,
    env: &BTreeMap<String, String>,
) -> Result<Chosen, Failure> {
    let declared = declared(config);
    let asked = Asked {
        flag,
        agent: agent.model.as_deref(),
        default: config.default.as_deref(),
        declared: &declared,
        env,
    };
    let choice = choose(&asked).map_err(Failure::failed)?;
    let model = connect(&choice).map_err(Failure::failed)?;
    Ok(Chosen { model, window: choice.context, warning: choice.warning })
}

fn declared(config: &ModelsConfig) -> BTreeMap<String, Provider> {
    let providers = config.providers.iter().map(|(name, provider)| {
        let models = provider.models.iter().map(|(id, limits)| {
            let output = limits.output.map(|output| u32::try_from(output).unwrap_or(u32::MAX));
            (id.clone(), Limits { context: limits.context, output })
        });
        let api = provider.api.map(|api| match api {
            ProviderApi::OpenAi => Api::OpenAi,
            ProviderApi::Anthropic => Api::Anthropic,
        });
        let provider = Provider {
            api,
            base_url: provider.base_url.clone(),
            key_env: provider.key_env.clone(),
            models: models.collect(),
        };
        (name.clone(), provider)
    });
    providers.collect()
}

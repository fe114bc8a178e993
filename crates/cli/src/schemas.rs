//! Warns of schemas that a provider is known to refuse. Nothing here changes a schema (M2).

use std::collections::{BTreeMap, BTreeSet};

use beeuni_manifest::{Finding, Manifest, Severity, ToolSource};
use beeuni_models::schema_findings;
use beeuni_toolhost::LoadReport;

use crate::project::Project;

/// Judged where a project does not say which providers it uses.
const USUAL: [&str; 2] = ["anthropic", "openai"];

/// A warning for each schema of the project's own modules that a provider of this project is known to refuse.
pub(crate) fn refused(
    project: &Project,
    env: &BTreeMap<String, String>,
    report: &LoadReport,
) -> Vec<Finding> {
    let manifest = &project.judged.manifest;
    let providers = providers(manifest, env);
    let mut found = Vec::new();
    for tool in &report.loaded {
        let entry = manifest.tools.entries.get(&tool.name);
        if entry.is_none_or(|entry| entry.value == ToolSource::Beeuni) {
            continue;
        }
        let Ok(schema) = serde_json::from_str(tool.parameters.get()) else { continue };
        let messages: BTreeSet<String> = providers
            .iter()
            .flat_map(|provider| schema_findings(provider, &schema))
            .map(|warning| warning.message)
            .collect();
        found.extend(
            messages.into_iter().map(|message| project.about_tool(Severity::Warning, &tool.name, message)),
        );
    }
    found
}

/// The providers of every `provider/model` that the project or the environment names.
fn providers(manifest: &Manifest, env: &BTreeMap<String, String>) -> BTreeSet<String> {
    let agents = manifest.agents.values().filter_map(|entry| entry.value.model.as_deref());
    let models = [manifest.models.default.as_deref(), manifest.models.small.as_deref()].into_iter().flatten();
    let named = agents.chain(models).chain(env.get("BEEUNI_MODEL").map(String::as_str));
    let mut providers: BTreeSet<String> =
        named.filter_map(|model| Some(model.split_once('/')?.0.to_owned())).collect();
    if providers.is_empty() {
        providers.extend(USUAL.map(str::to_owned));
    }
    providers
}

//! `tools:` (L1–L5, V1, V2, V5–V7).

use crate::manifest::{Entry, ToolSource, ToolsList};
use crate::names::{BEEUNI_TOOLS, is_beeuni_tool, is_harness_tool, is_tool_name};
use crate::paths;
use crate::yaml::Value;

use super::reader::{At, Reader};

/// The tail of [`project_value_text`].
const NOT_BEEUNI_PATH: &str = "`beeuni:<name>` names a Beeuni tool under its own name.";

/// V1, under a Beeuni tool's name.
pub(super) fn beeuni_value_text(name: &str) -> String {
    format!(
        "must be `beeuni:{name}` (the Beeuni tool) or a repo-relative path to a .ts or .js module \
         (e.g. `tools/{name}.ts`) that replaces it."
    )
}

/// V1, under any other name.
pub(super) fn project_value_text(key: &str) -> String {
    format!("must be a repo-relative path to a .ts or .js module (e.g. `tools/{key}.ts`). {NOT_BEEUNI_PATH}")
}

/// V2.
pub(super) fn no_beeuni_tool_text() -> String {
    let all = BEEUNI_TOOLS.join(", ");
    format!("Sessions of this project get no Beeuni tool ({all}). Add `<name>: beeuni:<name>` to keep one.")
}

/// V3.
pub(super) fn not_loaded_text(name: &str) -> String {
    format!(
        "\"{name}\" is a Beeuni tool this project does not load: add `{name}: beeuni:{name}` under the top-level \
         `tools`, or remove it here."
    )
}

/// V7, also for agents and connectors.
pub(super) fn both_files_text(section: &str, name: &str, first: &str, second: &str) -> String {
    format!("{section} \"{name}\" is declared in both {first} and {second} — one name, one file")
}

/// Adds what one file lists under `tools:`.
pub(super) fn add(reader: &mut Reader<'_>, at: &At<'_>, list: &mut ToolsList) {
    list.has_key = true;
    for entry in reader.map(at) {
        if let Some(first) = list.entries.get(entry.key) {
            let message = both_files_text("tools", entry.key, &first.place.file, entry.file);
            reader.error_at_key(&entry, message);
            continue;
        }
        let named = name(reader, &entry);
        if let (true, Some(source)) = (named, source(reader, &entry)) {
            let place = reader.place(&entry);
            list.entries.insert(entry.key.to_owned(), Entry { value: source, place });
        }
    }
}

/// V5.
fn name(reader: &mut Reader<'_>, at: &At<'_>) -> bool {
    let message = if is_harness_tool(at.key) {
        format!("\"{}\" is the name of a harness tool; choose another one", at.key)
    } else if is_tool_name(at.key) {
        return true;
    } else {
        "a tool's name is snake_case, at most 64 characters: a small letter, then small letters, digits and `_`".to_owned()
    };
    reader.error_at_key(at, message);
    false
}

/// V1 and V6. A path to nothing keeps its entry, so that the tool is listed with the reason why it does not load.
fn source(reader: &mut Reader<'_>, at: &At<'_>) -> Option<ToolSource> {
    let form = || if is_beeuni_tool(at.key) { beeuni_value_text(at.key) } else { project_value_text(at.key) };
    let Value::Text(value) = at.value() else {
        reader.error(at, form());
        return None;
    };
    if let Some(name) = value.strip_prefix("beeuni:") {
        if name == at.key && is_beeuni_tool(name) {
            return Some(ToolSource::Beeuni);
        }
        reader.error(at, form());
        return None;
    }
    if let Some(fault) = paths::module_fault(value) {
        reader.error(at, format!("\"{value}\" {fault}. It {}", form()));
        return None;
    }
    if let Some(message) = paths::missing(reader.files, value) {
        reader.error(at, message);
    }
    Some(ToolSource::Module(value.clone()))
}

/// V2, at the first `tools:` key.
pub(super) fn some_beeuni_tool(reader: &mut Reader<'_>, at: &At<'_>, listed: bool) {
    if !listed {
        reader.warn_at_key(at, no_beeuni_tool_text());
    }
}

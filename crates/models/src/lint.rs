//! Schemas that a provider is known to refuse. Findings are warnings: a schema reaches the model as its module wrote it
//! (M2), nothing here changes one.

use serde_json::Value;

/// How deep a schema is looked into.
const MAX_DEPTH: usize = 32;

/// The most findings of one schema.
const MAX_FINDINGS: usize = 20;

/// Something in a schema that a provider is known to refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaWarning {
    /// Who refuses it: `OpenAI`, `Anthropic` or `Gemini`.
    pub provider: &'static str,
    /// The keyword at fault.
    pub keyword: &'static str,
    /// A sentence with the place (a JSON pointer) and what to do.
    pub message: String,
}

/// What a provider refuses in a tool's `parameters`. `provider` as in `provider/model`; for a router such as
/// `openrouter`, and for a name that is not known, it is judged by all three, since any of them may be behind it. A
/// local server (`ollama`) refuses nothing.
#[must_use]
pub fn schema_findings(provider: &str, schema: &Value) -> Vec<SchemaWarning> {
    let judges: &[&'static str] = match provider {
        "anthropic" => &["Anthropic"],
        "openai" => &["OpenAI"],
        "google" | "gemini" => &["Gemini"],
        "ollama" => &[],
        _ => &["OpenAI", "Anthropic", "Gemini"],
    };
    let mut found = Vec::new();
    for judge in judges {
        let mut report = Report { judge, found: &mut found };
        if *judge == "Gemini" { gemini(schema, "", 0, &mut report) } else { root(schema, &mut report) }
    }
    found.truncate(MAX_FINDINGS);
    found
}

struct Report<'a> {
    judge: &'static str,
    found: &'a mut Vec<SchemaWarning>,
}

impl Report<'_> {
    fn add(&mut self, keyword: &'static str, place: &str, what: &str) {
        let judge = self.judge;
        let place =
            if place.is_empty() { "at the top of `parameters`".to_owned() } else { format!("at `{place}`") };
        let message = format!("{judge} refuses `{keyword}` {place}: {what}");
        self.found.push(SchemaWarning { provider: judge, keyword, message });
    }
}

/// OpenAI and Anthropic refuse the whole request when a tool's root is a choice; deeper down they take one.
fn root(schema: &Value, report: &mut Report<'_>) {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if schema.get(keyword).is_some() {
            report.add(
                keyword,
                "",
                "say it in the description and check it in `execute`, or move it into a property",
            );
        }
    }
    if report.judge != "OpenAI" {
        return;
    }
    for keyword in ["enum", "not"] {
        if schema.get(keyword).is_some() {
            report.add(keyword, "", "move it into a property");
        }
    }
    if schema.get("properties").is_none() {
        let message = "OpenAI refuses `parameters` without `properties`: add `properties: {}`".to_owned();
        report.found.push(SchemaWarning { provider: report.judge, keyword: "properties", message });
    }
    arrays(schema, "", 0, report);
}

/// OpenAI wants to know what an array holds.
fn arrays(schema: &Value, place: &str, depth: usize, report: &mut Report<'_>) {
    if schema["type"] == "array" && schema.get("items").is_none() && schema.get("prefixItems").is_none() {
        report.add("type: array", place, "say with `items` what it holds");
    }
    each_inner(schema, place, depth, &mut |inner, place| arrays(inner, place, depth + 1, report));
}

fn gemini(schema: &Value, place: &str, depth: usize, report: &mut Report<'_>) {
    for keyword in ["$ref", "$defs", "definitions", "oneOf", "allOf", "not", "patternProperties", "const"] {
        if schema.get(keyword).is_some() {
            report.add(keyword, place, "write the schema out without it");
        }
    }
    if let Some(values) = schema["enum"].as_array()
        && values.iter().any(|value| !value.is_string())
    {
        report.add("enum", place, "all its values must be texts");
    }
    if schema["type"].is_array() {
        report.add("type", place, "give one type, not a list");
    }
    if schema["type"] == "array" && schema.get("items").is_none() {
        report.add("type: array", place, "say with `items` what it holds");
    }
    each_inner(schema, place, depth, &mut |inner, place| gemini(inner, place, depth + 1, report));
}

/// Visits the schemas directly inside a schema.
fn each_inner(schema: &Value, place: &str, depth: usize, visit: &mut dyn FnMut(&Value, &str)) {
    if depth >= MAX_DEPTH {
        return;
    }
    for keyword in ["properties", "patternProperties", "$defs", "definitions"] {
        for (name, inner) in schema[keyword].as_object().into_iter().flatten() {
            let name = name.replace('~', "~0").replace('/', "~1");
            visit(inner, &format!("{place}/{keyword}/{name}"));
        }
    }
    for keyword in ["items", "additionalProperties", "not"] {
        if schema[keyword].is_object() {
            visit(&schema[keyword], &format!("{place}/{keyword}"));
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for (n, inner) in schema[keyword].as_array().into_iter().flatten().enumerate() {
            visit(inner, &format!("{place}/{keyword}/{n}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn findings() {
        let check = |provider: &str, schema: Value, expected: &[&str]| {
            let found = schema_findings(provider, &schema);
            let found: Vec<String> = found.iter().map(|w| format!("{}:{}", w.provider, w.keyword)).collect();
            assert_eq!(found, expected, "{provider} {schema}");
        };
        let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        for provider in ["anthropic", "openai", "gemini", "openrouter", "ollama"] {
            check(provider, plain.clone(), &[]);
        }
        // D1.
        let choice = json!({"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
        check("anthropic", choice.clone(), &["Anthropic:anyOf"]);
        check("openai", choice.clone(), &["OpenAI:anyOf"]);
        check("acme", choice.clone(), &["OpenAI:anyOf", "Anthropic:anyOf"]);
        check("ollama", choice, &[]);
        // D3.
        let mixed = json!({"type": "object", "properties": {
            "a": {"enum": [60, 1440, null, true]}, "b": {"type": ["string", "null"]}, "c": {"const": 1}}});
        check("gemini", mixed.clone(), &["Gemini:enum", "Gemini:type", "Gemini:const"]);
        check("anthropic", mixed, &[]);
        check("openai", json!({"type": "object"}), &["OpenAI:properties"]);
        check(
            "openai",
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            &["OpenAI:type: array"],
        );
        let recursive = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}});
        check("gemini", recursive, &["Gemini:$defs", "Gemini:$ref"]);
        check("anthropic", json!("no schema"), &[]);
    }

    #[test]
    fn a_message_has_the_place_and_a_way_out() {
        let schema = json!({"type": "object", "properties": {"a/b": {"enum": [1]}}});
        insta::assert_snapshot!(schema_findings("gemini", &schema)[0].message, @"Gemini refuses `enum` at `/properties/a~1b`: all its values must be texts");
        let schema = json!({"type": "object", "properties": {}, "oneOf": []});
        insta::assert_snapshot!(schema_findings("anthropic", &schema)[0].message, @"Anthropic refuses `oneOf` at the top of `parameters`: say it in the description and check it in `execute`, or move it into a property");
    }

    #[test]
    fn deep_schemas_end() {
        let mut schema = json!({"enum": [1]});
        for _ in 0..100 {
            schema = json!({"type": "object", "properties": {"a": schema}});
        }
        assert_eq!(schema_findings("gemini", &schema), []);
        let many = (0..100).map(|n| (n.to_string(), json!({"enum": [n]}))).collect::<serde_json::Map<_, _>>();
        assert_eq!(
            schema_findings("gemini", &json!({"type": "object", "properties": many})).len(),
            MAX_FINDINGS
        );
    }
}

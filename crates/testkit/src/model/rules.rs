//! What a real provider refuses.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::received::{Received, Wire, is_system};

/// How many cache breakpoints Anthropic takes.
const MAX_BREAKPOINTS: usize = 4;

/// The rules that a request breaks, in words.
pub(super) fn broken(request: &Received) -> Vec<String> {
    let mut found = Vec::new();
    if request.json.is_null() {
        return vec!["the body is no JSON".to_owned()];
    }
    if !request.json["model"].is_string() {
        found.push("`model` is missing".to_owned());
    }
    if request.messages().iter().all(is_system) {
        found.push("`messages` holds no message".to_owned());
    }
    tools(request, &mut found);
    match request.wire {
        Wire::OpenAi => openai(request, &mut found),
        Wire::Anthropic => anthropic(request, &mut found),
    }
    found
}

fn tools(request: &Received, found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    if request.json["tools"].as_array().is_some_and(Vec::is_empty) {
        found.push("`tools` is empty: leave it out".to_owned());
    }
    for name in request.tools() {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            found.push(format!("tool name {name:?} is not allowed"));
        }
        let schema = request.schema(&name).and_then(|text| serde_json::from_str::<Value>(&text).ok());
        if !schema.is_some_and(|schema| schema["type"] == "object") {
            found.push(format!("tool {name} has no schema of type object"));
        }
        if !seen.insert(name.clone()) {
            found.push(format!("tool {name} is offered twice"));
        }
    }
}

fn openai(request: &Received, found: &mut Vec<String>) {
    if request
        .headers
        .get("authorization")
        .is_some_and(|value| value.strip_prefix("Bearer ").is_none_or(|key| key.trim().is_empty()))
    {
        found.push("`authorization` holds no bearer key".to_owned());
    }
    // The ids of calls that wait for their answer.
    let mut open: HashSet<String> = HashSet::new();
    for (n, message) in request.messages().iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                found.push(format!("message {n} answers {id:?}, which is no open call"));
            }
            if !message["content"].is_string() && !message["content"].is_array() {
                found.push(format!("message {n} has no content"));
            }
            continue;
        }
        unanswered(n, &mut open, found);
        match role {
            "system" | "developer" => {}
            "user" if message["content"].is_string() || message["content"].is_array() => {}
            "assistant" => {
                let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
                if message.get("tool_calls").is_some() && calls.is_empty() {
                    found.push(format!("message {n} has empty `tool_calls`"));
                }
                if calls.is_empty() && message["content"].is_null() {
                    found.push(format!("message {n} says nothing and calls nothing"));
                }
                for call in calls {
                    let id = call["id"].as_str().unwrap_or_default();
                    let function = &call["function"];
                    if id.is_empty() || !open.insert(id.to_owned()) {
                        found.push(format!("message {n} has a call whose id {id:?} is empty or taken"));
                    }
                    if call["type"] != "function"
                        || !function["name"].is_string()
                        || !function["arguments"].is_string()
                    {
                        found.push(format!(
                            "message {n}: call {id} is no function call with arguments as text"
                        ));
                    }
                }
            }
            _ => found.push(format!("message {n} has role {role:?} and no fitting content")),
        }
    }
    unanswered(request.messages().len(), &mut open, found);
}

fn anthropic(request: &Received, found: &mut Vec<String>) {
    for (name, want) in [("anthropic-version", ""), ("content-type", "application/json")] {
        if !request.headers.get(name).is_some_and(|value| value.starts_with(want)) {
            found.push(format!("header `{name}` is missing"));
        }
    }
    if ["x-api-key", "authorization"]
        .iter()
        .all(|name| request.headers.get(*name).is_none_or(String::is_empty))
    {
        found.push("no key was sent".to_owned());
    }
    if request.json["max_tokens"].as_u64().unwrap_or(0) == 0 {
        found.push("`max_tokens` is missing".to_owned());
    }
    if request.body.matches("\"cache_control\"").count() > MAX_BREAKPOINTS {
        found.push(format!("more than {MAX_BREAKPOINTS} cache breakpoints"));
    }
    let mut open: HashSet<String> = HashSet::new();
    let mut before = "assistant";
    for (n, message) in request.messages().iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == before || (role != "user" && role != "assistant") {
            found.push(format!("message {n} has role {role:?} after {before:?}"));
        }
        before = role;
        let parts: &[Value] = message["content"].as_array().map_or(&[], Vec::as_slice);
        if parts.is_empty() && message["content"].as_str().is_none_or(str::is_empty) {
            found.push(format!("message {n} is empty"));
        }
        let mut others = false;
        for part in parts {
            match part["type"].as_str().unwrap_or_default() {
                "tool_result" if role == "user" => {
                    let id = part["tool_use_id"].as_str().unwrap_or_default();
                    if others {
                        found.push(format!("message {n}: the result of {id} does not stand first"));
                    }
                    if !open.remove(id) {
                        found.push(format!("message {n} answers {id:?}, which is no open call"));
                    }
                }
                "tool_use" if role == "assistant" => {
                    let id = part["id"].as_str().unwrap_or_default();
                    if id.is_empty() || !open.insert(id.to_owned()) {
                        found.push(format!("message {n} has a call whose id {id:?} is empty or taken"));
                    }
                    if !part["input"].is_object() {
                        found.push(format!("message {n}: the input of call {id} is no object"));
                    }
                    others = true;
                }
                "text" => {
                    if part["text"].as_str().is_none_or(|text| text.trim().is_empty()) {
                        found.push(format!("message {n} has an empty text"));
                    }
                    others = true;
                }
                "thinking" | "redacted_thinking" | "image" | "document" => others = true,
                kind => found.push(format!("message {n} has a part of kind {kind:?}")),
            }
        }
        if role == "user" {
            unanswered(n, &mut open, found);
        }
    }
    if before == "assistant" {
        found.push("the last message is the model's own".to_owned());
    }
    unanswered(request.messages().len(), &mut open, found);
}

/// Notes every call that should have its answer by message `n`.
fn unanswered(n: usize, open: &mut HashSet<String>, found: &mut Vec<String>) {
    let mut ids: Vec<String> = open.drain().collect();
    ids.sort();
    found.extend(ids.into_iter().map(|id| format!("call {id} has no answer before message {n}")));
}

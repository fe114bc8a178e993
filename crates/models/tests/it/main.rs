//! Both wires against servers of the testkit, which share no code with them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod choose;
mod faults;
mod requests;
mod sloppy;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use beeuni_models::{
    Api, Choice, Delta, Key, Message, Model, ModelError, Policy, Request, ToolSchema, connect_with,
};
use futures::StreamExt as _;
use serde_json::value::RawValue;

const WIRES: [Api; 2] = [Api::OpenAi, Api::Anthropic];

/// Quick enough for a test, patient enough for a busy machine.
const POLICY: Policy = Policy {
    attempts: 3,
    base: Duration::from_millis(2),
    longest: Duration::from_millis(50),
    idle: Duration::from_secs(30),
};

fn choice(api: Api, url: &str) -> Choice {
    Choice {
        name: "scripted/scripted-1".to_owned(),
        api,
        base_url: url.to_owned(),
        key: Some(Key::new("sk-secret-1")),
        key_env: Some("SCRIPTED_KEY".to_owned()),
        context: None,
        output: None,
        warning: None,
    }
}

fn model(api: Api, url: &str) -> Arc<dyn Model> {
    connect_with(&choice(api, url), POLICY).unwrap()
}

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

fn tool(name: &str, parameters: &str) -> ToolSchema {
    ToolSchema {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        parameters: RawValue::from_string(parameters.to_owned()).unwrap().into(),
    }
}

fn request(prompt: &str) -> Request {
    let tools =
        vec![tool("look", r#"{"type":"object","properties":{}}"#), tool("other", r#"{"type":"object"}"#)];
    Request { system: "You test.".to_owned(), messages: vec![user(prompt)], tools, ..Request::default() }
}

/// Everything that an answer gives.
async fn all(model: &dyn Model, request: Request) -> Vec<Result<Delta, ModelError>> {
    tokio::time::timeout(Duration::from_secs(60), model.stream(request).collect())
        .await
        .expect("an answer in time")
}

/// An answer in short: `text`, `(reasoning)`, `name:arguments`, `#usage`, `~retry`, `=finish`, `!error`; text in a row
/// is joined. Usage is left out unless it is asked for.
fn short(deltas: &[Result<Delta, ModelError>], usage: bool) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut in_text = false;
    for delta in deltas {
        let was_text = std::mem::replace(&mut in_text, matches!(delta, Ok(Delta::Text(_))));
        match delta {
            Ok(Delta::Text(text)) if was_text => out.last_mut().unwrap().push_str(text),
            Ok(Delta::Text(text)) => out.push(text.clone()),
            Ok(Delta::Reasoning(text)) => out.push(format!("({text})")),
            Ok(Delta::Call(call)) => out.push(format!("{}:{}", call.name, call.arguments)),
            Ok(Delta::Usage(u)) if usage => out.push(format!("#{}/{}/{}", u.input, u.output, u.cached)),
            Ok(Delta::Usage(_)) => in_text = was_text,
            Ok(Delta::Retrying { attempt, delay_ms, .. }) => out.push(format!("~{attempt} {delay_ms}")),
            Ok(Delta::Finish(reason)) => out.push(format!("={reason:?}")),
            Err(error) => out.push(format!("!{error}")),
        }
    }
    out
}

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

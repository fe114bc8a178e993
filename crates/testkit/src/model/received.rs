//! What the server was asked.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, Method, Uri};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Whose protocol a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `POST /v1/chat/completions`.
    OpenAi,
    /// `POST /v1/messages`.
    Anthropic,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is being given.
    Open,
    /// It was given whole, an error too.
    Answered,
    /// The script cut it.
    Cut,
    /// The client left before it was whole.
    Disconnected,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Received {
    /// Whose protocol.
    pub wire: Wire,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers; names in lower case, a repeated header's last value.
    pub headers: BTreeMap<String, String>,
    /// The body as it came.
    pub body: String,
    /// The body parsed; null when it is no JSON.
    pub json: Value,
    /// How the answer ended.
    pub end: End,
}

/// A tool in a request, of either wire, with its schema's own text.
#[derive(Deserialize)]
struct Offer {
    #[serde(default)]
    name: String,
    function: Option<Box<Offer>>,
    #[serde(alias = "input_schema")]
    parameters: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Offers {
    #[serde(default)]
    tools: Vec<Offer>,
}

impl Received {
    pub(super) fn new(wire: Wire, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Self {
        let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            wire,
            method: method.to_string(),
            path: uri.to_string(),
            headers: headers.iter().map(header).collect(),
            body: String::from_utf8_lossy(body).into_owned(),
            json: serde_json::from_slice(body).unwrap_or_default(),
            end: End::Open,
        }
    }

    /// The names of the tools on offer, in their order.
    #[must_use]
    pub fn tools(&self) -> Vec<String> {
        self.offers().into_iter().map(|(name, _)| name).collect()
    }

    /// The text of a tool's schema, byte for byte as it came.
    #[must_use]
    pub fn schema(&self, tool: &str) -> Option<String> {
        self.offers().into_iter().find(|(name, _)| name == tool).and_then(|(_, schema)| schema)
    }

    /// The system prompt: every system text, joined by blank lines.
    #[must_use]
    pub fn system(&self) -> String {
        let mut texts = vec![text_of(&self.json["system"])];
        for message in self.messages() {
            if is_system(message) {
                texts.push(text_of(&message["content"]));
            }
        }
        texts.retain(|text| !text.is_empty());
        texts.join("\n\n")
    }

    /// The messages as they came.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.json["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The tool results in the request, oldest first.
    #[must_use]
    pub fn results(&self) -> Vec<String> {
        self.messages().iter().flat_map(results_of).collect()
    }

    fn offers(&self) -> Vec<(String, Option<String>)> {
        let offers: Offers = serde_json::from_str(&self.body).unwrap_or(Offers { tools: Vec::new() });
        let open = |offer: Offer| match offer.function {
            Some(function) => *function,
            None => offer,
        };
        offers
            .tools
            .into_iter()
            .map(open)
            .map(|offer| (offer.name, offer.parameters.map(|schema| schema.get().to_owned())))
            .collect()
    }
}

/// True for a message that only instructs.
pub(super) fn is_system(message: &Value) -> bool {
    message["role"] == "system" || message["role"] == "developer"
}

/// The words of a message's content, without tool results.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// The tool results of one message.
pub(super) fn results_of(message: &Value) -> Vec<String> {
    if message["role"] == "tool" {
        return vec![text_of(&message["content"])];
    }
    let parts = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    parts.iter().filter(|part| part["type"] == "tool_result").map(|part| text_of(&part["content"])).collect()
}

/// True for an assistant's message that calls tools.
pub(super) fn calls_tools(message: &Value) -> bool {
    let parts = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    message["role"] == "assistant"
        && (message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty())
            || parts.iter().any(|part| part["type"] == "tool_use"))
}

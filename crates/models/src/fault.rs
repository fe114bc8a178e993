//! What a provider's error means, in all the words that providers have for it.

use reqwest::StatusCode;
use serde_json::Value;

/// The most bytes of a provider's words that are passed on.
const MAX_WORDS: usize = 2048;

/// Kinds of errors that a caller treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The conversation is larger than the window.
    ContextFull,
    /// The key is missing, wrong or not allowed to.
    Unauthorized,
    /// Another try may help.
    Passing,
    /// It will not help.
    Lasting,
}

/// Parts of sentences (lower case) by which providers say that the window is full.
const FULL: [&str; 16] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "maximum context length",
    "maximum prompt length",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "exceed context limit",
    "exceeds the context window",
    "exceeds the model's context",
    "exceeds the available context size",
    "exceeded model context",
    "exceeded max context length",
    "reduce the length of the messages",
    "input token count exceeds",
    "request_too_large",
];

/// Judges an error by its status and its whole body.
pub(crate) fn kind(status: u16, body: &str) -> Kind {
    let body = body.to_lowercase();
    match status {
        401 | 403 => Kind::Unauthorized,
        // An empty account does not fill up while we wait.
        402 => Kind::Lasting,
        429 if body.contains("insufficient_quota") => Kind::Lasting,
        429 => Kind::Passing,
        _ if FULL.iter().any(|words| body.contains(words)) => Kind::ContextFull,
        _ if body.contains("input token count") && body.contains("exceeds the maximum") => Kind::ContextFull,
        501 | 505 => Kind::Lasting,
        408 | 425 | 500..=599 => Kind::Passing,
        _ => Kind::Lasting,
    }
}

/// The words of an error body: what the provider says to people, bounded, on one line, without the key.
pub(crate) fn words(status: u16, body: &str, key: Option<&str>) -> String {
    let parsed = serde_json::from_str::<Value>(body).ok();
    let said = parsed.as_ref().and_then(said).unwrap_or_else(|| body.to_owned());
    let said = hide(&said, key);
    let mut said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if said.is_empty() {
        let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        reason.unwrap_or("no reason given").clone_into(&mut said);
    }
    bounded(said)
}

/// A text without the key.
pub(crate) fn hide(text: &str, key: Option<&str>) -> String {
    match key {
        Some(key) if !key.is_empty() => text.replace(key, "[key]"),
        _ => text.to_owned(),
    }
}

/// The status that an error inside a stream stands for.
pub(crate) fn reported_status(error: &Value) -> u16 {
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let given =
        [&error["code"], &error["status"]].into_iter().find_map(number).and_then(|n| u16::try_from(n).ok());
    if let Some(status @ 400..600) = given {
        return status;
    }
    match error["type"].as_str().unwrap_or_default() {
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" => 429,
        "overloaded_error" => 529,
        "invalid_request_error" => 400,
        _ => 500,
    }
}

/// Where providers put their words: `error.message`, `error`, `message`, `detail`; for a router the words of the
/// provider behind it.
fn said(body: &Value) -> Option<String> {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let error = &body["error"];
    let behind = error["metadata"]["raw"].as_str();
    let own = [&error["message"], error, &body["message"], &body["detail"], &body["detail"][0]["msg"]];
    let own = own.into_iter().find_map(Value::as_str);
    match (own, behind) {
        (Some(own), Some(behind)) => Some(format!("{own}: {behind}")),
        (own, behind) => own.or(behind).map(str::to_owned),
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > MAX_WORDS {
        let mut end = MAX_WORDS;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let check =
            |status, body: &str, expected| assert_eq!(kind(status, body), expected, "{status} {body}");
        // OpenAI.
        check(
            400,
            r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","code":"context_length_exceeded"}}"#,
            Kind::ContextFull,
        );
        check(
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again."}}"#,
            Kind::ContextFull,
        );
        // Anthropic.
        check(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250000 tokens > 200000 maximum"}}"#,
            Kind::ContextFull,
        );
        check(
            400,
            r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#,
            Kind::ContextFull,
        );
        check(
            413,
            r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            Kind::ContextFull,
        );
        // vLLM.
        check(
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","code":400}"#,
            Kind::ContextFull,
        );
        // llama.cpp, Ollama.
        check(
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}"#,
            Kind::ContextFull,
        );
        check(
            500,
            r#"{"error":{"message":"prompt too long; exceeded max context length by 4 tokens"}}"#,
            Kind::ContextFull,
        );
        // OpenRouter, xAI, Gemini.
        check(
            400,
            r#"{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens."}}"#,
            Kind::ContextFull,
        );
        check(
            400,
            r#"{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            Kind::ContextFull,
        );
        check(
            400,
            r#"[{"error":{"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}]"#,
            Kind::ContextFull,
        );
        // The rest.
        check(
            429,
            "Request too large for gpt-5 on tokens per min; reduce the length of the messages",
            Kind::Passing,
        );
        check(429, r#"{"error":{"code":"insufficient_quota"}}"#, Kind::Lasting);
        check(401, "", Kind::Unauthorized);
        check(403, "", Kind::Unauthorized);
        check(402, "", Kind::Lasting);
        check(404, "", Kind::Lasting);
        check(400, "", Kind::Lasting);
        check(408, "", Kind::Passing);
        check(500, "", Kind::Passing);
        check(501, "", Kind::Lasting);
        check(503, "", Kind::Passing);
        check(529, "", Kind::Passing);
    }

    #[test]
    fn provider_words() {
        let check =
            |body: &str, expected: &str| assert_eq!(words(404, body, Some("sk-1")), expected, "{body}");
        check(r#"{"error":{"message":"no such model"}}"#, "no such model");
        check(r#"{"error":"no such model"}"#, "no such model");
        check(r#"{"message":"no such model"}"#, "no such model");
        check(r#"{"detail":"Not Found"}"#, "Not Found");
        check(r#"{"detail":[{"msg":"field required"}]}"#, "field required");
        check(r#"[{"error":{"message":"in a list"}}]"#, "in a list");
        check(
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"busy"}}}"#,
            "Provider returned error: busy",
        );
        check("<h1>Not\n  found</h1>", "<h1>Not found</h1>");
        check("", "Not Found");
        check(r#"{"error":{"message":"bad key sk-1!"}}"#, "bad key [key]!");
        let long = words(500, &"ü".repeat(5000), None);
        assert!(long.len() <= MAX_WORDS + "…".len() && long.ends_with('…'), "{}", long.len());
    }
}

//! Answers in the words of both wires.

use serde_json::{Value, json};

use super::received::Wire;
use super::script::Turn;

/// The name under which the model answers.
const NAME: &str = "scripted-1";

/// Not a model's answer.
pub(super) const PAGE: &str = "<html><body>It works!</body></html>";

/// An event stream, but not a model's.
pub(super) const BROKEN_STREAM: &str = "event: ping\ndata: {not json\n\ndata: [1,2]\n\n";

/// How many ticks a slow answer ends with.
const TICKS: usize = 20;

/// Into how many pieces arguments are broken.
const ARGUMENT_PIECES: usize = 3;

/// A piece of an event stream.
#[derive(Debug)]
pub(super) struct Piece {
    /// True when a client gives it on: text, thinking or arguments.
    pub(super) delta: bool,
    pub(super) text: String,
}

pub(super) fn models() -> Value {
    json!({"object": "list", "data": [{"id": NAME, "object": "model", "owned_by": "testkit"}]})
}

pub(super) fn failure(wire: Wire, status: u16) -> Value {
    let message = format!("scripted failure {status}");
    match wire {
        Wire::OpenAi => json!({"error": {"message": message, "type": "server_error", "code": null}}),
        Wire::Anthropic => json!({"type": "error", "error": {"type": "api_error", "message": message}}),
    }
}

pub(super) fn full(wire: Wire) -> Value {
    match wire {
        Wire::OpenAi => json!({"error": {
            "message": "This model's maximum context length is 200000 tokens. However, your messages resulted in \
                        250000 tokens. Please reduce the length of the messages.",
            "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
        }}),
        Wire::Anthropic => json!({"type": "error", "error": {
            "type": "invalid_request_error", "message": "prompt is too long: 250000 tokens > 200000 maximum",
        }}),
    }
}

/// The whole answer as one body, for a request that does not stream.
pub(super) fn whole(wire: Wire, turn: &Turn, first_id: u64) -> Value {
    let [input, output, cached] = turn.usage.unwrap_or([10, 5, 0]);
    let text = words(turn).concat();
    let stop = stop(wire, turn);
    match wire {
        Wire::OpenAi => {
            let calls: Vec<Value> = (first_id..)
                .zip(&turn.calls)
                .map(|(id, call)| {
                    json!({"id": format!("call_{id}"), "type": "function",
                           "function": {"name": call.name, "arguments": call.arguments}})
                })
                .collect();
            let mut message = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": NAME,
                   "choices": [{"index": 0, "message": message, "finish_reason": stop}],
                   "usage": openai_usage(input, output, cached)})
        }
        Wire::Anthropic => {
            let mut content = Vec::new();
            if !text.is_empty() {
                content.push(json!({"type": "text", "text": text}));
            }
            for (id, call) in (first_id..).zip(&turn.calls) {
                let object: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
                content.push(
                    json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": call.name, "input": object}),
                );
            }
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": NAME, "content": content,
                   "stop_reason": stop, "stop_sequence": null,
                   "usage": {"input_tokens": input - cached.min(input), "output_tokens": output,
                             "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0}})
        }
    }
}

/// The answer as an event stream.
pub(super) fn pieces(wire: Wire, turn: &Turn, first_id: u64, with_usage: bool) -> Vec<Piece> {
    match wire {
        Wire::OpenAi => openai(turn, first_id, with_usage),
        Wire::Anthropic => anthropic(turn, first_id),
    }
}

fn openai(turn: &Turn, first_id: u64, with_usage: bool) -> Vec<Piece> {
    let chunk = |is_delta: bool, delta: Value, finish: Value| {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": NAME,
                           "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        Piece { delta: is_delta, text: format!("data: {chunk}\n\n") }
    };
    let mut pieces = vec![chunk(false, json!({"role": "assistant", "content": ""}), Value::Null)];
    if !turn.think.is_empty() {
        pieces.push(chunk(true, json!({"reasoning_content": turn.think}), Value::Null));
    }
    for word in words(turn) {
        pieces.push(chunk(true, json!({"content": word}), Value::Null));
    }
    for (index, call) in turn.calls.iter().enumerate() {
        let id = format!("call_{}", first_id + index as u64);
        let mut parts = argument_parts(turn, &call.arguments).into_iter();
        let first = if turn.batch { parts.next().unwrap_or_default() } else { String::new() };
        let head = json!({"tool_calls": [{"index": index, "id": id, "type": "function",
                          "function": {"name": call.name, "arguments": first}}]});
        pieces.push(chunk(true, head, Value::Null));
        for part in parts {
            let delta = json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]});
            pieces.push(chunk(true, delta, Value::Null));
        }
    }
    pieces.push(chunk(false, json!({}), stop(Wire::OpenAi, turn).into()));
    if with_usage {
        let [input, output, cached] = turn.usage.unwrap_or([10, 5, 0]);
        let usage = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": NAME,
                           "choices": [], "usage": openai_usage(input, output, cached)});
        pieces.push(Piece { delta: false, text: format!("data: {usage}\n\n") });
    }
    pieces.push(Piece { delta: false, text: "data: [DONE]\n\n".to_owned() });
    pieces
}

fn anthropic(turn: &Turn, first_id: u64) -> Vec<Piece> {
    let event = |delta: bool, data: Value| {
        let name = data["type"].as_str().unwrap_or_default();
        Piece { delta, text: format!("event: {name}\ndata: {data}\n\n") }
    };
    let [input, output, cached] = turn.usage.unwrap_or([10, 5, 0]);
    let mut pieces = vec![event(
        false,
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
               "model": NAME, "content": [], "stop_reason": null, "stop_sequence": null,
               "usage": {"input_tokens": input - cached.min(input), "output_tokens": 1,
                         "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0}}}),
    )];
    let mut blocks: Vec<(Value, Vec<Value>)> = Vec::new();
    if !turn.think.is_empty() {
        let deltas = vec![
            json!({"type": "thinking_delta", "thinking": turn.think}),
            json!({"type": "signature_delta", "signature": "c2NyaXB0ZWQ="}),
        ];
        blocks.push((json!({"type": "thinking", "thinking": "", "signature": ""}), deltas));
    }
    let words = words(turn);
    if !words.is_empty() {
        let deltas = words.into_iter().map(|word| json!({"type": "text_delta", "text": word})).collect();
        blocks.push((json!({"type": "text", "text": ""}), deltas));
    }
    for (id, call) in (first_id..).zip(&turn.calls) {
        let start = json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": call.name, "input": {}});
        let parts = argument_parts(turn, &call.arguments).into_iter();
        let deltas = parts.map(|part| json!({"type": "input_json_delta", "partial_json": part})).collect();
        blocks.push((start, deltas));
    }
    for (index, (start, deltas)) in blocks.into_iter().enumerate() {
        pieces.push(event(
            false,
            json!({"type": "content_block_start", "index": index, "content_block": start}),
        ));
        pieces.extend(deltas.into_iter().map(|delta| {
            event(true, json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }));
        pieces.push(event(false, json!({"type": "content_block_stop", "index": index})));
    }
    pieces.push(event(
        false,
        json!({"type": "message_delta", "delta": {"stop_reason": stop(Wire::Anthropic, turn), "stop_sequence": null},
               "usage": {"output_tokens": output}}),
    ));
    pieces.push(event(false, json!({"type": "message_stop"})));
    pieces
}

fn openai_usage(input: u64, output: u64, cached: u64) -> Value {
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
           "prompt_tokens_details": {"cached_tokens": cached}})
}

fn stop(wire: Wire, turn: &Turn) -> String {
    let usual = match (wire, turn.calls.is_empty()) {
        (Wire::OpenAi, true) => "stop",
        (Wire::OpenAi, false) => "tool_calls",
        (Wire::Anthropic, true) => "end_turn",
        (Wire::Anthropic, false) => "tool_use",
    };
    turn.stop.clone().unwrap_or_else(|| usual.to_owned())
}

/// What is said, word by word, so that it streams.
fn words(turn: &Turn) -> Vec<String> {
    let mut text = turn.say.clone().unwrap_or_default();
    if !turn.slow.is_zero() {
        text.push_str(&" tick".repeat(TICKS));
    }
    text.split_inclusive(' ').map(str::to_owned).collect()
}

/// Arguments in a few pieces that a client must put together; whole in a batch.
fn argument_parts(turn: &Turn, arguments: &str) -> Vec<String> {
    if turn.batch {
        return vec![arguments.to_owned()];
    }
    let characters: Vec<char> = arguments.chars().collect();
    let size = characters.len().div_ceil(ARGUMENT_PIECES).max(1);
    characters.chunks(size).map(|part| part.iter().collect()).collect()
}

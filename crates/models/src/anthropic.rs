//! The Anthropic messages API.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fault::reported_status;
use crate::model::{Delta, FinishReason, Message, Request, ToolSchema, Usage};
use crate::wire::{Broken, Calls, Decoder, Progress, past_arguments};

/// The version of the API, sent with each request.
pub(crate) const VERSION: &str = "2023-06-01";

/// The API wants a limit; this one every model of the last years takes.
const DEFAULT_MAX_TOKENS: u32 = 8192;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Part<'a>>,
    messages: Vec<Sent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
struct Sent<'a> {
    role: &'static str,
    content: Vec<Part<'a>>,
}

/// A part of a message. A cache breakpoint on it lets the provider reuse all that stands before.
#[derive(Serialize)]
struct Part<'a> {
    #[serde(flatten)]
    kind: Kind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kind<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: String,
        name: &'a str,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

const BREAKPOINT: Option<CacheControl> = Some(CacheControl { r#type: "ephemeral" });

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// Writes a request.
pub(crate) fn body(model: &str, request: &Request, output: Option<u32>) -> serde_json::Result<Vec<u8>> {
    let mut system: Vec<Part<'_>> = said(&request.system).into_iter().collect();
    let mut tools: Vec<Tool<'_>> = request.tools.iter().map(offer).collect();
    let mut messages = conversation(&request.messages);
    if let Some(part) = system.last_mut() {
        part.cache_control = BREAKPOINT;
    }
    if let Some(tool) = tools.last_mut() {
        tool.cache_control = BREAKPOINT;
    }
    if let Some(part) = messages.last_mut().and_then(|message| message.content.last_mut()) {
        part.cache_control = BREAKPOINT;
    }
    serde_json::to_vec(&Body {
        model,
        max_tokens: request.max_output.or(output).unwrap_or(DEFAULT_MAX_TOKENS),
        system,
        messages,
        tools,
        stream: true,
        temperature: request.temperature,
    })
}

fn offer(tool: &ToolSchema) -> Tool<'_> {
    let ToolSchema { name, description, parameters } = tool;
    Tool { name, description, input_schema: parameters, cache_control: None }
}

/// The conversation with user and assistant in turn: what follows in one role becomes one message, so that all the
/// results of one answer stand together and before the user's next words.
fn conversation(messages: &[Message]) -> Vec<Sent<'_>> {
    let mut sent: Vec<Sent<'_>> = Vec::new();
    for message in messages {
        let (role, parts) = parts(message);
        if parts.is_empty() {
            continue;
        }
        match sent.last_mut() {
            Some(last) if last.role == role => last.content.extend(parts),
            _ => sent.push(Sent { role, content: parts }),
        }
    }
    sent
}

fn parts(message: &Message) -> (&'static str, Vec<Part<'_>>) {
    let part = |kind| Part { kind, cache_control: None };
    match message {
        Message::User { text } => ("user", said(text).into_iter().collect()),
        Message::Assistant { text, calls } => {
            let calls = calls.iter().map(|call| {
                // The API takes an object here and nothing else.
                let input = past_arguments(&call.arguments);
                part(Kind::ToolUse { id: id(&call.id), name: &call.name, input })
            });
            ("assistant", said(text).into_iter().chain(calls).collect())
        }
        Message::Tool { call_id, content, is_error, .. } => {
            ("user", vec![part(Kind::ToolResult { tool_use_id: id(call_id), content, is_error: *is_error })])
        }
    }
}

/// A text as a part; the API refuses blank ones.
fn said(text: &str) -> Option<Part<'_>> {
    (!text.trim().is_empty()).then_some(Part { kind: Kind::Text { text }, cache_control: None })
}

/// A call's id in the letters that the API allows; another provider's model may have begun the conversation.
fn id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// Any event; each kind fills the fields that it has.
#[derive(Deserialize)]
struct Event {
    r#type: String,
    #[serde(default)]
    index: u64,
    #[serde(default)]
    message: Option<Start>,
    #[serde(default)]
    content_block: Option<Block>,
    #[serde(default)]
    delta: Option<Piece>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct Block {
    r#type: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    partial_json: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
}

/// Reads the events of an answer.
#[derive(Debug)]
pub(crate) struct Events {
    calls: Calls,
    /// Per call: the index of its block.
    blocks: Vec<u64>,
    usage: Usage,
    reason: Option<String>,
    done: bool,
}

impl Events {
    pub(crate) fn new(request: &Request) -> Self {
        Self {
            calls: Calls::new(request),
            blocks: Vec::new(),
            usage: Usage::default(),
            reason: None,
            done: false,
        }
    }

    /// Counts what an event says about tokens; later events correct earlier ones.
    fn count(&mut self, usage: &Value, out: &mut Vec<Delta>) {
        let number = |name: &str| usage[name].as_u64();
        if let Some(fresh) = number("input_tokens") {
            let cached = number("cache_read_input_tokens").unwrap_or(0);
            self.usage.cached = cached;
            self.usage.input = fresh + cached + number("cache_creation_input_tokens").unwrap_or(0);
        }
        if let Some(output) = number("output_tokens") {
            self.usage.output = output;
        }
        if usage.is_object() {
            out.push(Delta::Usage(self.usage));
        }
    }

    fn begin(&mut self, index: u64, block: Block, out: &mut Vec<Delta>) {
        if block.type_is("text") && !block.text.is_empty() {
            out.push(Delta::Text(block.text));
        } else if block.type_is("tool_use") {
            let n = self.calls.begin(&block.id, &block.name);
            self.blocks.push(index);
            // The start holds `{}` and the pieces follow; a server that sends all at once sends no pieces.
            let input = block.input.filter(|input| !matches!(input.get(), "{}" | "null" | "\"\""));
            if let (Some(input), Some(call)) = (input, self.calls.at(n)) {
                input.get().clone_into(&mut call.arguments);
            }
        }
    }

    fn piece(&mut self, index: u64, piece: Piece, out: &mut Vec<Delta>) -> Result<(), Broken> {
        out.extend(piece.thinking.map(Delta::Reasoning));
        out.extend(piece.text.map(Delta::Text));
        if let Some(text) = piece.partial_json {
            let n = self.blocks.iter().rposition(|block| *block == index);
            let Some(call) = n.and_then(|n| self.calls.at(n)) else {
                return Err(Broken::Protocol(format!("arguments for block {index}, which is no tool call")));
            };
            call.arguments.push_str(&text);
        }
        Ok(())
    }
}

impl Block {
    fn type_is(&self, name: &str) -> bool {
        self.r#type == name
    }
}

impl Decoder for Events {
    fn event(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<(), Broken> {
        let event: Event = serde_json::from_str(data).map_err(|error| Broken::Protocol(error.to_string()))?;
        match event.r#type.as_str() {
            "message_start" => {
                if let Some(message) = event.message {
                    self.count(&message.usage, out);
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.begin(event.index, block, out);
                }
            }
            "content_block_delta" => {
                if let Some(piece) = event.delta {
                    self.piece(event.index, piece, out)?;
                }
            }
            "message_delta" => {
                self.count(&event.usage, out);
                self.reason = event.delta.and_then(|delta| delta.stop_reason).or(self.reason.take());
            }
            "message_stop" => self.done = true,
            "error" => {
                return Err(Broken::Reported { status: reported_status(&event.error), error: event.error });
            }
            // `ping`, `content_block_stop` and whatever will come.
            _ => {}
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        match (&self.reason, self.done) {
            (_, true) => Progress::Done,
            (Some(_), false) => Progress::Enough,
            (None, false) => Progress::Open,
        }
    }

    fn finish(&mut self, out: &mut Vec<Delta>) {
        let reason = match self.reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
            Some("refusal") => FinishReason::Filtered,
            _ if !self.calls.is_empty() => FinishReason::Calls,
            _ => FinishReason::Stop,
        };
        out.extend(self.calls.take().into_iter().map(Delta::Call));
        out.push(Delta::Finish(reason));
    }
}

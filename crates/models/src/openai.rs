//! The OpenAI-compatible chat API, as OpenAI, OpenRouter, Ollama, vLLM and many others speak it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fault::reported_status;
use crate::model::{Delta, FinishReason, Message, Request, ToolSchema, Usage};
use crate::wire::{Broken, Calls, Decoder, Progress, past_arguments};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Sent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Sent<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        /// Null rather than empty: some servers refuse an empty text.
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<SentCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct SentCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: SentFunction<'a>,
}

#[derive(Serialize)]
struct SentFunction<'a> {
    name: &'a str,
    arguments: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

/// Writes a request. `modern` names the limit as OpenAI's own newer models want it; others know only the old name.
pub(crate) fn body(
    model: &str,
    request: &Request,
    output: Option<u32>,
    modern: bool,
) -> serde_json::Result<Vec<u8>> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(Sent::System { content: &request.system });
    }
    messages.extend(request.messages.iter().filter_map(sent));
    let limit = request.max_output.or(output);
    serde_json::to_vec(&Body {
        model,
        messages,
        tools: request.tools.iter().map(offer).collect(),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        temperature: request.temperature,
        max_tokens: limit.filter(|_| !modern),
        max_completion_tokens: limit.filter(|_| modern),
    })
}

fn offer(tool: &ToolSchema) -> Tool<'_> {
    let ToolSchema { name, description, parameters } = tool;
    Tool { r#type: "function", function: Function { name, description, parameters } }
}

fn sent(message: &Message) -> Option<Sent<'_>> {
    Some(match message {
        Message::User { text } => Sent::User { content: text },
        // A turn that was stopped before its first word leaves such a message.
        Message::Assistant { text, calls } if text.is_empty() && calls.is_empty() => return None,
        Message::Assistant { text, calls } => Sent::Assistant {
            content: Some(text.as_str()).filter(|text| !text.is_empty()),
            tool_calls: calls
                .iter()
                .map(|call| SentCall {
                    id: &call.id,
                    r#type: "function",
                    function: SentFunction {
                        name: &call.name,
                        arguments: past_arguments(&call.arguments).get().to_owned(),
                    },
                })
                .collect(),
        },
        Message::Tool { call_id, content, .. } => Sent::Tool { tool_call_id: call_id, content },
    })
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<Piece>,
    /// A server that does not stream sends the whole at once.
    #[serde(default)]
    message: Option<Piece>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    content: Value,
    #[serde(default)]
    refusal: Value,
    #[serde(default)]
    reasoning_content: Value,
    #[serde(default)]
    reasoning: Value,
    #[serde(default)]
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
struct CallPiece {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionPiece>,
}

#[derive(Default, Deserialize)]
struct FunctionPiece {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

/// Reads the chunks of an answer.
#[derive(Debug)]
pub(crate) struct Chunks {
    calls: Calls,
    /// Per call: its index on the wire, where the server gives one.
    indexes: Vec<Option<u64>>,
    reason: Option<String>,
    done: bool,
}

impl Chunks {
    pub(crate) fn new(request: &Request) -> Self {
        Self { calls: Calls::new(request), indexes: Vec::new(), reason: None, done: false }
    }

    /// The call to which a piece belongs; a new one where it begins one.
    ///
    /// Servers differ: some give no index, some the index 0 to every call, some no id, some the id in every piece.
    fn slot(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let found = match index {
            Some(_) => self.indexes.iter().rposition(|known| *known == index),
            None if !id.is_empty() => {
                (0..self.indexes.len()).rev().find(|n| self.calls.at(*n).is_some_and(|c| c.id == id))
            }
            None if !name.is_empty() => None,
            None => self.indexes.len().checked_sub(1),
        };
        let belongs = |call: &crate::Call| {
            let begins = !name.is_empty() && !call.name.is_empty();
            let other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
            let no_ids = id.is_empty() && call.id.is_empty();
            !(begins && (other_id || (no_ids && is_whole(&call.arguments))))
        };
        match found {
            Some(n) if self.calls.at(n).is_some_and(|call| belongs(call)) => n,
            _ => {
                self.indexes.push(index);
                self.calls.begin(id, name)
            }
        }
    }

    fn call_piece(&mut self, piece: CallPiece) {
        let id = piece.id.unwrap_or_default();
        let function = piece.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let n = self.slot(piece.index, &id, &name);
        let Some(call) = self.calls.at(n) else { return };
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
        if let Some(arguments) = function.arguments {
            // Arguments are text; a server that sends the object itself means its text.
            match serde_json::from_str::<Option<String>>(arguments.get()) {
                Ok(text) => call.arguments.push_str(&text.unwrap_or_default()),
                Err(_) => call.arguments.push_str(arguments.get()),
            }
        }
    }
}

impl Decoder for Chunks {
    fn event(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<(), Broken> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| Broken::Protocol(error.to_string()))?;
        if !chunk.error.is_null() {
            let error = chunk.error;
            return Err(Broken::Reported { status: reported_status(&error), error });
        }
        if let Some(usage) = usage(&chunk.usage) {
            out.push(Delta::Usage(usage));
        }
        let Some(choice) = chunk.choices.into_iter().flatten().next() else { return Ok(()) };
        if let Some(piece) = choice.delta.or(choice.message) {
            let thought = text(&piece.reasoning_content) + &text(&piece.reasoning);
            if !thought.is_empty() {
                out.push(Delta::Reasoning(thought));
            }
            let said = text(&piece.content) + &text(&piece.refusal);
            if !said.is_empty() {
                out.push(Delta::Text(said));
            }
            for call in piece.tool_calls.into_iter().flatten() {
                self.call_piece(call);
            }
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            if reason == "error" {
                return Err(Broken::Reported {
                    status: 502,
                    error: "the provider broke the answer off".into(),
                });
            }
            self.reason = Some(reason);
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
            Some("length" | "max_tokens" | "model_length") => FinishReason::Length,
            Some("content_filter") => FinishReason::Filtered,
            // Some servers say `stop` although they wait for calls.
            _ if !self.calls.is_empty() => FinishReason::Calls,
            _ => FinishReason::Stop,
        };
        out.extend(self.calls.take().into_iter().map(Delta::Call));
        out.push(Delta::Finish(reason));
    }
}

/// True for arguments to which nothing can be added.
fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

/// A text that may be null, a string or a list of parts.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    let input = usage["prompt_tokens"].as_u64()?;
    let cached = [&usage["prompt_tokens_details"]["cached_tokens"], &usage["prompt_cache_hit_tokens"]];
    Some(Usage {
        input,
        output: usage["completion_tokens"].as_u64().unwrap_or(0),
        cached: cached.into_iter().find_map(Value::as_u64).unwrap_or(0),
    })
}

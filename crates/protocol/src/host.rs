//! What the daemon and a Bun tool process say to each other, as frames on file descriptor 3.
//!
//! The TypeScript side is `crates/toolhost/host/host.ts`; its numbers are compared with these by a test.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The kinds of frames, daemon to tool process (below 64) and back (from 64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Import this module: JSON [`Load`]. Sent once.
    Load = 1,
    /// Run the tool: a `u32` length, JSON [`CallMeta`] of that length, then the arguments as raw JSON bytes.
    Call = 2,
    /// The environment that later calls name by their `env`: JSON [`Env`].
    Env = 3,
    /// Fire the call's abort signal. Empty.
    Abort = 4,
    /// Are you still turning? Empty; the answer is [`Kind::Pong`] with the same id.
    Ping = 5,
    /// The process is up: JSON [`Ready`].
    Ready = 64,
    /// The module is in: JSON [`Loaded`].
    Loaded = 65,
    /// The module is not in: JSON [`LoadFailed`].
    LoadFailed = 66,
    /// A call's output as UTF-8 text, not escaped.
    Result = 67,
    /// A call's error message as UTF-8 text, not escaped.
    Error = 68,
    /// Something went wrong outside any call (a late throw, a lost rejection): UTF-8 text for the log.
    Background = 69,
    /// The answer to [`Kind::Ping`].
    Pong = 70,
}

impl Kind {
    /// Every kind; a test compares it with the TypeScript side.
    pub const ALL: [Kind; 12] = [
        Kind::Load,
        Kind::Call,
        Kind::Env,
        Kind::Abort,
        Kind::Ping,
        Kind::Ready,
        Kind::Loaded,
        Kind::LoadFailed,
        Kind::Result,
        Kind::Error,
        Kind::Background,
        Kind::Pong,
    ];

    /// The kind with this number.
    pub fn from_byte(byte: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Payload of [`Kind::Load`].
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Load {
    /// The tool's name, for messages.
    pub name: String,
    /// Absolute path of the module.
    pub path: String,
    /// Absolute path of the checkout: imports outside it are not followed when hashing.
    pub root: String,
}

/// Payload of [`Kind::Ready`].
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Ready {
    /// Bun's version.
    pub bun: String,
}

/// Payload of [`Kind::Loaded`].
#[derive(Clone, Debug, Deserialize)]
pub struct Loaded {
    /// What the model reads.
    pub description: String,
    /// The JSON Schema as the module wrote it; kept as text so that nothing about it changes (M2).
    pub parameters: Box<RawValue>,
    /// Every file of the checkout that was read to load the module.
    pub files: Vec<LoadedFile>,
}

/// One file that a module consists of, hashed before it was imported.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct LoadedFile {
    /// Absolute path.
    pub path: String,
    /// SHA-256 of its bytes, lower-case hex.
    pub sha256: String,
}

/// Payload of [`Kind::LoadFailed`].
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct LoadFailed {
    /// Why, in words for the tool's author. Begins with the loader's own text, e.g. `Cannot find package 'zod'` (M8).
    pub message: String,
    /// The files that were read before it failed.
    pub files: Vec<LoadedFile>,
}

/// The head of a [`Kind::Call`] payload.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CallMeta {
    /// `context.sessionId`.
    pub session_id: String,
    /// `context.agent`.
    pub agent: String,
    /// `context.directory`.
    pub directory: String,
    /// The number of the [`Env`] that this call sees.
    pub env: u32,
}

/// Payload of [`Kind::Env`].
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Env {
    /// The number by which calls name it.
    pub number: u32,
    /// `context.env`.
    pub vars: BTreeMap<String, String>,
}

/// Builds the payload parts of a [`Kind::Call`]: the head's length, the head; the arguments follow as they are.
pub fn call_head(meta: &CallMeta) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_vec(meta)?;
    let mut head = Vec::with_capacity(4 + json.len());
    head.extend_from_slice(&(json.len() as u32).to_le_bytes());
    head.extend_from_slice(&json);
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_number() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_byte(kind as u8), Some(kind));
        }
        assert_eq!(Kind::from_byte(0), None);
    }

    #[test]
    fn a_schema_keeps_its_text() {
        let text =
            r#"{"description":"d","parameters":{"b":1.0,"a":{"enum":[60,1440,null,true,0.10]}},"files":[]}"#;
        let loaded: Loaded = serde_json::from_str(text).unwrap();
        assert_eq!(loaded.parameters.get(), r#"{"b":1.0,"a":{"enum":[60,1440,null,true,0.10]}}"#);
    }
}

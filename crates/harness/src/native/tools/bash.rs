//! `bash`: one shell line in a process group of its own.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::time::Duration;

use beeuni_child::{Child, Limits, SpawnError, Spec};
use beeuni_manifest::simple_commands;
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

use super::{Places, Resolved};
use crate::native::calls::Answer;
use crate::native::turn::Turn;

pub(super) const DESCRIPTION: &str = "Runs a command with bash in the project's checkout and gives what it writes. \
Each call is a shell of its own: directory and variables do not last, and what a command leaves running in the \
background is ended with it. There is no input and no terminal. For reading, searching and changing files use the \
tools made for that.";

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "command": {"type": "string", "description": "The command line."},
    "timeout": {"type": "integer", "description": "Milliseconds after which it is ended. Default 120000, at most 600000."},
    "workdir": {"type": "string", "description": "Where it runs. Default: the checkout."},
    "description": {"type": "string", "description": "What it does, in five to ten words."}
  },
  "required": ["command"]
}"#;

const DEFAULT_TIMEOUT: u64 = 120_000;
const MAX_TIMEOUT: u64 = 600_000;

/// How much of a long output is kept from its beginning and from its end, in bytes each.
const KEPT: usize = 1 << 20;

/// How long the rest of the output is waited for once the shell has ended: a process that left the group may hold the
/// pipe for ever.
const REST: Duration = Duration::from_millis(200);

#[derive(Deserialize)]
pub(super) struct Arguments {
    command: String,
    timeout: Option<u64>,
    workdir: Option<String>,
}

pub(in crate::native) struct Run {
    command: String,
    timeout: Duration,
    pub(super) workdir: Resolved,
}

impl Run {
    pub(super) fn new(arguments: Arguments, places: &Places) -> Result<Self, String> {
        let Arguments { command, timeout, workdir } = arguments;
        if command.trim().is_empty() {
            return Err("the command is empty".to_owned());
        }
        if command.contains('\0') {
            return Err("the command holds a zero byte".to_owned());
        }
        let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
        if timeout == 0 || timeout > MAX_TIMEOUT {
            return Err(format!("timeout is {timeout} and must be between 1 and {MAX_TIMEOUT} milliseconds"));
        }
        let workdir = places.resolve(workdir.as_deref().unwrap_or("."))?;
        Ok(Self { command, timeout: Duration::from_millis(timeout), workdir })
    }

    /// Each simple command; a line that cannot be taken apart counts as `*`.
    pub(super) fn subjects(&self) -> Vec<String> {
        simple_commands(&self.command)
            .filter(|commands| !commands.is_empty())
            .unwrap_or_else(|| vec!["*".to_owned()])
    }

    pub(super) async fn run(self, turn: &Turn, cancel: &CancellationToken) -> Answer {
        if !self.workdir.path.is_dir() {
            return Answer::error(format!("{} is no folder to work in", self.workdir.shown));
        }
        let mut child = match self.start(turn).await {
            Ok(child) => child,
            Err(error) => return Answer::error(error.to_string()),
        };
        let mut output = Output::default();
        // One loop takes both pipes, so that what a program writes to either comes in the order of its coming.
        let ended = {
            let gathered = output.gather(&mut child);
            tokio::pin!(gathered);
            tokio::select! {
                biased;
                () = cancel.cancelled() => Ended::Stopped,
                exit = &mut gathered => Ended::Itself(exit),
                () = tokio::time::sleep(self.timeout) => Ended::Late,
            }
        };
        match ended {
            Ended::Itself(exit) if exit.success() => Answer::ok(output.text()),
            Ended::Itself(exit) => Answer::ok(output.with(&format!("[the command {exit}]"))),
            Ended::Stopped => {
                child.kill();
                child.wait().await;
                Answer::stopped(turn)
            }
            Ended::Late => {
                child.kill();
                child.wait().await;
                let note = format!(
                    "[the command was ended after {} ms; give a longer timeout or split it]",
                    self.timeout.as_millis()
                );
                Answer::error(output.with(&note))
            }
        }
    }

    async fn start(&self, turn: &Turn) -> Result<Child, SpawnError> {
        let spec = |shell: &str| {
            let mut spec = Spec::new(shell, &self.workdir.path);
            // Both outputs into one pipe keep their order; on the same line, so that line numbers stay right.
            spec.args = vec![OsString::from("-c"), format!("exec 2>&1; {}", self.command).into()];
            let environment = turn.setup.tools.environment(&turn.root, &turn.session_agent);
            spec.env = environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
            // A user's build may need all of the machine; a tool's limits are for tools.
            spec.limits = Limits { memory: u64::MAX, file_size: u64::MAX, ..Limits::default() };
            spec
        };
        match turn.shared.options.spawner.spawn(spec("bash")).await {
            Err(SpawnError::Missing { .. }) => turn.shared.options.spawner.spawn(spec("sh")).await,
            started => started,
        }
    }
}

enum Ended {
    Itself(beeuni_child::Exit),
    Stopped,
    Late,
}

/// The beginning and the end of what a command wrote; a command that never stops writing fills no memory.
#[derive(Default)]
struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Output {
    /// Takes what the child writes until it ends.
    async fn gather(&mut self, child: &mut Child) -> beeuni_child::Exit {
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let (mut first, mut second) = (vec![0; 32 << 10], vec![0; 32 << 10]);
        let mut exit = None;
        let rest = tokio::time::sleep(Duration::MAX);
        tokio::pin!(rest);
        loop {
            let open = (stdout.is_some(), stderr.is_some());
            tokio::select! {
                biased;
                read = async { match &mut stdout { Some(pipe) => pipe.read(&mut first).await, None => Ok(0) } }, if open.0 => {
                    match read {
                        Ok(0) | Err(_) => stdout = None,
                        Ok(count) => self.push(&first[..count]),
                    }
                }
                read = async { match &mut stderr { Some(pipe) => pipe.read(&mut second).await, None => Ok(0) } }, if open.1 => {
                    match read {
                        Ok(0) | Err(_) => stderr = None,
                        Ok(count) => self.push(&second[..count]),
                    }
                }
                ended = child.wait(), if exit.is_none() => {
                    exit = Some(ended);
                    rest.as_mut().reset(tokio::time::Instant::now() + REST);
                }
                () = &mut rest, if exit.is_some() => (stdout, stderr) = (None, None),
            }
            if let (Some(exit), None, None) = (&exit, &stdout, &stderr) {
                return exit.clone();
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend(&bytes[..room]);
        self.tail.extend(&bytes[room..]);
        let over = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    fn text(self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.left_out > 0 {
            text.push_str(&format!("\n[{} bytes are left out here]\n", self.left_out));
            text.push_str(&String::from_utf8_lossy(&Vec::from(self.tail)));
            return text;
        }
        if self.tail.is_empty() {
            return text;
        }
        // Head and tail meet, perhaps inside a character.
        let mut whole = self.head;
        whole.extend(self.tail);
        String::from_utf8_lossy(&whole).into_owned()
    }

    fn with(self, note: &str) -> String {
        match self.text().trim_end_matches('\n') {
            "" => note.to_owned(),
            text => format!("{text}\n{note}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let check = |pieces: &[(u8, usize)], expected_len: usize, left_out: u64| {
            let mut output = Output::default();
            for (byte, count) in pieces {
                output.push(&vec![*byte; *count]);
            }
            assert_eq!(output.left_out, left_out);
            assert_eq!(output.text().len(), expected_len);
        };
        check(&[], 0, 0);
        check(&[(b'a', 10)], 10, 0);
        check(&[(b'a', KEPT), (b'b', KEPT)], 2 * KEPT, 0);
        check(
            &[(b'a', KEPT), (b'b', 1), (b'c', KEPT)],
            2 * KEPT + "\n[1 bytes are left out here]\n".len(),
            1,
        );
        let mut output = Output::default();
        output.push(&vec![b'a'; KEPT - 1]);
        output.push("ü".as_bytes());
        assert!(output.text().ends_with("aü"));
    }
}

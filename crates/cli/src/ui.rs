//! The one place that prints. Data goes to standard output, everything else to standard error.
//!
//! Nothing here fails: a reader that has gone away (`| head`) wants no more, and any other trouble with standard output
//! is told once, by [`Ui::finish`].

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Read, Write};

use anstyle::{AnsiColor, Style};
use clap::error::ErrorKind;
use serde::Serialize;

use crate::error::{Exit, Failure};

const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default().bold();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Where the program reads.
pub struct Input {
    /// The bytes.
    pub reader: Box<dyn Read + Send>,
    /// Whether a person types them.
    pub terminal: bool,
}

impl Input {
    /// A stream of the process.
    pub fn of(stream: impl Read + IsTerminal + Send + 'static) -> Input {
        Input { terminal: stream.is_terminal(), reader: Box::new(stream) }
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Input").field("terminal", &self.terminal).finish_non_exhaustive()
    }
}

/// Where the program writes.
pub struct Output {
    /// Takes the bytes.
    pub writer: Box<dyn Write + Send>,
    /// Whether a person reads them.
    pub terminal: bool,
}

impl Output {
    /// A stream of the process.
    pub fn of(stream: impl Write + IsTerminal + Send + 'static) -> Output {
        Output { terminal: stream.is_terminal(), writer: Box::new(stream) }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Output").field("terminal", &self.terminal).finish_non_exhaustive()
    }
}

/// Speaks to the user.
#[derive(Debug)]
pub struct Ui {
    out: Output,
    err: Output,
    out_colour: bool,
    err_colour: bool,
    trouble: Option<io::Error>,
}

impl Ui {
    /// Colours where a person reads, unless `NO_COLOR` is set or the terminal is `dumb`.
    pub fn new(out: Output, err: Output, env: &BTreeMap<String, String>) -> Ui {
        let wanted = env.get("NO_COLOR").is_none_or(String::is_empty)
            && env.get("TERM").is_none_or(|terminal| terminal != "dumb");
        Ui { out_colour: wanted && out.terminal, err_colour: wanted && err.terminal, out, err, trouble: None }
    }

    /// A line of data.
    pub fn data(&mut self, line: impl Display) {
        self.raw(format!("{line}\n").as_bytes());
    }

    /// Data as it is, seen at once.
    pub fn raw(&mut self, bytes: &[u8]) {
        if self.trouble.is_some() {
            return;
        }
        let written = self.out.writer.write_all(bytes).and_then(|()| self.out.writer.flush());
        self.trouble = written.err();
    }

    /// Data as JSON with two-space indent.
    pub fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.data(text),
            Err(error) => self.trouble = Some(error.into()),
        }
    }

    /// Data as JSON on one line.
    pub fn json_line(&mut self, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(text) => self.data(text),
            Err(error) => self.trouble = Some(error.into()),
        }
    }

    /// Whether whoever reads standard output has gone or cannot be written to: data is no longer seen.
    pub fn unheard(&self) -> bool {
        self.trouble.is_some()
    }

    /// Whether data may carry colours.
    pub fn coloured_data(&self) -> bool {
        self.out_colour
    }

    /// Whether a person reads standard output.
    pub fn watched(&self) -> bool {
        self.out.terminal
    }

    /// Data with this word marked as good, where colours are on.
    pub fn good(&self, word: &str) -> String {
        paint(self.out_colour, GREEN, word)
    }

    /// Data with this word marked as bad, where colours are on.
    pub fn bad(&self, word: &str) -> String {
        paint(self.out_colour, RED, word)
    }

    /// Data with this word marked as doubtful, where colours are on.
    pub fn doubtful(&self, word: &str) -> String {
        paint(self.out_colour, YELLOW, word)
    }

    /// Data with this text less prominent, where colours are on.
    pub fn dim(&self, text: &str) -> String {
        paint(self.out_colour, DIM, text)
    }

    /// Talk with this text less prominent, where colours are on.
    pub fn dim_talk(&self, text: &str) -> String {
        paint(self.err_colour, DIM, text)
    }

    /// A line of progress or talk.
    pub fn talk(&mut self, line: impl Display) {
        // Nobody can be told that standard error is gone.
        let _ = writeln!(self.err.writer, "{line}");
    }

    /// Talk as it is, seen at once.
    pub fn talk_raw(&mut self, text: &str) {
        let _ = self.err.writer.write_all(text.as_bytes()).and_then(|()| self.err.writer.flush());
    }

    /// Something that the user should know and that stops nothing.
    pub fn warning(&mut self, text: impl Display) {
        let word = paint(self.err_colour, YELLOW, "warning");
        self.talk(format_args!("{word}: {text}"));
    }

    /// Bad news, and what to do.
    pub fn failure(&mut self, failure: &Failure) -> Exit {
        let word = paint(self.err_colour, RED, "error");
        self.talk(format_args!("{word}: {failure}"));
        for hint in &failure.hints {
            let word = paint(self.err_colour, BOLD, "hint");
            self.talk(format_args!("{word}: {hint}"));
        }
        failure.exit
    }

    /// Help, the version, or words about wrong usage, as clap made them.
    pub(crate) fn clap(&mut self, message: &clap::Error) -> Exit {
        let text = message.render();
        let asked_for = matches!(message.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        let colour = if asked_for { self.out_colour } else { self.err_colour };
        let text = if colour { text.ansi().to_string() } else { text.to_string() };
        if asked_for {
            self.raw(text.as_bytes());
            Exit::Fine
        } else {
            self.talk_raw(&text);
            Exit::Usage
        }
    }

    /// Ends the talk: data that could not be written for another reason than a reader that left is a failure.
    pub fn finish(mut self, exit: Exit) -> Exit {
        match self.trouble.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.failure(&Failure::failed(format!("cannot write to standard output: {error}")));
                if exit == Exit::Fine { Exit::Failed } else { exit }
            }
            _ => exit,
        }
    }
}

fn paint(colour: bool, style: Style, text: &str) -> String {
    if colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

//! The one place that prints. Data goes to standard output, everything else to standard error.
//!
//! Nothing here fails: a reader that has gone away (`| head`) wants no more, and any other trouble with standard output
//! is told once, by [`Ui::finish`].
//!
//! Much of what is printed comes from outside: files, tools, models, servers. Characters that would move the cursor, hide
//! text or turn it around are shown as what they are: always on standard error, and on standard output where a person
//! reads it. Data in a pipe is left as it is.

use std::borrow::Cow;
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

    /// A line of data. It may have been coloured by this type or by [`beeuni_manifest::render`].
    pub fn data(&mut self, line: impl Display) {
        let line = format!("{line}\n");
        let colours = self.out_colour;
        let line = if self.out.terminal { visible(&line, colours) } else { line.into() };
        self.write(line.as_bytes());
    }

    /// Data without colours and without a line end of ours, seen at once.
    pub fn raw(&mut self, bytes: &[u8]) {
        if self.out.terminal {
            self.write(visible(&String::from_utf8_lossy(bytes), false).as_bytes());
        } else {
            self.write(bytes);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
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

    /// Talk with this text less prominent, where colours are on.
    pub fn dim_talk(&self, text: &str) -> String {
        paint(self.err_colour, DIM, text)
    }

    /// A line of progress or talk. It may have been coloured by this type.
    pub fn talk(&mut self, line: impl Display) {
        let line = format!("{line}\n");
        self.say(&visible(&line, self.err_colour));
    }

    /// Talk without a line end of ours, seen at once.
    pub fn talk_raw(&mut self, text: &str) {
        self.say(&visible(text, false));
    }

    fn say(&mut self, text: &str) {
        // Nobody can be told that standard error is gone.
        let _ = self.err.writer.write_all(text.as_bytes()).and_then(|()| self.err.writer.flush());
    }

    /// A coloured word, and what it is about.
    fn marked(&mut self, style: Style, word: &str, text: &dyn Display) {
        let word = paint(self.err_colour, style, word);
        self.say(&format!("{word}: {}\n", visible(&text.to_string(), false)));
    }

    /// Something that the user should know and that stops nothing.
    pub fn warning(&mut self, text: impl Display) {
        self.marked(YELLOW, "warning", &text);
    }

    /// Bad news, and what to do.
    pub fn failure(&mut self, failure: &Failure) -> Exit {
        self.marked(RED, "error", failure);
        for hint in &failure.hints {
            self.marked(BOLD, "hint", hint);
        }
        failure.exit
    }

    /// Help, the version, or words about wrong usage, as clap made them.
    pub(crate) fn clap(&mut self, message: &clap::Error) -> Exit {
        let text = message.render();
        let asked_for = matches!(message.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        let colour = if asked_for { self.out_colour } else { self.err_colour };
        let text = if colour { text.ansi().to_string() } else { text.to_string() };
        // Words about wrong usage repeat what was typed.
        let text = visible(&text, colour);
        if asked_for {
            self.write(text.as_bytes());
            Exit::Fine
        } else {
            self.say(&text);
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
    let text = visible(text, false);
    if colour { format!("{style}{text}{style:#}") } else { text.into_owned() }
}

/// The text with every character that acts on a terminal or on its neighbours shown instead, except line ends and tabs.
/// With `colours` those of a message pass; with them a text can be coloured, not hidden or moved.
fn visible(text: &str, colours: bool) -> Cow<'_, str> {
    if !text.contains(acts) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if colours { colour(rest) } else { 0 };
        if length > 0 {
            shown.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        match c {
            _ if !acts(c) => shown.push(c),
            '\0'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => shown.push('␡'),
            _ => shown.push_str(&format!("<U+{:04X}>", u32::from(c))),
        }
        rest = &rest[c.len_utf8()..];
    }
    shown.into()
}

/// Whether a terminal does something else with it than show it where it stands.
fn acts(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// How many bytes of a colour's sequence stand at the beginning.
fn colour(text: &str) -> usize {
    let Some(inner) = text.strip_prefix("\u{1b}[") else { return 0 };
    let Some((codes, _)) = inner.split_once('m') else { return 0 };
    let is_ours = match codes.strip_prefix("38;5;") {
        Some(bright) => matches!(bright, "9" | "10" | "11" | "12" | "13" | "14"),
        None => matches!(codes, "" | "0" | "1" | "2" | "4") || is_foreground(codes),
    };
    if is_ours { 2 + codes.len() + 1 } else { 0 }
}

/// A foreground colour other than black and white, which a terminal's own background may be.
fn is_foreground(code: &str) -> bool {
    matches!(code.as_bytes(), [b'3' | b'9', b'1'..=b'6'])
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<u8>>>);

    impl Write for Heard {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What `say` writes to standard output and standard error.
    fn heard(terminal: bool, say: impl FnOnce(&mut Ui)) -> (String, String) {
        let (out, err) = (Heard::default(), Heard::default());
        let output = |heard: &Heard| Output { writer: Box::new(heard.clone()), terminal };
        say(&mut Ui::new(output(&out), output(&err), &BTreeMap::new()));
        let text = |heard: &Heard| String::from_utf8(heard.0.lock().unwrap().clone()).unwrap();
        (text(&out), text(&err))
    }

    #[test]
    fn what_acts_is_shown() {
        for (text, expected) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("größe 🐝", "größe 🐝"),
            ("\u{1b}]0;owned\u{7}", "␛]0;owned␇"),
            ("a\rb\u{8}\0\u{7f}", "a␍b␈␀␡"),
            ("\u{9b}2J", "<U+009B>2J"),
            ("\u{202e}txt.\u{2066}x\u{2069}\u{200f}", "<U+202E>txt.<U+2066>x<U+2069><U+200F>"),
        ] {
            assert_eq!(visible(text, false), expected);
            assert_eq!(visible(text, true), expected);
        }
        let coloured = format!("{DIM}a{DIM:#}{RED}b{RED:#}");
        assert_eq!(visible(&coloured, true), coloured);
        assert_eq!(visible("\u{1b}[8mhidden\u{1b}[2Jm\u{1b}[40m", true), "␛[8mhidden␛[2Jm␛[40m");
        assert_eq!(visible("\u{1b}[31m", false), "␛[31m");
    }

    #[test]
    fn every_way_of_speaking_is_safe() {
        const EVIL: &str = "\u{1b}[2J\u{9b}";
        const SHOWN: &str = "␛[2J<U+009B>";
        let all = |ui: &mut Ui| {
            ui.data(EVIL);
            ui.raw(EVIL.as_bytes());
            ui.talk(EVIL);
            ui.talk_raw(EVIL);
            ui.warning(EVIL);
            ui.failure(&Failure::failed(EVIL).hint(EVIL));
            ui.talk(ui.dim_talk(EVIL));
        };
        let (out, err) = heard(true, all);
        assert_eq!(out, format!("{SHOWN}\n{SHOWN}"));
        assert_eq!((err.matches(SHOWN).count(), err.contains("\u{1b}[2J")), (6, false), "{err:?}");
        let (out, err) = heard(false, all);
        assert_eq!(out, format!("{EVIL}\n{EVIL}"), "data in a pipe stays as it is");
        assert!(!err.contains('\u{1b}'), "{err:?}");
        let (_, err) = heard(true, |ui| ui.warning("\u{1b}[31mred"));
        assert!(err.contains("␛[31mred"), "{err:?}");
    }
}

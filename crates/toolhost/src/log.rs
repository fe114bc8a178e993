//! What goes to the log: words of our own, and what modules print.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::load::REASON_INDENT;
use crate::redact::Redactor;

/// How much a log record matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something ended or did not start.
    Warn,
    /// What a module printed.
    Info,
}

/// Where records go. Called from many tasks; must not wait.
pub trait Log: Send + Sync {
    /// One record, already without secrets and without characters that steer a terminal. It may hold several lines;
    /// those after the first begin with two spaces.
    fn record(&self, level: Level, text: &str);
}

/// Records as `tracing` events.
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingLog;

impl Log for TracingLog {
    fn record(&self, level: Level, text: &str) {
        match level {
            Level::Warn => tracing::warn!("{text}"),
            Level::Info => tracing::info!("{text}"),
        }
    }
}

/// The log with secrets taken out of every record.
#[derive(Clone)]
pub(crate) struct CleanLog {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) redactor: Arc<Redactor>,
}

impl CleanLog {
    pub(crate) fn warn(&self, text: &str) {
        self.log.record(Level::Warn, &contained(&self.redactor.clean(text), 2));
    }

    pub(crate) fn info(&self, text: &str) {
        self.log.record(Level::Info, &contained(&self.redactor.clean(text), 2));
    }

    /// A module's words as a reason: without secrets, and fit for a place inside a record.
    pub(crate) fn clean_reason(&self, text: &str) -> String {
        contained(&self.redactor.clean(text), REASON_INDENT)
    }
}

/// A text whose lines after the first begin with at least `indent` spaces, so that none looks like a record, and in
/// which a mark stands for every character that steers a terminal: controls, and those that turn the direction.
pub(crate) fn contained(text: &str, indent: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
            let there = line.bytes().take_while(|byte| *byte == b' ').count();
            out.extend(std::iter::repeat_n(' ', indent.saturating_sub(there)));
        }
        out.extend(line.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }));
    }
    out
}

fn steers(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\t') || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A module may print so many bytes per second for long,
const RATE: f64 = 64.0 * 1024.0;
/// and so many at once.
const BURST: f64 = 1024.0 * 1024.0;
/// What a line has beyond this is read and dropped, so that no cut can split a secret in two.
const LONGEST_READ: usize = 64 << 10;
/// What a line in the log has at most.
const LONGEST_LINE: usize = 8 << 10;
/// Dropped bytes are spoken of at most so often.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// How much of the end of stderr is kept for the record of a crash.
const TAIL: usize = 4 << 10;

/// The last bytes that a process wrote to stderr.
#[derive(Debug, Default)]
pub(crate) struct Tail(Mutex<VecDeque<u8>>);

impl Tail {
    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&bytes[bytes.len().saturating_sub(TAIL)..]);
        let over = kept.len().saturating_sub(TAIL);
        kept.drain(..over);
    }

    /// The text, without a first line whose beginning is lost: it could hold half a secret.
    pub(crate) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let whole = if bytes.len() < TAIL {
            &bytes[..]
        } else {
            bytes.iter().position(|byte| *byte == b'\n').map_or(&[][..], |at| &bytes[at + 1..])
        };
        String::from_utf8_lossy(whole).trim().to_owned()
    }
}

/// Reads what a process prints until it ends, and logs it line by line under the tool's name.
pub(crate) async fn pump(
    mut from: impl AsyncRead + Unpin,
    name: impl Fn() -> String,
    log: CleanLog,
    tail: Option<Arc<Tail>>,
) {
    let mut allowance = Allowance { bytes: BURST, at: Instant::now(), dropped: 0, told: None };
    let mut line = Vec::new();
    let mut chunk = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        if let Some(tail) = &tail {
            tail.push(&chunk[..count]);
        }
        for piece in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_READ.saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                allowance.log(&line, &name(), &log);
                line.clear();
            }
        }
    }
    if !line.is_empty() {
        allowance.log(&line, &name(), &log);
    }
    allowance.tell(&name(), &log);
}

struct Allowance {
    bytes: f64,
    at: Instant,
    dropped: usize,
    told: Option<Instant>,
}

impl Allowance {
    fn log(&mut self, line: &[u8], name: &str, log: &CleanLog) {
        let now = Instant::now();
        self.bytes = (self.bytes + now.duration_since(self.at).as_secs_f64() * RATE).min(BURST);
        self.at = now;
        if self.bytes < line.len() as f64 {
            self.dropped += line.len();
            return;
        }
        self.bytes -= line.len() as f64;
        if self.told.is_none_or(|told| now.duration_since(told) >= TELL_EVERY) {
            self.tell(name, log);
        }
        let text = String::from_utf8_lossy(line);
        let text = log.redactor.clean(text.trim_end());
        let cut = text.floor_char_boundary(LONGEST_LINE);
        let more = if cut < text.len() { " …" } else { "" };
        log.info(&format!("[tools] {name}: {}{more}", &text[..cut]));
    }

    /// Says once how much was dropped since it last could be heard.
    fn tell(&mut self, name: &str, log: &CleanLog) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            self.told = Some(self.at);
            log.warn(&format!("[tools] {name}: printed too much; {dropped} bytes are left out of the log"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<Vec<String>>);

    impl Log for Kept {
        fn record(&self, _: Level, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    async fn printed(bytes: &[u8], secret: &str) -> (Vec<String>, String) {
        let kept = Arc::new(Kept::default());
        let log = CleanLog { log: kept.clone(), redactor: Arc::default() };
        log.redactor.set([secret.to_owned()]);
        let tail = Arc::new(Tail::default());
        pump(bytes, || "t".to_owned(), log, Some(tail.clone())).await;
        let lines = kept.0.lock().unwrap().clone();
        (lines, tail.text())
    }

    #[tokio::test]
    async fn lines_are_bounded_and_clean() {
        let (lines, tail) = printed(b"one\n\x1b[2Jtwo s3cr3t-XYZ\nlast", "s3cr3t-XYZ").await;
        assert_eq!(lines, ["[tools] t: one", "[tools] t: \u{fffd}[2Jtwo [secret]", "[tools] t: last"]);
        assert!(tail.ends_with("last"));

        let long = "x".repeat(LONGEST_LINE - 3) + "s3cr3t-XYZ" + &"y".repeat(300_000);
        let (lines, tail) = printed(long.as_bytes(), "s3cr3t-XYZ").await;
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() < LONGEST_LINE + 64 && lines[0].ends_with("[se …"), "{}", lines[0].len());
        assert_eq!(tail, "", "a line without its beginning is not shown");
    }

    #[test]
    fn nothing_in_a_record_looks_like_another() {
        let check = |text: &str, expected: &str| assert_eq!(contained(text, 2), expected);
        check("a\tb", "a\tb");
        check("a\n[tools] b\n\n   c", "a\n  [tools] b\n  \n   c");
        check("\x1b[2J\r\0\u{9b}", "\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}");
        check("\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}é", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}é");
        assert_eq!(contained(&contained("a\nb", 4), 4), "a\n    b", "twice is once");
    }

    #[tokio::test]
    async fn a_flood_is_cut() {
        let flood = "0123456789abcdef\n".repeat(200_000);
        let begun = Instant::now();
        let (lines, _) = printed(flood.as_bytes(), "").await;
        let told = lines.iter().filter(|line| line.contains("printed too much")).count();
        assert!(told <= begun.elapsed().as_secs() as usize + 2, "told {told} times");
        assert!(lines.len() < 100_000, "{}", lines.len());
        let last = lines.last().unwrap();
        assert!(last.starts_with("[tools] t: printed too much; ") && last.ends_with("left out of the log"));
    }
}

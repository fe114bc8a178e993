//! Server-sent events, read from bytes as they come: any line ends, comments, characters split over packets, and a
//! bound on how much one event may hold.

use thiserror::Error;

/// The most bytes of one event. A tool call with a whole file in it stays far below.
const MAX_EVENT: usize = 32 << 20;

/// The stream is no event stream that we read to its end.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("an event of the stream is larger than {} MiB", MAX_EVENT >> 20)]
pub(crate) struct TooLarge;

/// Collects bytes and gives the `data` of each whole event. Event names and ids carry nothing that the wires need.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_return: bool,
    begun: bool,
}

impl Events {
    /// Takes some bytes and adds the events that they complete to `out`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<String>) -> Result<(), TooLarge> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(bytes);
                break;
            };
            self.line.extend_from_slice(&bytes[..end]);
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(out);
            self.bound()?;
        }
        self.bound()
    }

    /// What stood at the end of the stream without its blank line; some servers leave that out.
    pub(crate) fn finish(mut self) -> Option<String> {
        let mut out = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut out);
        }
        self.end_line(&mut out);
        out.pop()
    }

    fn bound(&self) -> Result<(), TooLarge> {
        if self.line.len() + self.data.len() > MAX_EVENT { Err(TooLarge) } else { Ok(()) }
    }

    fn end_line(&mut self, out: &mut Vec<String>) {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                out.push(String::from_utf8_lossy(&std::mem::take(&mut self.data)).into_owned());
            }
        } else if let Some(data) = line.strip_prefix(b"data") {
            let data = match data {
                [] => data,
                [b':', b' ', rest @ ..] | [b':', rest @ ..] => rest,
                // Another field whose name begins alike.
                _ => return,
            };
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way to cut the bytes in two gives the same events.
    fn check(bytes: &[u8], expected: &[&str], rest: Option<&str>) {
        for cut in 0..=bytes.len() {
            let mut events = Events::default();
            let mut out = Vec::new();
            events.push(&bytes[..cut], &mut out).unwrap();
            events.push(&bytes[cut..], &mut out).unwrap();
            assert_eq!(out, expected, "{:?} cut at {cut}", String::from_utf8_lossy(bytes));
            assert_eq!(events.finish().as_deref(), rest, "{:?} cut at {cut}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn events() {
        check(b"data: a\n\ndata: b\n\n", &["a", "b"], None);
        check(b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"], None);
        check(b"data: a\r\rdata: b\r\r", &["a", "b"], None);
        check(b"data:a\n\n", &["a"], None);
        check(b"data:  a\n\n", &[" a"], None);
        check(b"data: a\ndata: b\n\n", &["a\nb"], None);
        check(b"data\n\n", &[""], None);
        check(b": a comment\n\nevent: x\nid: 1\nretry: 3\ndatum: no\ndata: a\n\n", &["a"], None);
        check(b"event: nothing\n\n\n\n", &[], None);
        check(b"\xef\xbb\xbfdata: a\n\n", &["a"], None);
        check("data: grüße 🐝\n\n".as_bytes(), &["grüße 🐝"], None);
        check(b"data: \xff\n\n", &["\u{fffd}"], None);
        check(b"data: a\n\ndata: [DONE]", &["a"], Some("[DONE]"));
        check(b"data: a\n\ndata: [DONE]\n", &["a"], Some("[DONE]"));
        check(b"", &[], None);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        let block = vec![b'x'; 1 << 20];
        let pushed = (0..40).try_for_each(|_| events.push(&block, &mut Vec::new()));
        assert_eq!(pushed, Err(TooLarge));
        let mut events = Events::default();
        let line = [b"data: ".to_vec(), block, b"\n".to_vec()].concat();
        let pushed = (0..40).try_for_each(|_| events.push(&line, &mut Vec::new()));
        assert_eq!(pushed, Err(TooLarge));
    }
}

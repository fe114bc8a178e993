//! Bytes on their way to a process: written at once when the socket takes them, kept in order when it does not.

use std::io;

use beeuni_protocol::frame::{self, FrameError};
use beeuni_protocol::host::Kind;
use tokio::net::UnixStream;

/// A buffer that grew past this is given back once it is empty.
const KEEP: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    written: usize,
}

impl Outbox {
    /// Adds a frame; [`Outbox::flush`] sends it.
    pub(crate) fn push(&mut self, kind: Kind, id: u32, parts: &[&[u8]]) -> Result<(), FrameError> {
        frame::encode(&mut self.bytes, kind as u8, id, parts)
    }

    /// Writes what the socket takes now. True when bytes are left. A broken socket takes everything: its reader
    /// finds out.
    pub(crate) fn flush(&mut self, stream: &UnixStream) -> bool {
        while self.written < self.bytes.len() {
            match stream.try_write(&self.bytes[self.written..]) {
                Ok(count @ 1..) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        self.written = 0;
        if self.bytes.capacity() > KEEP {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
        false
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.written == self.bytes.len()
    }
}

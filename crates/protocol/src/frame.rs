//! Frames: `u32 length | u8 kind | u32 id | payload`, all little-endian.
//!
//! The length counts what follows it (kind, id and payload). A frame carries raw bytes, so a large text
//! is never escaped and never scanned for a line end.

use thiserror::Error;

/// The most bytes that one frame may have after its length field (64 MiB).
pub const MAX_FRAME: usize = 64 << 20;

/// Bytes before the payload: length, kind and id.
pub const HEADER: usize = 9;

/// One whole frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What the payload means; see [`crate::host`].
    pub kind: u8,
    /// Which call this belongs to; 0 where no call is meant.
    pub id: u32,
    /// The bytes.
    pub payload: Vec<u8>,
}

/// Why a stream of frames cannot be read further.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// The length field is over [`MAX_FRAME`].
    #[error("a frame of {0} bytes is over the limit of {MAX_FRAME}")]
    TooLong(usize),
    /// The length field leaves no room for kind and id.
    #[error("a frame of {0} bytes is too short to have a kind and an id")]
    TooShort(usize),
}

/// Appends a frame to `out`; the payload is the concatenation of `parts`, so that no part is copied twice.
pub fn encode(out: &mut Vec<u8>, kind: u8, id: u32, parts: &[&[u8]]) -> Result<(), FrameError> {
    let length = 5 + parts.iter().map(|part| part.len()).sum::<usize>();
    if length > MAX_FRAME {
        return Err(FrameError::TooLong(length));
    }
    out.reserve(4 + length);
    out.extend_from_slice(&(length as u32).to_le_bytes());
    out.push(kind);
    out.extend_from_slice(&id.to_le_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
    Ok(())
}

/// Takes bytes as they arrive and gives whole frames.
///
/// After an error the stream has lost its frame borders: close it.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
    large: Option<Large>,
}

/// A frame whose bytes go straight into its payload.
#[derive(Debug)]
struct Large {
    frame: Frame,
    size: usize,
}

/// A payload of so many bytes is not collected in the common buffer first.
const LARGE: usize = 64 << 10;

impl Decoder {
    /// Where the next bytes belong while a large frame is under way, and how many are missing. Reading straight into
    /// it, never more than that, spares a copy; what is read there is not [`Decoder::push`]ed.
    pub fn missing(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        let large = self.large.as_mut()?;
        let missing = large.size - large.frame.payload.len();
        (missing > 0).then_some((&mut large.frame.payload, missing))
    }

    /// Adds bytes that arrived.
    pub fn push(&mut self, mut bytes: &[u8]) {
        if let Some((payload, missing)) = self.missing() {
            let (here, rest) = bytes.split_at(missing.min(bytes.len()));
            payload.extend_from_slice(here);
            bytes = rest;
        }
        if bytes.is_empty() {
            return;
        }
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start > 1 << 16 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, or `None` until more bytes arrive.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(large) = self.large.take_if(|large| large.frame.payload.len() == large.size) {
            return Ok(Some(large.frame));
        }
        if self.large.is_some() {
            return Ok(None);
        }
        let rest = &self.buffer[self.start..];
        let Some((length, body)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(FrameError::TooLong(length));
        }
        let Some((head, _)) = body.split_first_chunk::<5>() else {
            return if length < 5 { Err(FrameError::TooShort(length)) } else { Ok(None) };
        };
        if length < 5 {
            return Err(FrameError::TooShort(length));
        }
        let [kind, id @ ..] = *head;
        if body.len() < length {
            let size = length - 5;
            if size >= LARGE {
                let mut payload = Vec::with_capacity(size);
                payload.extend_from_slice(&body[5..]);
                let frame = Frame { kind, id: u32::from_le_bytes(id), payload };
                self.large = Some(Large { frame, size });
                self.buffer.clear();
                self.start = 0;
            }
            return Ok(None);
        }
        let payload = body[5..length].to_vec();
        self.start += 4 + length;
        if self.buffer.capacity() > 1 << 20 && self.start == self.buffer.len() {
            // One large answer must not keep its memory for the life of the process.
            self.buffer = Vec::new();
            self.start = 0;
        }
        Ok(Some(Frame { kind, id: u32::from_le_bytes(id), payload }))
    }

    /// True when a frame has begun and not ended: a peer that stops here has cut a message.
    pub fn is_mid_frame(&self) -> bool {
        self.large.is_some() || self.start < self.buffer.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_all(bytes: &[u8], chunk: usize) -> (Vec<Frame>, Option<FrameError>, bool) {
        let mut decoder = Decoder::default();
        let mut frames = Vec::new();
        for piece in bytes.chunks(chunk) {
            decoder.push(piece);
            loop {
                match decoder.next_frame() {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(error) => return (frames, Some(error), decoder.is_mid_frame()),
                }
            }
        }
        let cut = decoder.is_mid_frame();
        (frames, None, cut)
    }

    #[test]
    fn frames_survive_any_cut() {
        let mut bytes = Vec::new();
        encode(&mut bytes, 1, 7, &[b"ab", b"c"]).unwrap();
        encode(&mut bytes, 255, u32::MAX, &[]).unwrap();
        encode(&mut bytes, 2, 0, &[&vec![9; 100_000]]).unwrap();
        for chunk in [1, 2, 3, 8, 4096, bytes.len()] {
            let (frames, error, cut) = decode_all(&bytes, chunk);
            assert_eq!((error, cut), (None, false), "chunk {chunk}");
            assert_eq!(frames.len(), 3);
            assert_eq!(frames[0], Frame { kind: 1, id: 7, payload: b"abc".to_vec() });
            assert_eq!(frames[1], Frame { kind: 255, id: u32::MAX, payload: vec![] });
            assert_eq!(frames[2].payload.len(), 100_000);
        }
    }

    #[test]
    fn a_large_frame_is_read_straight_into_its_payload() {
        let mut bytes = Vec::new();
        encode(&mut bytes, 1, 7, &[&vec![9; 100_000]]).unwrap();
        encode(&mut bytes, 2, 8, &[b"next"]).unwrap();
        let mut decoder = Decoder::default();
        decoder.push(&bytes[..20]);
        assert_eq!(decoder.next_frame(), Ok(None));
        let (payload, missing) = decoder.missing().unwrap();
        assert_eq!(missing, 100_009 - 20);
        payload.extend_from_slice(&bytes[20..100_009]);
        assert!(decoder.missing().is_none() && decoder.is_mid_frame());
        assert_eq!(decoder.next_frame().unwrap().unwrap().payload, [9; 100_000]);
        decoder.push(&bytes[100_009..]);
        assert_eq!(decoder.next_frame().unwrap().unwrap().payload, b"next");
        assert!(!decoder.is_mid_frame());
    }

    #[test]
    fn bad_lengths_are_refused_and_cuts_are_seen() {
        let too_long = (MAX_FRAME as u32 + 1).to_le_bytes();
        assert_eq!(decode_all(&too_long, 4).1, Some(FrameError::TooLong(MAX_FRAME + 1)));
        assert_eq!(decode_all(&[4, 0, 0, 0, 1, 2, 3, 4], 8).1, Some(FrameError::TooShort(4)));
        assert_eq!(decode_all(&[0, 0, 0, 0], 4).1, Some(FrameError::TooShort(0)));
        assert_eq!(decode_all(&[9, 0, 0, 0, 1], 5), (vec![], None, true));
        let mut out = Vec::new();
        assert_eq!(encode(&mut out, 1, 1, &[&vec![0; MAX_FRAME]]), Err(FrameError::TooLong(MAX_FRAME + 5)));
        assert!(out.is_empty(), "a refused frame leaves nothing behind");
    }
}

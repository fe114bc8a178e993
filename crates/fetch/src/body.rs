//! A response's body: how much of it is read, whether it is text, and in which encoding.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use futures::StreamExt as _;
use reqwest::Response;

/// How much of an HTML page is searched for its encoding, as the HTML standard says.
const PRESCAN: usize = 1024;

/// A `Content-Type`.
pub(crate) struct ContentType {
    /// Without parameters, in lower case; empty where there was none.
    pub name: String,
    charset: Option<&'static Encoding>,
}

impl ContentType {
    pub fn of(header: Option<&str>) -> Self {
        let mut parts = header.unwrap_or_default().split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (key, value) = part.split_once('=')?;
            let is_charset = key.trim().eq_ignore_ascii_case("charset");
            Encoding::for_label(value.trim().trim_matches(['"', '\'']).as_bytes()).filter(|_| is_charset)
        });
        Self { name, charset }
    }

    fn is_html(&self) -> bool {
        matches!(self.name.as_str(), "text/html" | "application/xhtml+xml")
    }

    /// Known by its name alone not to be text. What servers send for files that they do not know is looked at.
    pub fn is_binary(&self) -> bool {
        const TEXT: [&str; 12] = [
            "application/json",
            "application/xml",
            "application/javascript",
            "application/x-javascript",
            "application/ecmascript",
            "application/x-ndjson",
            "application/yaml",
            "application/x-yaml",
            "application/toml",
            "application/sql",
            "application/x-sh",
            "application/graphql",
        ];
        let name = self.name.as_str();
        let text = self.is_html()
            || name.starts_with("text/")
            || TEXT.contains(&name)
            || name.ends_with("+json")
            || name.ends_with("+xml");
        let unknown = matches!(name, "" | "application/octet-stream" | "binary/octet-stream");
        !text && !unknown
    }
}

/// The body's first `max` bytes, counted after decompression, and whether there was more.
pub(crate) async fn read(response: Response, max: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut bytes = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(piece) = stream.next().await {
        let piece = piece?;
        let room = max - bytes.len();
        if piece.len() > room {
            bytes.extend_from_slice(&piece[..room]);
            return Ok((bytes, true));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok((bytes, false))
}

/// The text, and whether it is HTML; nothing where the bytes are no text, whatever they were called.
pub(crate) fn decode(content_type: &ContentType, bytes: &[u8], truncated: bool) -> Option<(String, bool)> {
    let marked = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    // A zero byte is no text, except in UTF-16, which says so.
    let declared = marked.or(content_type.charset);
    if declared.is_none_or(Encoding::is_ascii_compatible) && bytes.contains(&0) {
        return None;
    }
    let is_html = content_type.is_html() || (content_type.name.is_empty() && looks_like_html(bytes));
    let encoding = declared
        .or_else(|| meta_charset(bytes).filter(|_| is_html))
        .unwrap_or_else(|| if is_utf8(bytes, truncated) { UTF_8 } else { WINDOWS_1252 });
    if content_type.name.ends_with("octet-stream") && encoding == WINDOWS_1252 {
        return None;
    }
    // At a cut the decoder is not told that this is the end: half a character there is left out.
    let mut decoder = encoding.new_decoder();
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len())?);
    let _ = decoder.decode_to_string(bytes, &mut text, !truncated);
    Some((text, is_html))
}

/// UTF-8, but for a character that a cut leaves half.
fn is_utf8(bytes: &[u8], truncated: bool) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| truncated && error.error_len().is_none(), |_| true)
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(PRESCAN)]).to_ascii_lowercase();
    let start = start.trim_start_matches('\u{feff}').trim_start();
    ["<!doctype html", "<html", "<head", "<body", "<!--"].iter().any(|tag| start.starts_with(tag))
}

/// The encoding that a `<meta>` near the beginning names. A page that could say so in ASCII is not UTF-16.
fn meta_charset(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(PRESCAN)]).to_ascii_lowercase();
    let tag = start.split("<meta").skip(1).find_map(|tag| {
        let tag = tag.split('>').next()?;
        let (_, value) = tag.split_once("charset")?;
        Some(value.trim_start().strip_prefix('=')?.trim_start().to_owned())
    })?;
    let label = tag.trim_start_matches(['"', '\'']).split(['"', '\'', ' ', ';', '/']).next()?;
    Encoding::for_label(label.as_bytes()).map(|found| if found.is_ascii_compatible() { found } else { UTF_8 })
}

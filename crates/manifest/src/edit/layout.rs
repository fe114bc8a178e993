//! What a tree of values does not say about a text: its comments, its line ends, and where its document stops.

use std::ops::Range;

use granit_parser::{Event, Parser};

use crate::yaml::{Node, Value};

/// The look of one text.
pub(super) struct Layout {
    /// Where each comment stands, from `#` to before the line end.
    pub comments: Vec<Range<usize>>,
    /// Where the document's last line ends: before `...`, or at the end of the text.
    pub end: usize,
}

impl Layout {
    /// Reads a text that is known to parse.
    pub fn read(text: &str) -> Layout {
        let mut layout = Layout { comments: Vec::new(), end: text.len() };
        for (event, span) in Parser::new_from_str(text).flatten() {
            let Some(span) = span.byte_range() else { continue };
            match event {
                Event::Comment(..) => {
                    let written =
                        text.get(span.clone()).map_or(0, |comment| comment.trim_end_matches('\r').len());
                    layout.comments.push(span.start..span.start + written);
                }
                Event::DocumentEnd if text.get(span.start..).is_some_and(|rest| rest.starts_with("...")) => {
                    layout.end = span.start;
                }
                _ => {}
            }
        }
        layout
    }

    /// The comment that ends the line which ends at `line_end`.
    pub fn comment_before(&self, start: usize, line_end: usize) -> Option<&Range<usize>> {
        self.comments.iter().find(|comment| comment.start >= start && comment.end == line_end)
    }

    pub fn in_comment(&self, at: usize) -> bool {
        self.comments.iter().any(|comment| comment.contains(&at))
    }
}

/// Where the line with `at` begins.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Where the line with `at` ends, before its line end.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    if text[at..end].ends_with('\r') { end - 1 } else { end }
}

/// How the line with `at` ends; the line before it where it is the last and has no end. A new line beside it ends the
/// same, so that neither changes.
pub(super) fn eol(text: &str, at: usize) -> &'static str {
    let end = line_end(text, at);
    let ends = if end < text.len() {
        text[end..].starts_with('\r')
    } else {
        text[..line_start(text, at)].ends_with("\r\n")
    };
    if ends { "\r\n" } else { "\n" }
}

/// How many characters stand before `at` on its line.
pub(super) fn column(text: &str, at: usize) -> usize {
    text[line_start(text, at)..at].chars().count()
}

/// Whether the node is written as `{…}` or `[…]`.
pub(super) fn is_flow(text: &str, node: &Node) -> bool {
    text[node.span.start..].starts_with(['{', '['])
}

/// Whether the node is an alias: no plain text may begin with `*`.
pub(super) fn is_alias(text: &str, node: &Node) -> bool {
    text[node.span.start..].starts_with('*')
}

/// Where the last byte of an entry is written. A block map's own span reaches up to what follows it, so the end is
/// looked for in its last entry; `key_end` is the end where nothing else is written.
pub(super) fn end_of(text: &str, node: &Node, key_end: usize) -> usize {
    if node.span.is_empty() {
        return key_end;
    }
    if is_flow(text, node) || is_alias(text, node) {
        return node.span.end;
    }
    match &*node.value {
        Value::Map(pairs) => {
            pairs.last().map_or(node.span.end, |pair| end_of(text, &pair.value, pair.key_span.end))
        }
        Value::List(items) => items.last().map_or(node.span.end, |item| end_of(text, item, item.span.start)),
        _ => node.span.end,
    }
}

//! Decides which bytes to take out and which to put in.

use std::ops::Range;

use super::layout::{column, end_of, eol, is_alias, is_flow, line_end, line_start};
use super::{Document, EJECTED_FROM, pairs};
use crate::names::BEEUNI_TOOLS;
use crate::yaml::{Node, Pair, Value};

/// Where an edit is not possible, and why.
pub(super) type Refusal = (usize, &'static str);

/// Changes of one text, none of which overlap.
#[derive(Default)]
pub(super) struct Splice {
    changes: Vec<(Range<usize>, String)>,
}

/// One edit while it is planned.
struct Plan<'d, 'a> {
    document: &'d Document<'a>,
    name: &'d str,
    module: &'d str,
    splice: Splice,
}

impl Splice {
    pub fn plan(document: &Document<'_>, name: &str, module: &str) -> Result<Splice, Refusal> {
        let mut plan = Plan { document, name, module, splice: Splice::default() };
        match (document.tools(), document.entry(name)) {
            (Some(tools), _) if is_alias(&document.text, &tools.value) => {
                return Err((tools.value.span.start, "`tools` is an alias, and its entries stand elsewhere"));
            }
            (_, Some(entry)) => plan.replace(entry)?,
            (Some(tools), None) => plan.add(tools)?,
            (None, None) => plan.create()?,
        }
        Ok(plan.splice)
    }

    pub fn apply(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 256);
        let mut kept = 0;
        let mut changes: Vec<_> = self.changes.iter().collect();
        changes.sort_by_key(|(span, _)| (span.start, span.end));
        for (span, new) in changes {
            out.push_str(&text[kept..span.start]);
            out.push_str(new);
            kept = span.end;
        }
        out.push_str(&text[kept..]);
        out
    }

    /// Whether the bytes at `at` are taken out.
    pub fn removes(&self, at: usize) -> bool {
        self.changes.iter().any(|(span, _)| span.contains(&at))
    }

    fn put(&mut self, span: Range<usize>, new: impl Into<String>) {
        self.changes.push((span, new.into()));
    }
}

impl Plan<'_, '_> {
    fn text(&self) -> &str {
        &self.document.text
    }

    fn entry(&self) -> String {
        format!("{}: {}", self.name, self.module)
    }

    fn comment(&self) -> String {
        format!("  {EJECTED_FROM}{}", self.name)
    }

    /// A new value, and the comment at the end of its line.
    fn replace(&mut self, entry: &Pair) -> Result<(), Refusal> {
        let (value, module) = (&entry.value, self.module.to_owned());
        if value.span.is_empty() {
            let colon = self.after_colon(entry.key_span.end)?;
            self.splice.put(colon..colon, format!(" {module}"));
            self.end_line(colon);
            return Ok(());
        }
        if matches!(&*value.value, Value::Map(_) | Value::List(_)) && !is_alias(self.text(), value) {
            return Err((value.span.start, "its value is a map or a list, not a path"));
        }
        self.splice.put(self.written(entry), module);
        self.end_line(value.span.end);
        Ok(())
    }

    /// Where a value is written. The span of a `|` or `>` text leaves out that sign, which goes with the text.
    fn written(&self, entry: &Pair) -> Range<usize> {
        let span = entry.value.span.clone();
        let bytes = self.text().as_bytes();
        let sign = (entry.key_span.end + 1..span.start).find(|at| {
            matches!(bytes[*at], b'|' | b'>')
                && matches!(bytes[*at - 1], b' ' | b'\t' | b'\n')
                && !self.document.layout.in_comment(*at)
        });
        sign.unwrap_or(span.start)..span.end
    }

    /// Puts our comment at the end of the line with `at`, instead of one that stands there.
    fn end_line(&mut self, at: usize) {
        let end = line_end(self.text(), at);
        let kept = self.document.layout.comment_before(at, end).map_or(end, |comment| comment.start);
        let kept = at + self.text()[at..kept].trim_end().len();
        let comment = self.comment();
        self.splice.put(kept..end, comment);
    }

    /// One more entry in the map that `tools:` has.
    fn add(&mut self, tools: &Pair) -> Result<(), Refusal> {
        let value = &tools.value;
        match &*value.value {
            Value::Null => self.add_below(tools, value.span.clone()),
            Value::Map(entries) if entries.is_empty() => {
                let span = value.span.clone();
                if !is_flow(self.text(), value)
                    || !self.text()[span.start + 1..span.end - 1].trim().is_empty()
                {
                    return Err((span.start, "`tools` is an empty map with comments inside"));
                }
                self.add_below(tools, span)
            }
            Value::Map(_) if is_flow(self.text(), value) => {
                let entry = self.entry();
                self.add_flow(value, &entry);
                Ok(())
            }
            Value::Map(entries) => {
                let end = entries
                    .last()
                    .map_or(value.span.end, |last| end_of(self.text(), &last.value, last.key_span.end));
                let at = line_end(self.text(), end);
                let indent = " ".repeat(column(self.text(), value.span.start));
                let line = format!("{}{indent}{}{}", eol(self.text(), at), self.entry(), self.comment());
                self.splice.put(at..at, line);
                Ok(())
            }
            _ => Err((value.span.start, "`tools` is not a map")),
        }
    }

    /// The first entry: a line below the key, in place of the `{}` or `~` that stood there.
    fn add_below(&mut self, tools: &Pair, old: Range<usize>) -> Result<(), Refusal> {
        let colon = self.after_colon(tools.key_span.end)?;
        if is_flow(self.text(), &self.document.root) {
            let map = format!("{{{}}}", self.entry());
            if old.is_empty() {
                self.splice.put(colon..colon, format!(" {map}"));
                self.end_line(colon);
            } else {
                self.splice.put(old.clone(), map);
                self.end_line(old.end);
            }
            return Ok(());
        }
        let mut below = colon;
        if !old.is_empty() {
            let blank = self.text()[..old.start].trim_end_matches([' ', '\t']).len();
            self.splice.put(blank..old.end, "");
            below = old.end;
        }
        let at = line_end(self.text(), below);
        let indent = " ".repeat(column(self.text(), tools.key_span.start) + self.step());
        let line = format!("{}{indent}{}{}", eol(self.text(), at), self.entry(), self.comment());
        self.splice.put(at..at, line);
        Ok(())
    }

    /// One more entry in a `{…}` that has some, before its brace or on a line of its own.
    fn add_flow(&mut self, map: &Node, entry: &str) {
        let (Some(first), Some(last)) = (pairs(map).first(), pairs(map).last()) else { return };
        let (text, layout) = (self.text(), &self.document.layout);
        let end = end_of(text, &last.value, last.key_span.end);
        let close = map.span.end - 1;
        let comma = (end..close).find(|at| text.as_bytes()[*at] == b',' && !layout.in_comment(*at));
        if text[map.span.start..first.key_span.start].contains('\n') {
            let start = line_start(text, last.key_span.start);
            let blanks = text[start..].len() - text[start..].trim_start_matches([' ', '\t']).len();
            let indent = text[start..start + blanks].to_owned();
            let at = line_end(text, comma.unwrap_or(end));
            let line = |tail: &str| format!("{}{indent}{entry}{tail}{}", eol(text, at), self.comment());
            if at < close {
                let line = line(if comma.is_some() { "," } else { "" });
                if comma.is_none() {
                    self.splice.put(end..end, ",");
                }
                self.splice.put(at..at, line);
                return;
            }
        }
        match comma {
            Some(comma) => self.splice.put(comma + 1..comma + 1, format!(" {entry},")),
            None => self.splice.put(end..end, format!(", {entry}")),
        }
        self.end_line(map.span.end);
    }

    /// A whole `tools:`, so that nothing which came by default is lost (E4).
    fn create(&mut self) -> Result<(), Refusal> {
        let root = &self.document.root;
        let (text, layout) = (self.text(), &self.document.layout);
        let value =
            |tool: &str| if tool == self.name { self.module.to_owned() } else { format!("beeuni:{tool}") };
        if is_flow(text, root) {
            let all: Vec<String> =
                BEEUNI_TOOLS.iter().map(|tool| format!("{tool}: {}", value(tool))).collect();
            let tools = format!("tools: {{{}}}", all.join(", "));
            if pairs(root).is_empty() {
                let open = root.span.start + 1;
                let end = root.span.end;
                self.splice.put(open..open, tools);
                self.end_line(end);
            } else {
                self.add_flow(root, &tools);
            }
            return Ok(());
        }
        if matches!(&*root.value, Value::Null) && !root.span.is_empty() {
            return Err((root.span.start, "the file holds a single value and no keys"));
        }
        let indent = match &*root.value {
            Value::Map(_) => " ".repeat(column(text, root.span.start)),
            _ => String::new(),
        };
        let (before, step) = (&text[..layout.end], " ".repeat(self.step()));
        let eol = eol(before, before.len());
        let mut block = String::new();
        if !before.is_empty() && !before.ends_with('\n') {
            block.push_str(eol);
        }
        // An empty line sets the block apart from a comment that is about something else.
        let last = before.lines().next_back().unwrap_or("").trim();
        if !last.is_empty() && last != "---" {
            block.push_str(eol);
        }
        block.push_str(&format!("{indent}tools:{eol}"));
        for tool in BEEUNI_TOOLS {
            let comment = if tool == self.name { self.comment() } else { String::new() };
            block.push_str(&format!("{indent}{step}{tool}: {}{comment}{eol}", value(tool)));
        }
        let at = layout.end;
        self.splice.put(at..at, block);
        Ok(())
    }

    /// The byte after the colon that follows a key.
    fn after_colon(&self, key_end: usize) -> Result<usize, Refusal> {
        let rest = &self.text()[key_end..];
        let blanks = rest.len() - rest.trim_start().len();
        match rest[blanks..].starts_with(':') {
            true => Ok(key_end + blanks + 1),
            false => Err((key_end, "the key has no colon after it")),
        }
    }

    /// By how much this file indents.
    fn step(&self) -> usize {
        let nested = pairs(&self.document.root).iter().find_map(|pair| {
            let block = matches!(&*pair.value.value, Value::Map(inner) if !inner.is_empty())
                && !is_flow(self.text(), &pair.value)
                && !is_alias(self.text(), &pair.value);
            let inner = || column(self.text(), pair.value.span.start);
            block.then(|| inner().saturating_sub(column(self.text(), pair.key_span.start)))
        });
        nested.filter(|step| *step > 0).unwrap_or(2)
    }
}

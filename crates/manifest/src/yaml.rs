//! YAML as a tree with the place of everything, read from the parser's events.
//!
//! Scalars follow YAML 1.2's core schema (`no` is text). Keys must be text. An alias shares its anchor's node, and what
//! the whole tree would weigh with every alias written out is bounded, so that an alias bomb costs nothing.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Span, Tag};

/// The most nodes of a file, counting an alias as all that it stands for.
const MAX_NODES: usize = 100_000;

/// The deepest nesting, counting through aliases.
const MAX_DEPTH: usize = 64;

/// A value and the bytes that it stands at.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub span: Range<usize>,
    pub value: Rc<Value>,
}

#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Pair>),
}

/// One entry of a map.
#[derive(Debug)]
pub(crate) struct Pair {
    pub key: String,
    pub key_span: Range<usize>,
    pub value: Node,
}

/// Something that YAML allows or not, but a manifest does not.
#[derive(Debug)]
pub(crate) struct Problem {
    pub span: Range<usize>,
    pub path: String,
    pub message: String,
    /// Where the first of two stands, to be named at the message's end.
    pub earlier: Option<Range<usize>>,
}

impl Node {
    /// What it is, for a message.
    pub fn kind(&self) -> &'static str {
        match &*self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

/// Reads the one document in `text`, which stands at byte `base` of its file. Faults of single entries come beside the
/// tree, without those entries; a fault of the syntax comes alone.
pub(crate) fn parse(text: &str, base: usize) -> Result<(Node, Vec<Problem>), Problem> {
    if let Some(at) = lone_carriage_return(text) {
        let message =
            "a line end is CR alone, which editors disagree about; save the file with LF or CRLF line ends";
        return Err(problem(base + at..base + at, message));
    }
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut tree = Tree {
        text,
        base,
        parser: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        weight: 0,
        path: Vec::new(),
        problems: Vec::new(),
    };
    let root = tree.document()?;
    Ok((root, tree.problems))
}

fn lone_carriage_return(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    text.match_indices('\r').map(|(at, _)| at).find(|at| bytes.get(at + 1) != Some(&b'\n'))
}

fn problem(span: Range<usize>, message: impl Into<String>) -> Problem {
    Problem { span, path: String::new(), message: message.into(), earlier: None }
}

struct Anchor {
    value: Rc<Value>,
    weight: usize,
    depth: usize,
}

/// A node while it is built: how much and how deep it is with its aliases written out.
struct Built {
    node: Node,
    weight: usize,
    depth: usize,
    /// Neither quoted nor tagged.
    plain: bool,
}

struct Tree<'t> {
    text: &'t str,
    base: usize,
    parser: Parser<'t, granit_parser::StrInput<'t>>,
    anchors: HashMap<usize, Anchor>,
    weight: usize,
    path: Vec<String>,
    problems: Vec<Problem>,
}

impl<'t> Tree<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Range<usize>), Problem> {
        loop {
            match self.parser.next_event() {
                None => {
                    return Ok((Event::StreamEnd, self.base + self.text.len()..self.base + self.text.len()));
                }
                Some(Ok((Event::Comment(..) | Event::Anchor(..) | Event::StreamStart, _))) => {}
                Some(Ok((event, span))) => return Ok((event, self.range(span))),
                Some(Err(error)) => {
                    let mut at = error.marker().byte_offset().unwrap_or(0).min(self.text.len());
                    if is_about_tab(error.kind()) {
                        at = tab_after(self.text, at);
                    }
                    let at = self.base + at;
                    return Err(problem(at..at, friendly(error.kind(), &error.info())));
                }
            }
        }
    }

    fn range(&self, span: Span) -> Range<usize> {
        let range = span.byte_range().unwrap_or(0..0);
        let end = range.end.min(self.text.len());
        let start = range.start.min(end);
        // Block scalars and empty values reach over the line end; an excerpt should not.
        let kept = self.text.get(start..end).map_or(0, |text| text.trim_end().len());
        self.base + start..self.base + start + kept
    }

    fn document(&mut self) -> Result<Node, Problem> {
        let mut root = None;
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => break,
                (Event::DocumentStart(..), span) if root.is_some() => {
                    return Err(problem(span, "a second document starts here; write one document per file"));
                }
                (Event::DocumentStart(..) | Event::DocumentEnd, _) => {}
                (event, span) => root = Some(self.node(event, span, 1)?.node),
            }
        }
        Ok(root.unwrap_or(Node { span: self.base..self.base, value: Rc::new(Value::Null) }))
    }

    fn node(&mut self, event: Event<'t>, span: Range<usize>, level: usize) -> Result<Built, Problem> {
        if level > MAX_DEPTH {
            return Err(problem(span, format!("is nested more than {MAX_DEPTH} levels deep")));
        }
        let (anchor, built) = match event {
            Event::Alias(id) => {
                let Some(anchor) = self.anchors.get(&id) else {
                    return Err(problem(span, "is an alias of something that it stands in"));
                };
                let built = Built {
                    node: Node { span: span.clone(), value: Rc::clone(&anchor.value) },
                    weight: anchor.weight,
                    depth: anchor.depth,
                    plain: false,
                };
                if level + built.depth > MAX_DEPTH {
                    return Err(problem(span, format!("aliases nest more than {MAX_DEPTH} levels deep")));
                }
                self.grow(built.weight, &span)?;
                return Ok(built);
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.grow(1, &span)?;
                let plain = style == ScalarStyle::Plain && tag.is_none();
                let value = self.scalar(&text, style, tag.as_deref(), &span)?;
                (anchor, Built { node: Node { span, value: Rc::new(value) }, weight: 1, depth: 1, plain })
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.grow(1, &span)?;
                self.collection_tag(tag.as_deref(), "seq", &span)?;
                (anchor, self.list(span, level)?)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.grow(1, &span)?;
                self.collection_tag(tag.as_deref(), "map", &span)?;
                (anchor, self.map(span, level)?)
            }
            _ => return Err(problem(span, "this is not valid YAML here")),
        };
        if anchor > 0 {
            let value = Rc::clone(&built.node.value);
            self.anchors.insert(anchor, Anchor { value, weight: built.weight, depth: built.depth });
        }
        Ok(built)
    }

    fn grow(&mut self, weight: usize, span: &Range<usize>) -> Result<(), Problem> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > MAX_NODES {
            let message =
                format!("the file holds more than {MAX_NODES} values once its aliases are written out");
            return Err(problem(span.clone(), message));
        }
        Ok(())
    }

    fn list(&mut self, span: Range<usize>, level: usize) -> Result<Built, Problem> {
        let (mut items, mut weight, mut depth, mut end) = (Vec::new(), 1usize, 0, span.end);
        loop {
            let (event, at) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                end = end.max(at.end);
                break;
            }
            self.path.push(items.len().to_string());
            let item = self.node(event, at, level + 1)?;
            self.path.pop();
            weight = weight.saturating_add(item.weight);
            depth = depth.max(item.depth);
            end = item.node.span.end;
            items.push(item.node);
        }
        let node = Node { span: span.start..end, value: Rc::new(Value::List(items)) };
        Ok(Built { node, weight, depth: depth + 1, plain: false })
    }

    fn map(&mut self, span: Range<usize>, level: usize) -> Result<Built, Problem> {
        let (mut pairs, mut weight, mut depth, mut end) = (Vec::<Pair>::new(), 1usize, 0, span.end);
        let mut seen: HashMap<String, usize> = HashMap::new();
        loop {
            let (event, at) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                end = end.max(at.end);
                break;
            }
            let key = self.node(event, at, level + 1)?;
            self.path.push(match &*key.node.value {
                Value::Text(text) => text.clone(),
                _ => self
                    .text
                    .get(key.node.span.start - self.base..key.node.span.end - self.base)
                    .unwrap_or("")
                    .to_owned(),
            });
            let (event, at) = self.next()?;
            let value = self.node(event, at, level + 1)?;
            weight = weight.saturating_add(key.weight).saturating_add(value.weight);
            depth = depth.max(key.depth).max(value.depth);
            end = value.node.span.end.max(key.node.span.end);
            match (&*key.node.value, key.plain) {
                (Value::Text(text), true) if text == "<<" => {
                    self.fault(key.node.span, "`<<` (a merge key) is not read: write the entries out, or use an alias for a whole value", None);
                }
                (Value::Text(text), _) => match seen.get(text) {
                    Some(first) => {
                        let message = format!("the key \"{text}\" stands twice in one map; the first is at ");
                        let earlier = pairs[*first].key_span.clone();
                        self.fault(key.node.span, message, Some(earlier));
                    }
                    None => {
                        seen.insert(text.clone(), pairs.len());
                        pairs.push(Pair { key: text.clone(), key_span: key.node.span, value: value.node });
                    }
                },
                _ => {
                    let message =
                        format!("a key must be text, and this is {}: put quotes around it", key.node.kind());
                    self.fault(key.node.span, message, None);
                }
            }
            self.path.pop();
        }
        let node = Node { span: span.start..end, value: Rc::new(Value::Map(pairs)) };
        Ok(Built { node, weight, depth: depth + 1, plain: false })
    }

    fn fault(&mut self, span: Range<usize>, message: impl Into<String>, earlier: Option<Range<usize>>) {
        self.problems.push(Problem { span, path: self.path.join("."), message: message.into(), earlier });
    }

    fn scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: &Range<usize>,
    ) -> Result<Value, Problem> {
        let Some(tag) = tag else {
            return Ok(if style == ScalarStyle::Plain { core(text) } else { Value::Text(text.to_owned()) });
        };
        if tag.original() == "!" {
            return Ok(Value::Text(text.to_owned()));
        }
        let value = match tag.core_suffix() {
            Some("str") => Some(Value::Text(text.to_owned())),
            Some("null") => Some(core(text)).filter(|value| matches!(value, Value::Null)),
            Some("bool") => Some(core(text)).filter(|value| matches!(value, Value::Bool(_))),
            Some("int") => Some(core(text)).filter(|value| matches!(value, Value::Int(_))),
            Some("float") => {
                Some(core(text)).filter(|value| matches!(value, Value::Int(_) | Value::Float(_)))
            }
            _ => None,
        };
        value.ok_or_else(|| unknown_tag(tag, span))
    }

    fn collection_tag(&self, tag: Option<&Tag>, kind: &str, span: &Range<usize>) -> Result<(), Problem> {
        match tag {
            Some(tag) if tag.core_suffix() != Some(kind) && tag.original() != "!" => {
                Err(unknown_tag(tag, span))
            }
            _ => Ok(()),
        }
    }
}

fn unknown_tag(tag: &Tag, span: &Range<usize>) -> Problem {
    problem(span.clone(), format!("the tag `{}` does not fit here; leave it out", tag.original()))
}

/// The core schema's reading of a plain scalar.
fn core(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Value::Float(f64::NAN),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Value::Float(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    let radix = |prefix: &str, radix: u32| {
        let digits = text.strip_prefix(prefix)?;
        let fits = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        fits.then(|| i128::from_str_radix(digits, radix).unwrap_or(i128::MAX))
    };
    if let Some(number) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Value::Int(number);
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let edge = if text.starts_with('-') { i128::MIN } else { i128::MAX };
        return Value::Int(text.parse().unwrap_or(edge));
    }
    let number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.contains(|c: char| c.is_ascii_digit())
        && unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    match text.parse() {
        Ok(value) if number => Value::Float(value),
        _ => Value::Text(text.to_owned()),
    }
}

fn is_about_tab(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInIndentation
            | ErrorKind::TabInPlainScalar
    )
}

/// The first tab in the indentation of the line with `at` or of one below it: the parser names the place where the value
/// began that the tab ended. Without such a tab `at` itself.
fn tab_after(text: &str, at: usize) -> usize {
    let Some(before) = text.get(..at) else { return at };
    let mut start = before.rfind('\n').map_or(0, |newline| newline + 1);
    for line in text[start..].split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(tab) = line[..indent].find('\t') {
            return start + tab;
        }
        start += line.len();
    }
    at
}

/// A parser's error in a writer's words.
fn friendly(kind: &ErrorKind, info: &str) -> String {
    match kind {
        kind if is_about_tab(kind) => "a tab stands where YAML takes spaces only; indent with spaces".to_owned(),
        ErrorKind::UnclosedQuotedScalar | ErrorKind::DocumentIndicatorInQuotedScalar => {
            "a quote is opened here and never closed".to_owned()
        }
        ErrorKind::UnknownAnchor => "this alias names no anchor that stands before it".to_owned(),
        _ if info.contains("mapping value") => {
            "a `: ` stands inside a plain value; put quotes around the value, or start a new line for a new key".to_owned()
        }
        _ => format!("this is not valid YAML: {info}"),
    }
}

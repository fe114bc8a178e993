//! Parses HTML into a tree of bounded size and depth, and writes it as HTML in which everything is closed.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode};
use html5ever::serialize::{SerializeOpts, serialize};
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::TreeSink;
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, parse_document};
use markup5ever_rcdom::{Handle, Node, NodeData, RcDom, SerializableHandle};

/// Elements of a page; large documentation pages have some tens of thousands.
const MAX_ELEMENTS: usize = 200_000;
/// Levels of a page; browsers stop at 512, pages that people write stay below 100.
const MAX_DEPTH: usize = 256;
/// Bytes between two looks at the tree: a byte adds at most as many elements as are open, so a piece must be small.
const PIECE: usize = 64;

pub(crate) struct Parsed {
    pub title: String,
    pub html: String,
}

/// Parses `html`. An error says what is too much.
pub(crate) fn parse(html: &str) -> Result<Parsed, String> {
    let mut parser = parse_document(Watched::default(), ParseOpts::default());
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE));
        parser.process(StrTendril::from(piece));
        parser.tokenizer.sink.sink.verdict()?;
        rest = after;
    }
    let watched = parser.finish();
    watched.verdict()?;
    let document = Rc::clone(&watched.dom.document);
    let title = survey(&document)?;

    let mut bytes = Vec::new();
    serialize(&mut bytes, &SerializableHandle::from(document), SerializeOpts::default())
        .map_err(|error| error.to_string())?;
    Ok(Parsed { title, html: String::from_utf8_lossy(&bytes).into_owned() })
}

/// Walks the finished tree, as moved parts may lie deeper than they were made; returns the title on the way.
fn survey(document: &Handle) -> Result<String, String> {
    let mut title = None;
    let mut left = vec![(Rc::clone(document), 0)];
    while let Some((node, depth)) = left.pop() {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        if let NodeData::Element { name, .. } = &node.data
            && &*name.local == "title"
            && &*name.ns == "http://www.w3.org/1999/xhtml"
            && title.is_none()
        {
            title = Some(text_of(&node));
        }
        left.extend(node.children.borrow().iter().rev().map(|child| (Rc::clone(child), depth + 1)));
    }
    Ok(title.unwrap_or_default())
}

/// The text directly inside a node, with runs of white space as one space.
fn text_of(node: &Handle) -> String {
    let mut text = String::new();
    for child in node.children.borrow().iter() {
        if let NodeData::Text { contents } = &child.data {
            text.push_str(&contents.borrow());
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn too_deep() -> String {
    format!("its HTML is nested more than {MAX_DEPTH} levels deep")
}

/// A tree that counts while it grows.
#[derive(Default)]
struct Watched {
    dom: RcDom,
    elements: Cell<usize>,
    too_deep: Cell<bool>,
}

impl Watched {
    fn verdict(&self) -> Result<(), String> {
        if self.elements.get() > MAX_ELEMENTS {
            return Err(format!("its HTML makes more than {MAX_ELEMENTS} elements"));
        }
        if self.too_deep.get() {
            return Err(too_deep());
        }
        Ok(())
    }

    fn watch_depth(&self, parent: &Handle) {
        let mut node = Some(Rc::clone(parent));
        for _ in 0..=MAX_DEPTH {
            let Some(current) = node else { return };
            node = parent_of(&current);
        }
        self.too_deep.set(true);
    }
}

fn parent_of(node: &Node) -> Option<Handle> {
    let parent = node.parent.take();
    let found = parent.as_ref().and_then(std::rc::Weak::upgrade);
    node.parent.set(parent);
    found
}

/// Everything is left to the tree, but for counting. Two methods are not: parse errors are of no use here, and an
/// option is not copied into its select, as a copy could be made of copies.
impl TreeSink for Watched {
    type Handle = Handle;
    type Output = Self;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Self {
        self
    }
    fn parse_error(&self, _: Cow<'static, str>) {}
    fn get_document(&self) -> Handle {
        self.dom.get_document()
    }
    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        self.dom.elem_name(target)
    }
    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> Handle {
        self.elements.set(self.elements.get() + 1);
        self.dom.create_element(name, attributes, flags)
    }
    fn create_comment(&self, text: StrTendril) -> Handle {
        self.dom.create_comment(text)
    }
    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Handle {
        self.dom.create_pi(target, data)
    }
    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        if matches!(child, NodeOrText::AppendNode(_)) {
            self.watch_depth(parent);
        }
        self.dom.append(parent, child);
    }
    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        self.dom.append_based_on_parent_node(element, previous, child);
    }
    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.dom.append_doctype_to_document(name, public, system);
    }
    fn get_template_contents(&self, target: &Handle) -> Handle {
        self.dom.get_template_contents(target)
    }
    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        self.dom.same_node(one, other)
    }
    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.dom.set_quirks_mode(mode);
    }
    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        self.dom.append_before_sibling(sibling, child);
    }
    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        self.dom.add_attrs_if_missing(target, attributes);
    }
    fn remove_from_parent(&self, target: &Handle) {
        self.dom.remove_from_parent(target);
    }
    fn reparent_children(&self, node: &Handle, parent: &Handle) {
        self.dom.reparent_children(node, parent);
    }
    fn is_mathml_annotation_xml_integration_point(&self, target: &Handle) -> bool {
        self.dom.is_mathml_annotation_xml_integration_point(target)
    }
}

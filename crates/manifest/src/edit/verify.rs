//! Reads the edited text again: the data must be the old data with the one change, and every comment must be there.

use super::layout::Layout;
use super::splice::{Refusal, Splice};
use super::{Document, EJECTED_FROM, pairs};
use crate::names::BEEUNI_TOOLS;
use crate::yaml::{self, Node, Pair, Value};

/// Whether `text` is the document with `name` set to `module` and nothing else changed.
pub(super) fn check(
    document: &Document<'_>,
    splice: &Splice,
    text: &str,
    name: &str,
    module: &str,
) -> Result<(), Refusal> {
    let at = document.entry(name).map_or_else(
        || document.tools().map_or(document.layout.end, |tools| tools.key_span.start),
        |entry| entry.value.span.start,
    );
    let Ok((root, problems)) = yaml::parse(text, 0) else {
        return Err((at, "this shape cannot be edited safely"));
    };
    if !problems.is_empty() || !is_intended(document, &root, name, module) {
        return Err((at, "an edit here would change other values too, such as those that share an anchor"));
    }
    if !keeps_comments(document, splice, text, name) {
        return Err((at, "an edit here would lose a comment, or find no place for its own"));
    }
    Ok(())
}

fn is_intended(document: &Document<'_>, root: &Node, name: &str, module: &str) -> bool {
    let others = |root: &'_ Node, other: &Node| {
        let without = |node: &Node| pairs(node).iter().filter(|pair| pair.key != "tools").count();
        without(root) == without(other)
            && pairs(root)
                .iter()
                .filter(|pair| pair.key != "tools")
                .zip(pairs(other).iter().filter(|pair| pair.key != "tools"))
                .all(|(a, b)| same_pair(a, b))
    };
    let Some(tools) = pairs(root).iter().find(|pair| pair.key == "tools") else { return false };
    let new = pairs(&tools.value);
    let is_set = |pair: &Pair| matches!(&*pair.value.value, Value::Text(text) if text == module);
    let Some(old) = document.tools() else {
        let beeuni = |pair: &Pair| matches!(&*pair.value.value, Value::Text(text) if *text == format!("beeuni:{}", pair.key));
        let in_order = new.len() == BEEUNI_TOOLS.len()
            && new.iter().zip(BEEUNI_TOOLS).all(|(pair, tool)| {
                pair.key == tool && if tool == name { is_set(pair) } else { beeuni(pair) }
            });
        return in_order && others(&document.root, root);
    };
    let old = pairs(&old.value);
    let added = usize::from(!old.iter().any(|pair| pair.key == name));
    new.len() == old.len() + added
        && old.iter().zip(new).all(|(before, after)| {
            if before.key == name { after.key == name && is_set(after) } else { same_pair(before, after) }
        })
        && (added == 0 || new.last().is_some_and(|pair| pair.key == name && is_set(pair)))
        && others(&document.root, root)
}

fn same_pair(a: &Pair, b: &Pair) -> bool {
    a.key == b.key && same(&a.value, &b.value)
}

fn same(a: &Node, b: &Node) -> bool {
    match (&*a.value, &*b.value) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b).is_eq(),
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Map(a), Value::Map(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_pair(a, b)),
        _ => false,
    }
}

/// The comments that were not replaced stand in their order, with ours among them.
fn keeps_comments(document: &Document<'_>, splice: &Splice, text: &str, name: &str) -> bool {
    let kept = document.layout.comments.iter().filter(|span| !splice.removes(span.start));
    let kept: Vec<&str> = kept.map(|span| &document.text[span.clone()]).collect();
    let new: Vec<&str> = Layout::read(text).comments.iter().map(|span| &text[span.clone()]).collect();
    let ours = format!("{EJECTED_FROM}{name}");
    (0..new.len()).any(|at| new[at] == ours && [&new[..at], &new[at + 1..]].concat() == kept)
}

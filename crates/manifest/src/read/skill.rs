//! What a skill's `SKILL.md` says of itself.

use super::frontmatter::split;
use crate::yaml::{self, Value};

/// `description` of a skill's front matter; `None` when there is none that can be read.
pub fn skill_description(text: &str) -> Option<String> {
    let text = text.trim_start_matches('\u{feff}');
    let (front, base) = split(text).ok()?.0?;
    let (root, _) = yaml::parse(front, base).ok()?;
    let Value::Map(pairs) = &*root.value else { return None };
    let description = pairs.iter().find(|pair| pair.key == "description")?;
    match &*description.value.value {
        Value::Text(text) => Some(text.trim().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_found_or_not() {
        for (text, expected) in [
            ("---\ndescription: Keeps notes\n---\nbody", Some("Keeps notes")),
            ("\u{feff}---\r\nname: x\r\ndescription: >-\r\n  two\r\n  lines\r\n---\r\n", Some("two lines")),
            ("---\nname: x\n---\n", None),
            ("---\ndescription: 7\n---\n", None),
            ("---\ndescription: open", None),
            ("---\n: : :\n---\n", None),
            ("no front matter", None),
            ("", None),
        ] {
            assert_eq!(skill_description(text).as_deref(), expected, "{text:?}");
        }
    }
}

//! HTML made readable.
//!
//! The HTML is parsed in small pieces into a tree whose size and depth are watched: a few kilobytes can be written so
//! that a parser makes gigabytes of them, or so deep that whoever walks the tree overflows its stack. Only a tree that
//! passed is given to the libraries, which do not watch.

mod tree;

use dom_smoothie::{Config, ParsePolicy, Readability, TextMode};
use htmd::HtmlToMarkdown;

use crate::Format;

/// Elements that hold nothing to read.
const SKIPPED: [&str; 9] =
    ["script", "style", "noscript", "template", "head", "svg", "iframe", "object", "canvas"];

/// The title, and the content as `format` says. An error says what is too much about this HTML.
pub(crate) fn read(html: String, url: &str, format: Format) -> Result<(String, String), String> {
    let parsed = tree::parse(&html);
    if format == Format::Html {
        return Ok((parsed.map(|page| page.title).unwrap_or_default(), html));
    }
    let page = parsed?;
    drop(html);
    match article(&page.html, url, format) {
        Some((title, content)) => Ok((if title.is_empty() { page.title } else { title }, content)),
        None => Ok((page.title, markdown(&page.html)?)),
    }
}

/// The main content, where the page has one.
fn article(html: &str, url: &str, format: Format) -> Option<(String, String)> {
    let config = Config { text_mode: TextMode::Formatted, ..Config::default() };
    let parse = |policy: Option<ParsePolicy>| {
        let mut readability = Readability::new(html, Some(url), Some(config.clone())).ok()?;
        match policy {
            Some(policy) => readability.parse_with_policy(policy).ok(),
            None => readability.parse().ok(),
        }
    };
    let article = parse(None).or_else(|| parse(Some(ParsePolicy::Raw)))?;
    let content = match format {
        Format::Text => article.text_content.trim().to_owned(),
        _ => markdown(&article.content).ok()?,
    };
    (!content.is_empty()).then_some((article.title.trim().to_owned(), content))
}

fn markdown(html: &str) -> Result<String, String> {
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    converter.convert(html).map(|text| text.trim().to_owned()).map_err(|error| error.to_string())
}

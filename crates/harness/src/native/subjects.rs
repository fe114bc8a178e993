//! What the rules for a hosted tool are matched against.

use beeuni_manifest::MEMORY_VIEW;
use serde_json::Value;
use url::Url;

/// The key of the rules and what their globs are matched against. A tool that has nothing to match gets `*`.
pub(super) fn hosted<'a>(name: &'a str, arguments: &str) -> (&'a str, Vec<String>) {
    let value: Value = serde_json::from_str(arguments).unwrap_or_default();
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    match name {
        "scrape_webpage" => (name, or_any(urls(&value))),
        "memory" => {
            let paths = ["path", "old_path", "new_path"].into_iter().filter_map(text);
            let key = if text("command") == Some("view") { MEMORY_VIEW } else { name };
            (key, or_any(paths.map(tidy).collect()))
        }
        _ => (name, vec!["*".to_owned()]),
    }
}

fn or_any(subjects: Vec<String>) -> Vec<String> {
    if subjects.is_empty() { vec!["*".to_owned()] } else { subjects }
}

/// The pages of a list, taken apart as the Beeuni tool does it: white space parts them, a comma only before another
/// http(s) address, as addresses may hold commas; what has no scheme is parted at each comma and read as https.
fn urls(value: &Value) -> Vec<String> {
    let text = match value.get("urls") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let part = |part: &Value| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
            parts.iter().map(part).collect::<Vec<_>>().join(" ")
        }
        _ => return Vec::new(),
    };
    let mut found: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let mut in_address = false;
        for part in word.split(',').filter(|part| !part.is_empty()) {
            let starts = is_web(part);
            match found.last_mut() {
                Some(before) if in_address && !starts => {
                    before.push(',');
                    before.push_str(part);
                }
                _ => found.push(part.to_owned()),
            }
            in_address |= starts;
        }
    }
    let whole = |url: &String| if url.contains(':') { page(url) } else { page(&format!("https://{url}")) };
    found.iter().map(whole).collect()
}

fn is_web(text: &str) -> bool {
    let starts =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    starts("http://") || starts("https://")
}

/// An address as everything that fetches it reads it, so that no spelling of a host passes by a rule. What does not
/// read as one stays as it is.
pub(super) fn page(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.trim().to_owned(), Into::into)
}

/// A path without `.`, `..` and doubled or leading `/`, so that no spelling passes by a rule.
fn tidy(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rules_are_matched_against() {
        let check = |name: &str, arguments: &str, expected: &[&str]| {
            assert_eq!(hosted(name, arguments).1, expected, "{name} {arguments}");
        };
        check("lookup_order", r#"{"path":"x"}"#, &["*"]);
        check("web_search", r#"{"query":"x"}"#, &["*"]);
        check("memory", r#"{"command":"view","path":"memory/a.md"}"#, &["memory/a.md"]);
        check("memory", r#"{"command":"view","path":"/memory/x/../b//./c"}"#, &["memory/b/c"]);
        check(
            "memory",
            r#"{"command":"rename","old_path":"memory/a","new_path":"memory/b"}"#,
            &["memory/a", "memory/b"],
        );
        check("memory", "{}", &["*"]);
        check("scrape_webpage", r#"{"urls":"https://a.de/x"}"#, &["https://a.de/x"]);
        check(
            "scrape_webpage",
            r#"{"urls":"https://a.de/x,y, http://b.de"}"#,
            &["https://a.de/x,y", "http://b.de/"],
        );
        check(
            "scrape_webpage",
            r#"{"urls":["https://a.de","https://b.de"]}"#,
            &["https://a.de/", "https://b.de/"],
        );
        check("scrape_webpage", r#"{"urls":"https://ok","urls":"https://evil"}"#, &["https://evil/"]);
        check("scrape_webpage", r#"{"urls":"HTTPS://Evil.TEST:443/./a"}"#, &["https://evil.test/a"]);
        check("scrape_webpage", r#"{"urls":" evil.test,b.de/x"}"#, &["https://evil.test/", "https://b.de/x"]);
        check(
            "scrape_webpage",
            r#"{"urls":"https://a.de/x https://b.de ,,http://c.de,"}"#,
            &["https://a.de/x", "https://b.de/", "http://c.de/"],
        );
        check("scrape_webpage", r#"{"urls":7}"#, &["*"]);
        check("scrape_webpage", "{}", &["*"]);
    }

    #[test]
    fn the_memory_is_read_and_edited() {
        let check = |arguments: &str, expected: &str| {
            assert_eq!(hosted("memory", arguments).0, expected, "{arguments}")
        };
        check(r#"{"command":"view"}"#, MEMORY_VIEW);
        check(r#"{"command":"create"}"#, "memory");
        check("{}", "memory");
    }
}

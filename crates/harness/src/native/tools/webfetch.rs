//! `webfetch`: a page from the web, made readable.

use beeuni_fetch::{Fetcher, Format};
use beeuni_manifest::Action;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::native::calls::{Answer, until_stopped};
use crate::native::subjects::page;
use crate::native::turn::Turn;

pub(super) const DESCRIPTION: &str = "Reads one page from the web and gives its main content. Addresses of this \
machine and its network are refused.";

pub(super) const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "url": {"type": "string", "description": "The address, with http:// or https://."},
    "format": {"type": "string", "enum": ["markdown", "text", "html"], "description": "Default markdown."}
  },
  "required": ["url"]
}"#;

#[derive(Deserialize)]
pub(in crate::native) struct Fetch {
    url: String,
    #[serde(default)]
    format: Wanted,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    #[default]
    Markdown,
    Text,
    Html,
}

impl Fetch {
    pub(super) fn subject(&self) -> String {
        page(&self.url)
    }

    pub(super) async fn run(self, turn: &Turn, cancel: &CancellationToken) -> Answer {
        let format = match self.format {
            Wanted::Markdown => Format::Markdown,
            Wanted::Text => Format::Text,
            Wanted::Html => Format::Html,
        };
        // Made when it is first needed: most sessions never are.
        let options = turn.shared.fetch.clone();
        let fetcher = match turn.shared.fetcher.get_or_try_init(async || Fetcher::new(options)).await {
            Ok(fetcher) => fetcher,
            Err(error) => return Answer::error(error.to_string()),
        };
        let page = match until_stopped(fetcher.fetch(&self.url, format), cancel).await {
            None => return Answer::stopped(turn),
            Some(Err(error)) => return Answer::error(error.to_string()),
            Some(Ok(page)) => page,
        };
        // A redirect leads past a rule no more than the model itself does.
        if turn.permission().action("webfetch", std::slice::from_ref(&page.url)) == Action::Deny {
            let words = format!("a permission rule of agent {} forbids webfetch ({})", turn.agent, page.url);
            return Answer::denied(words);
        }
        let mut text = page.url;
        if !page.title.is_empty() {
            text.push_str(&format!("\n{}", page.title));
        }
        text.push_str(&format!("\n\n{}", page.content));
        if page.truncated {
            text.push_str("\n\n[the page is longer; the rest was not read]");
        }
        if page.status >= 400 {
            return Answer::error(format!("the server answered {}: {text}", page.status));
        }
        Answer::ok(text)
    }
}

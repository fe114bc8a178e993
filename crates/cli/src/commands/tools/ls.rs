//! `beeuni tools ls` (S1–S3).

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::project::Project;
use crate::{Context, Exit, Outcome};

/// Below the list of a project without a `tools:` key.
const NO_KEY: &str =
    "beeuni.yaml has no `tools:` key, so sessions get every Beeuni tool. List them under `tools:` to choose.";

/// Instead of a list.
const NO_TOOLS: &str = "(no tools)";

/// Before the names of the Beeuni tools that the project's list leaves out.
const REMOVED: &str = "Removed Beeuni tools: ";

/// Below those names.
const ADD_BACK: &str = "Add `<name>: beeuni:<name>` under `tools:` to get one back.";

/// List the tools that this project's sessions get
#[derive(Debug, clap::Args)]
#[command(
    long_about = "List the tools that this project's sessions get, then the Beeuni tools that it removed.",
    after_help = "Example:\n  beeuni tools ls --json"
)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `--json` (S3).
#[derive(Serialize)]
struct Listing<'a> {
    manifest: String,
    tools_key: bool,
    tools: Vec<Tool<'a>>,
    removed: Vec<&'a str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    kind: &'a str,
    source: String,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Outcome {
    let project = Project::find(context, None)?;
    let judged = &project.judged;
    if project.is_opaque() {
        let text = beeuni_manifest::render(&judged.findings, &judged.sources, false);
        context.ui.talk(text);
        return Ok(if judged.readable { Exit::Failed } else { Exit::Usage });
    }
    let manifest = &judged.manifest;
    let (tools, removed) = (manifest.session_tools(), manifest.removed());
    if args.json {
        context.ui.json(&Listing {
            manifest: project.manifest_path().to_string_lossy().into_owned(),
            tools_key: manifest.tools.has_key,
            tools: tools
                .iter()
                .map(|tool| Tool { name: &tool.name, kind: tool.kind, source: tool.source_text() })
                .collect(),
            removed,
        });
    } else {
        if tools.is_empty() {
            context.ui.data(NO_TOOLS);
        } else {
            let head = ["NAME", "KIND", "SOURCE"].map(str::to_owned);
            let rows = tools.iter().map(|tool| [tool.name.clone(), tool.kind.to_owned(), tool.source_text()]);
            context.ui.raw(table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()).as_bytes());
        }
        if !manifest.tools.has_key {
            context.ui.data(format_args!("\n{NO_KEY}"));
        }
        if !removed.is_empty() {
            context.ui.data(format_args!("\n{REMOVED}{}\n{ADD_BACK}", removed.join(", ")));
        }
    }
    if judged.has_errors() {
        context.ui.warning("beeuni.yaml has errors, so no session starts with it: run `beeuni validate`");
    }
    for (name, path) in project.opencode_tools() {
        if tools.iter().any(|tool| tool.name == name) {
            context.ui.warning(format_args!("{path} replaces {name} on the standard harness"));
        }
    }
    Ok(Exit::Fine)
}

/// Rows whose columns line up, two spaces apart, with nothing behind the last.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width + 2 - cell.width()));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

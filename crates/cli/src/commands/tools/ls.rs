//! `beeuni tools ls` (S1–S3).

use beeuni_manifest::{ToolEntry, ToolLimits};
use beeuni_toolhost::LoadReport;
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::commands::block_on;
use crate::loading::load;
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

/// Beside the list of a manifest that no session starts with.
const FATAL: &str = "beeuni.yaml has errors, so no session starts with it: run `beeuni validate`";

/// Beside the list where all errors concern single tools.
const SINGLE: &str =
    "beeuni.yaml has errors in single tools, which sessions leave out: run `beeuni validate`";

/// STATE of a module that a session would offer.
const LOADS: &str = "loads";

/// STATE of a module that a session would leave out.
const FAILS: &str = "fails";

/// STATE without a Bun to load modules with.
const NOT_CHECKED: &str = "not checked";

/// List the tools that this project's sessions get
#[derive(Debug, clap::Args)]
#[command(
    long_about = "List the tools that this project's sessions get, then the Beeuni tools that it removed.\n\n--long loads each module, \
                  which runs the project's code, in the sandbox that sessions use.",
    after_help = "Example:\n  beeuni tools ls --json"
)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Load each module too, and add where it is declared, whether it loads, and how it is confined
    #[arg(long)]
    long: bool,
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
    #[serde(flatten)]
    long: Option<Long>,
}

/// What `--long` adds.
#[derive(Serialize)]
struct Long {
    file: Option<String>,
    line: Option<usize>,
    state: &'static str,
    reason: Option<String>,
    #[serde(skip)]
    sandbox: String,
}

impl Long {
    fn new(tool: &ToolEntry, report: Option<&LoadReport>, limits: &ToolLimits) -> Long {
        let reason = report
            .and_then(|report| report.failed.iter().find(|failed| failed.name == tool.name))
            .map(|failed| failed.reason.clone());
        let state = match (report, &reason) {
            (None, _) => NOT_CHECKED,
            (Some(_), None) => LOADS,
            (Some(_), Some(_)) => FAILS,
        };
        let place = tool.place.as_ref();
        let (file, line) = (place.map(|place| place.file.clone()), place.map(|place| place.line));
        Long { file, line, state, reason, sandbox: sandbox(limits) }
    }

    /// FILE, STATE, SANDBOX.
    fn cells(&self) -> [String; 3] {
        let file = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            _ => "-".to_owned(),
        };
        [file, self.state.to_owned(), self.sandbox.clone()]
    }
}

/// What `limits:` changes about a tool's sandbox.
fn sandbox(limits: &ToolLimits) -> String {
    let mut changes = Vec::new();
    if limits.network == Some(false) {
        changes.push("no network".to_owned());
    }
    changes.extend(limits.memory.map(|bytes| format!("memory {} MiB", bytes >> 20)));
    changes.extend(limits.processes.map(|count| format!("{count} processes")));
    changes.extend(limits.files.map(|count| format!("{count} files")));
    changes.extend(limits.call_time.map(|seconds| format!("{seconds} s per call")));
    changes.extend(limits.read.iter().map(|path| format!("reads {path}")));
    changes.extend(limits.write.iter().map(|path| format!("writes {path}")));
    if changes.is_empty() { "standard".to_owned() } else { changes.join(", ") }
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Outcome {
    let project = Project::find(context, None)?;
    let judged = &project.judged;
    let broken = project.broken();
    if !broken.is_empty() {
        context.ui.talk(beeuni_manifest::render(&broken, &judged.sources, false));
        return Ok(if judged.readable { Exit::Failed } else { Exit::Usage });
    }
    let manifest = &judged.manifest;
    let (tools, removed) = (manifest.session_tools(), manifest.removed());
    let long: Option<Vec<Long>> = if args.long {
        let report = block_on(async { Ok(load(&project, context).await) })?;
        let long = |tool: &ToolEntry| Long::new(tool, report.as_ref(), &manifest.limits.of(&tool.name));
        Some(tools.iter().map(long).collect())
    } else {
        None
    };
    if args.json {
        let mut long = long.map(Vec::into_iter);
        let tools = tools.iter().map(|tool| Tool {
            name: &tool.name,
            kind: tool.kind,
            source: tool.source_text(),
            long: long.as_mut().and_then(Iterator::next),
        });
        context.ui.json(&Listing {
            manifest: project.manifest_path().to_string_lossy().into_owned(),
            tools_key: manifest.tools.has_key,
            tools: tools.collect(),
            removed,
        });
    } else {
        if tools.is_empty() {
            context.ui.data(NO_TOOLS);
        } else {
            context.ui.raw(table(&rows(&tools, long.as_deref())).as_bytes());
        }
        if !manifest.tools.has_key {
            context.ui.data(format_args!("\n{NO_KEY}"));
        }
        if !removed.is_empty() {
            context.ui.data(format_args!("\n{REMOVED}{}\n{ADD_BACK}", removed.join(", ")));
        }
    }
    match project.errors() {
        (_, fatal) if !fatal.is_empty() => context.ui.warning(FATAL),
        (single, _) if !single.is_empty() => context.ui.warning(SINGLE),
        _ => {}
    }
    for (name, path) in project.opencode_tools() {
        if tools.iter().any(|tool| tool.name == name) {
            context.ui.warning(format_args!("{path} replaces {name} on the standard harness"));
        }
    }
    Ok(Exit::Fine)
}

/// The head and a row for each tool.
fn rows(tools: &[ToolEntry], long: Option<&[Long]>) -> Vec<Vec<String>> {
    let mut rows = vec![["NAME", "KIND", "SOURCE"].map(str::to_owned).to_vec()];
    rows.extend(tools.iter().map(|tool| vec![tool.name.clone(), tool.kind.to_owned(), tool.source_text()]));
    if let Some(long) = long {
        rows[0].extend(["FILE", "STATE", "SANDBOX"].map(str::to_owned));
        for (row, long) in rows[1..].iter_mut().zip(long) {
            row.extend(long.cells());
        }
    }
    rows
}

/// Rows whose columns line up, two spaces apart, with nothing behind the last.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
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

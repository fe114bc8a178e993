//! `beeuni validate`.

use beeuni_manifest::{Finding, Judged, Severity, ToolSource};
use beeuni_toolhost::LoadReport;
use serde::Serialize;

use crate::loading::load;
use crate::project::Project;
use crate::release::left_out;
use crate::schemas::refused;
use crate::{Context, Exit, Outcome};

/// Check beeuni.yaml, and that each tool's module loads
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Check beeuni.yaml with its imports, and that each tool's module loads.\n\nLoading a module runs the \
                  project's code, in the sandbox that sessions use: give --no-load for a checkout that you do not trust.\
                  \n\nExits with 0 when there are only warnings, with 1 when there are errors, and with 2 when there is \
                  no beeuni.yaml or it cannot be read.",
    after_help = "Example:\n  beeuni validate --no-load"
)]
pub(crate) struct Args {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,

    /// Do not load the modules: no code of the project runs
    #[arg(long)]
    no_load: bool,
}

/// `--json`.
#[derive(Serialize)]
struct Report<'a> {
    valid: bool,
    path: String,
    issues: Vec<Issue<'a>>,
}

#[derive(Serialize)]
struct Issue<'a> {
    path: &'a str,
    message: &'a str,
    severity: &'static str,
    file: &'a str,
    line: usize,
    column: usize,
}

impl<'a> From<&'a Finding> for Issue<'a> {
    fn from(finding: &'a Finding) -> Issue<'a> {
        Issue {
            path: &finding.path,
            message: &finding.message,
            severity: finding.severity.as_str(),
            file: &finding.place.file,
            line: finding.place.line,
            column: finding.place.column,
        }
    }
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Outcome {
    let set = context.env.keys().cloned().collect();
    let mut project = Project::find(context, Some(set))?;
    let more = super::block_on(async {
        let report = if args.no_load { None } else { load_modules(&project, context).await };
        let mut more = left_out(&project, context, report.as_ref()).await;
        if let Some(report) = report {
            more.extend(unloadable(&project, context, report));
        }
        Ok(more)
    })?;
    project.judged.findings.extend(more);
    let judged = &project.judged;
    if args.json {
        context.ui.json(&Report {
            valid: !judged.has_errors(),
            path: project.manifest_path().to_string_lossy().into_owned(),
            issues: judged.findings.iter().map(Issue::from).collect(),
        });
    } else if !judged.findings.is_empty() {
        let text = beeuni_manifest::render(&judged.findings, &judged.sources, context.ui.coloured_data());
        context.ui.data(text);
    }
    context.ui.talk(summary(judged));
    Ok(match (judged.readable, judged.has_errors()) {
        (false, _) => Exit::Usage,
        (true, true) => Exit::Failed,
        (true, false) => Exit::Fine,
    })
}

/// How many of what there is.
pub(super) fn summary(judged: &Judged) -> String {
    let errors = judged.findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let count = |number: usize, what: &str| match number {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        more => format!("{more} {what}s"),
    };
    match (errors, judged.findings.len() - errors) {
        (0, 0) => "beeuni.yaml is valid.".to_owned(),
        (0, warnings) => format!("beeuni.yaml is valid, with {}.", count(warnings, "warning")),
        (errors, warnings) => {
            format!("beeuni.yaml is not valid: {}, {}.", count(errors, "error"), count(warnings, "warning"))
        }
    }
}

/// Loads each module as a session would. `None` where there is none, or none can be loaded.
async fn load_modules(project: &Project, context: &mut Context) -> Option<LoadReport> {
    let mut entries = project.judged.manifest.tools.entries.values();
    if entries.any(|entry| entry.value != ToolSource::Beeuni) { load(project, context).await } else { None }
}

/// Says which modules would be left out (M7), and whose schema a provider refuses.
fn unloadable(project: &Project, context: &Context, report: LoadReport) -> Vec<Finding> {
    // What the manifest is already wrong about is not told a second time in the loader's words.
    let told = |name: &str| {
        let path = format!("tools.{name}");
        project.judged.findings.iter().any(|known| known.severity == Severity::Error && known.path == path)
    };
    let mut found = refused(project, &context.env, &report);
    let failed = report.failed.into_iter().filter(|tool| !told(&tool.name));
    found.extend(failed.map(|tool| project.about_tool(Severity::Error, &tool.name, tool.reason)));
    found
}

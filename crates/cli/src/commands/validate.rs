//! `beeuni validate`.

use beeuni_manifest::{Finding, Judged, Severity, ToolSource};
use serde::Serialize;

use crate::loading::load;
use crate::project::Project;
use crate::schemas::refused;
use crate::tracked::untracked;
use crate::{Context, Exit, Failure, Outcome};

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
        let mut more = ignored_by_git(&project, context).await;
        if !args.no_load {
            more.extend(unloadable(&project, context).await?);
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

/// Declared modules that Git would leave out of a release.
async fn ignored_by_git(project: &Project, context: &Context) -> Vec<Finding> {
    let modules: Vec<(&str, &str)> = project
        .judged
        .manifest
        .tools
        .entries
        .iter()
        .filter_map(|(name, entry)| match &entry.value {
            ToolSource::Module(path) if project.root.join(path).is_file() => Some((&**name, &**path)),
            _ => None,
        })
        .collect();
    if modules.is_empty() {
        return Vec::new();
    }
    let paths: Vec<&str> = modules.iter().map(|(_, path)| *path).collect();
    let missing = untracked(&project.root, &paths, &context.env).await;
    let finding = |(name, path): (&str, &str)| {
        let file = missing.iter().find(|file| file.path == path)?;
        Some(project.about_tool(Severity::Warning, name, file.message()))
    };
    modules.into_iter().filter_map(finding).collect()
}

/// Loads each module as a session would, and says which would be left out (M7) and whose schema a provider refuses.
async fn unloadable(project: &Project, context: &mut Context) -> Result<Vec<Finding>, Failure> {
    let has_modules =
        project.judged.manifest.tools.entries.values().any(|entry| entry.value != ToolSource::Beeuni);
    if !has_modules {
        return Ok(Vec::new());
    }
    let Some(report) = load(project, context).await? else { return Ok(Vec::new()) };
    // What the manifest is already wrong about is not told a second time in the loader's words.
    let told = |name: &str| {
        let path = format!("tools.{name}");
        project.judged.findings.iter().any(|known| known.severity == Severity::Error && known.path == path)
    };
    let mut found = refused(project, &context.env, &report);
    let failed = report.failed.into_iter().filter(|tool| !told(&tool.name));
    found.extend(failed.map(|tool| project.about_tool(Severity::Error, &tool.name, tool.reason)));
    Ok(found)
}

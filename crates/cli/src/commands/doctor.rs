//! `beeuni doctor`: what is there, what is missing, and what to do.

use std::collections::BTreeMap;
use std::path::Path;

use beeuni_models::Asked;
use serde::Serialize;

use crate::program::{on_path, version};
use crate::project::Project;
use crate::runtime::find_opencode;
use crate::{Context, Exit, Outcome, find_bun};

/// Say what is installed, what is missing and what to do
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Say what is installed, what is missing and what to do.\n\nExits with 1 when something is missing that \
                  every tool needs (Bun).",
    after_help = "Example:\n  beeuni doctor"
)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked for.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    present: bool,
    required: bool,
    /// Version and place, or why it is missing.
    detail: String,
    /// What to do about it, where there is something to do.
    todo: Option<String>,
}

#[derive(Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Outcome {
    let checks = super::block_on(async {
        let mut checks = vec![bun(context).await, opencode(context).await, git(context).await];
        checks.extend(kernel());
        checks.push(bwrap(context));
        checks.push(model(context));
        Ok(checks)
    })?;
    let ok = checks.iter().all(|check| check.present || !check.required);
    if args.json {
        context.ui.json(&Report { ok, checks });
    } else {
        for check in &checks {
            let mark = match (check.present, check.required) {
                (true, _) => context.ui.good("✓"),
                (false, true) => context.ui.bad("✗"),
                (false, false) => context.ui.doubtful("–"),
            };
            context.ui.data(format_args!("{mark} {:<9} {}", check.name, check.detail));
            if let Some(todo) = &check.todo {
                context.ui.data(format_args!("  {:<9} {todo}", ""));
            }
        }
    }
    Ok(if ok { Exit::Fine } else { Exit::Failed })
}

async fn bun(context: &Context) -> Check {
    let missing = |detail: String, todo: &str| Check {
        name: "Bun",
        present: false,
        required: true,
        detail,
        todo: Some(todo.to_owned()),
    };
    let bun = match find_bun(&context.env) {
        Ok(bun) => bun,
        Err(error) => return missing(error.to_string(), "run `beeuni setup`"),
    };
    let mut env = context.env.clone();
    env.extend(bun.env.clone());
    match version(&bun.path, &env, Path::new("/")).await {
        Ok(version) => Check {
            name: "Bun",
            present: true,
            required: true,
            detail: format!("{version}  {} ({})", bun.path.display(), bun.found),
            todo: None,
        },
        Err(error) => missing(error.to_string(), "run `beeuni setup`, or name another Bun with BEEUNI_BUN"),
    }
}

async fn opencode(context: &Context) -> Check {
    let (present, detail) = match find_opencode(&context.env) {
        None => (false, "not installed".to_owned()),
        Some((path, found)) => match version(&path, &context.env, Path::new("/")).await {
            Ok(version) => (true, format!("{version}  {} ({found})", path.display())),
            Err(error) => (false, error.to_string()),
        },
    };
    let todo =
        (!present).then(|| "only the standard harness needs it; the experimental one is built in".to_owned());
    Check { name: "OpenCode", present, required: false, detail, todo }
}

async fn git(context: &Context) -> Check {
    let found = on_path("git", context.var("PATH").unwrap_or_default());
    let (present, detail) = match found {
        None => (false, "not on PATH".to_owned()),
        Some(path) => match version(&path, &context.env, Path::new("/")).await {
            Ok(version) => (true, format!("{version}  {}", path.display())),
            Err(error) => (false, error.to_string()),
        },
    };
    let todo = (!present)
        .then(|| "install git: without it nothing can say which files a release would lack".to_owned());
    Check { name: "git", present, required: false, detail, todo }
}

/// What the kernel offers to confine a tool.
fn kernel() -> [Check; 2] {
    let support = beeuni_child::probe();
    let notes = |name: &str| {
        let notes: Vec<&str> =
            support.notes.iter().map(String::as_str).filter(|note| note.contains(name)).collect();
        (!notes.is_empty()).then(|| notes.join(" "))
    };
    [
        Check {
            name: "Landlock",
            present: support.landlock_abi.is_some(),
            required: false,
            detail: support.landlock_abi.map_or("missing".to_owned(), |abi| format!("interface {abi}")),
            todo: notes("Landlock"),
        },
        Check {
            name: "seccomp",
            present: support.seccomp,
            required: false,
            detail: if support.seccomp { "present" } else { "missing" }.to_owned(),
            todo: notes("seccomp filters"),
        },
    ]
}

fn bwrap(context: &Context) -> Check {
    let found = on_path("bwrap", context.var("PATH").unwrap_or_default());
    Check {
        name: "bwrap",
        present: found.is_some(),
        required: false,
        detail: found.as_ref().map_or("not on PATH".to_owned(), |path| path.display().to_string()),
        todo: found
            .is_none()
            .then(|| "nothing here needs it; it gives a session's box its own /workspace".to_owned()),
    }
}

/// The model that `beeuni run` would take in this folder.
fn model(context: &Context) -> Check {
    let project = Project::find(context, None).ok();
    let default = project.as_ref().and_then(|project| project.judged.manifest.models.default.clone());
    let declared = BTreeMap::new();
    let asked = Asked {
        flag: None,
        agent: None,
        default: default.as_deref(),
        declared: &declared,
        env: &context.env,
    };
    match beeuni_models::choose(&asked) {
        Ok(choice) => {
            Check { name: "model", present: true, required: false, detail: choice.name, todo: choice.warning }
        }
        Err(error) => Check {
            name: "model",
            present: false,
            required: false,
            detail: error.to_string(),
            todo: Some("`tools ls`, `tools call` and `validate` work without one".to_owned()),
        },
    }
}

//! `beeuni tools call`: what a model's call does, without a model.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use beeuni_daemon::Door;
use beeuni_harness::{CallError, ToolCall, Tools as _};
use beeuni_manifest::{Harness, Verdict, is_harness_tool};
use beeuni_toolhost::Level;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::commands::block_on_own_signals;
use crate::error::Exit;
use crate::local::{Local, Variables};
use crate::project::Project;
use crate::session::interrupts::Interrupts;
use crate::{Context, Failure, Outcome};

/// The largest arguments that are read from standard input, in bytes.
const MAX_ARGUMENTS: u64 = 32 << 20;

/// How long a module's last printed lines are waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Call one tool, as a model would: same access, secrets, limits and texts
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: beeuni tools call lookup_order --args '{\"id\":\"A-1042\"}' --env-file ~/.config/shop.env"
)]
pub(crate) struct Args {
    /// The tool's name
    name: String,
    /// The arguments, a JSON object; `-` reads them from standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,
    /// The agent that calls; left out: the default agent
    #[arg(long = "as", value_name = "AGENT")]
    agent: Option<String>,
    /// A file of NAME=value lines; its values are secrets, granted as beeuni.yaml says
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// Print {"output": …} or {"error": …}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Outcome {
    let arguments = arguments(&args.args, context)?;
    let variables = Variables::read(context, args.env_file.as_deref())?;
    let project = Project::find(context, Some(variables.names.clone()))?;
    project.startable(context)?;
    project.required(&variables.names)?;
    let agent = args.agent.clone().unwrap_or_else(|| project.judged.manifest.default_agent.clone());
    may_call(&project, &agent, &args.name)?;
    let outcome = block_on_own_signals(async {
        let local = Local::prepare(context, &project, variables.secrets, None, Level::Info)?;
        call(local, &project, &agent, &args.name, arguments, context).await
    })?;
    let (exit, json) = match &outcome {
        Ok(output) => (Exit::Fine, json!({ "output": output })),
        Err(CallError::Aborted) => (Exit::Stopped, json!({ "error": CallError::Aborted.to_string() })),
        Err(error) => (Exit::Failed, json!({ "error": error.to_string() })),
    };
    match outcome {
        _ if args.json => context.ui.json(&json),
        Ok(output) => {
            context.ui.raw(output.as_bytes());
            if !output.is_empty() && !output.ends_with('\n') {
                context.ui.raw(b"\n");
            }
        }
        Err(error) => context.ui.talk(error),
    }
    Ok(exit)
}

/// Takes the arguments as they are: only their outer shape is judged, never their content (M2).
fn arguments(text: &str, context: &mut Context) -> Result<String, Failure> {
    let text = if text == "-" {
        let mut read = String::new();
        let reader = &mut context.stdin.reader;
        reader.take(MAX_ARGUMENTS + 1).read_to_string(&mut read).map_err(|error| {
            Failure::usage(format!("cannot read the arguments from standard input: {error}"))
        })?;
        if read.len() as u64 > MAX_ARGUMENTS {
            return Err(Failure::usage("the arguments are larger than 32 MiB"));
        }
        read
    } else {
        text.to_owned()
    };
    if text.trim().is_empty() {
        return Ok("{}".to_owned());
    }
    match serde_json::from_str::<&serde_json::value::RawValue>(&text) {
        Ok(raw) if raw.get().starts_with('{') => Ok(text),
        Ok(raw) if raw.get() == "null" => Ok("{}".to_owned()),
        Ok(_) => Err(Failure::usage("--args is JSON, but no object")
            .hint("a tool takes an object of its parameters, such as '{\"id\":\"A-1042\"}'")),
        Err(error) => Err(Failure::usage(format!("--args is not JSON: {error}"))
            .hint("put the whole object into single quotes, such as '{\"id\":\"A-1042\"}'")),
    }
}

/// Refuses what could never be called, before anything is started.
fn may_call(project: &Project, agent: &str, name: &str) -> Result<(), Failure> {
    let manifest = &project.judged.manifest;
    let tools = manifest.session_tools();
    if !tools.iter().any(|tool| tool.name == name) {
        let failure = Failure::usage(format!("no tool named {name} is loaded"));
        return Err(if is_harness_tool(name) {
            failure.hint(format!("{name} is a harness tool: only an agent's turn can call it"))
        } else {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            let near = names.iter().find(|near| strsim::damerau_levenshtein(near, name) <= 2);
            match near {
                Some(near) => failure.hint(format!("did you mean {near}?")),
                None => failure.hint(format!("this project has: {}", names.join(", "))),
            }
        });
    }
    if !manifest.agents.get(agent).is_some_and(|entry| entry.value.enabled) {
        let agents: Vec<&str> = manifest.agents.keys().map(String::as_str).collect();
        return Err(Failure::usage(format!("there is no enabled agent {agent}"))
            .hint(format!("this project has: {}", agents.join(", "))));
    }
    match manifest.may_use(Harness::Experimental, agent, agent, name) {
        Verdict::Visible => Ok(()),
        Verdict::Hidden => {
            let denied = CallError::Denied { agent: agent.to_owned(), tool: name.to_owned() };
            Err(Failure::usage(denied).hint(format!("see agents.{agent}.tools in beeuni.yaml")))
        }
    }
}

async fn call(
    local: Local,
    project: &Project,
    agent: &str,
    name: &str,
    arguments: String,
    context: &mut Context,
) -> Result<Result<String, CallError>, Failure> {
    let Local { hosting, mut lines, folder: _folder } = local;
    let spawner = hosting.spawner.clone();
    let manifest = Arc::new(project.judged.manifest.clone());
    let mut interrupts = Interrupts::listen().map_err(Failure::failed)?;
    let opening = Door::open(hosting, manifest, Harness::Experimental, Some(name));
    let (door, report) = tokio::select! {
        opened = opening => opened.map_err(Failure::failed)?,
        _ = interrupts.next() => return Ok(Err(CallError::Aborted)),
    };
    if let Some(failed) = report.failed.first() {
        return Err(Failure::failed(format!("{} did not load: {}", failed.name, failed.reason))
            .hint(format!("see {}", failed.path)));
    }
    let cancel = CancellationToken::new();
    let mut call = door.call(ToolCall {
        session: "tools-call".to_owned(),
        session_agent: agent.to_owned(),
        agent: agent.to_owned(),
        name: name.to_owned(),
        arguments,
        cancel: cancel.clone(),
    });
    let outcome = loop {
        tokio::select! {
            biased;
            Some(line) = lines.recv() => context.ui.talk(line),
            outcome = &mut call => break outcome,
            _ = interrupts.next() => cancel.cancel(),
        }
    };
    // What the module printed last is still on its way: the pipes end with the process, and the lines with them.
    drop(call);
    drop(door);
    spawner.shut_down().await;
    while let Ok(Some(line)) = tokio::time::timeout(LAST_WORDS, lines.recv()).await {
        context.ui.talk(line);
    }
    Ok(outcome)
}

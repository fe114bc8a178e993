//! `beeuni run`: one session in this checkout, without a server.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use beeuni_daemon::{Daemon, Start, last_agent};
use beeuni_manifest::{Agent, AgentMode, Harness};
use beeuni_models::Model;
use beeuni_protocol::event::FinishReason;
use beeuni_toolhost::Level;
use sha2::{Digest as _, Sha256};

use crate::commands::block_on_own_signals;
use crate::error::Exit;
use crate::local::{Local, Variables, private_folder, state_folder};
use crate::project::Project;
use crate::session::desk::{Desk, Ended};
use crate::session::interrupts::Interrupts;
use crate::session::model::{Chosen, model_of};
use crate::{Context, Failure, Outcome};

/// The largest prompt that is read from standard input, in bytes.
const MAX_PROMPT: u64 = 1 << 20;

/// How long a start may take in silence.
const PATIENCE: Duration = Duration::from_secs(1);

/// Run an agent in this checkout: no server, one session
///
/// On a terminal, each line is a turn until Ctrl-D. Ctrl-C stops the turn; twice ends the program.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  beeuni run --prompt \"Where is order A-1042?\"\n  git diff | beeuni run --agent reviewer"
)]
pub(crate) struct Args {
    /// What to ask; left out: standard input
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// The agent; left out: the default agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The model, as PROVIDER/MODEL
    #[arg(long, value_name = "P/M")]
    model: Option<String>,
    /// The harness: standard or experimental
    #[arg(long, value_parser = ["standard", "experimental"])]
    harness: Option<String>,
    /// A file of NAME=value lines; its values are secrets, granted as beeuni.yaml says
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// Go on with the last run's conversation in this checkout
    #[arg(long = "continue")]
    resume: bool,
    /// Print one event a line, as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Outcome {
    let first = first_prompt(args, context)?;
    let variables = Variables::read(context, args.env_file.as_deref())?;
    let project = Project::find(context, Some(variables.names.clone()))?;
    project.startable(context)?;
    project.required(&variables.names)?;
    let sessions = sessions_folder(context, &project)?;
    let resumed = if args.resume { Some(last_session(&sessions)?) } else { None };
    // The conversation goes on with the agent that led it, and so with its rules.
    let led = resumed.as_ref().and_then(|session| last_agent(&sessions.join(session)));
    let agent = lead(args.agent.as_deref().or(led.as_deref()), &project)?;
    if let Some(session) = &resumed
        && !args.json
    {
        context.ui.talk(format_args!("going on with {session}, agent {agent}"));
    }
    harness(args, &project, &agent, context)?;
    let models = models(args, &project, &agent, context)?;
    let session = match resumed {
        Some(session) => session,
        None => new_session(&sessions, context.now)?,
    };
    let log = sessions.join(&session).join("log");
    let runner = Runner { json: args.json, agent, first, log };
    block_on_own_signals(async {
        let local = Local::prepare(context, &project, variables.secrets, Some(&runner.log), Level::Warn)?;
        runner.run(local, &project, models, session, sessions, context).await
    })
}

/// The prompt, where there is one at the start; none means that each line of a terminal is one.
fn first_prompt(args: &Args, context: &mut Context) -> Result<Option<String>, Failure> {
    let prompt = match &args.prompt {
        Some(prompt) => prompt.clone(),
        None if context.stdin.terminal => return Ok(None),
        None => {
            let mut text = String::new();
            (&mut context.stdin.reader).take(MAX_PROMPT + 1).read_to_string(&mut text).map_err(|error| {
                Failure::usage(format!("cannot read the prompt from standard input: {error}"))
            })?;
            text
        }
    };
    if prompt.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty").hint("give one with --prompt or on standard input"));
    }
    if prompt.len() as u64 > MAX_PROMPT {
        return Err(Failure::usage("the prompt is larger than 1 MiB")
            .hint("put it into a file of the checkout and let the agent read it"));
    }
    Ok(Some(prompt))
}

fn lead(asked: Option<&str>, project: &Project) -> Result<String, Failure> {
    let manifest = &project.judged.manifest;
    let name = asked.unwrap_or(&manifest.default_agent);
    let can_lead = |agent: &Agent| agent.enabled && agent.mode != AgentMode::Subagent;
    match manifest.agents.get(name) {
        Some(entry) if can_lead(&entry.value) => Ok(name.to_owned()),
        Some(entry) if entry.value.enabled => {
            Err(Failure::usage(format!("agent {name} is a subagent: it cannot lead a session"))
                .hint("its mode stands in its .md file"))
        }
        Some(_) => Err(Failure::usage(format!("agent {name} is switched off (enabled: false)"))),
        None => {
            let names = manifest.agents.iter().filter(|(_, entry)| can_lead(&entry.value));
            let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
            Err(Failure::usage(format!("there is no agent {name}"))
                .hint(format!("this project has: {}", names.join(", "))))
        }
    }
}

/// Only the experimental harness can be driven yet; a project that asks for the other is told so.
fn harness(args: &Args, project: &Project, agent: &str, context: &mut Context) -> Result<(), Failure> {
    let manifest = &project.judged.manifest;
    let own = manifest.agents.get(agent).and_then(|entry| entry.value.harness);
    let asked = match args.harness.as_deref() {
        Some("standard") => Some(Harness::Standard),
        Some(_) => Some(Harness::Experimental),
        None => own.or(manifest.harness),
    };
    match asked {
        Some(Harness::Experimental) => Ok(()),
        Some(Harness::Standard) => {
            Err(Failure::failed("the standard harness (OpenCode) cannot be driven by this version yet")
                .hint("use --harness experimental: tools run the same there"))
        }
        None => {
            if !args.json {
                context.ui.talk("harness: experimental");
            }
            Ok(())
        }
    }
}

type Models = BTreeMap<String, (Arc<dyn Model>, Option<u64>)>;

/// The model of each enabled agent. Only the leading agent's must be there: a subagent without one is left out.
fn models(args: &Args, project: &Project, lead: &str, context: &mut Context) -> Result<Models, Failure> {
    let manifest = &project.judged.manifest;
    let mut models = Models::new();
    for (name, entry) in manifest.agents.iter().filter(|(_, entry)| entry.value.enabled) {
        let flag = args.model.as_deref().filter(|_| name == lead);
        match model_of(flag, &entry.value, &manifest.models, &context.env) {
            Ok(Chosen { model, window, warning }) => {
                if let Some(warning) = warning {
                    context.ui.warning(warning);
                }
                models.insert(name.clone(), (model, window));
            }
            Err(failure) if name == lead => return Err(failure),
            Err(failure) => {
                context.ui.warning(format_args!("agent {name} cannot be used in this run: {failure}"));
            }
        }
    }
    Ok(models)
}

/// One folder per checkout, so that `--continue` finds its last session.
fn sessions_folder(context: &Context, project: &Project) -> Result<PathBuf, Failure> {
    let hash = Sha256::digest(project.root.as_os_str().as_encoded_bytes());
    let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let folder = state_folder(context)?.join("runs").join(hash);
    private_folder(&folder)?;
    Ok(folder)
}

/// The last session's id. Ids sort by time, so it is the greatest.
fn last_session(sessions: &Path) -> Result<String, Failure> {
    let entries = fs::read_dir(sessions).map_err(Failure::failed)?.flatten();
    let sessions = entries.filter(|entry| entry.path().join("events.jsonl").is_file());
    sessions.filter_map(|entry| entry.file_name().into_string().ok()).max().ok_or_else(|| {
        Failure::usage("there is no run to go on with in this checkout").hint("start one without --continue")
    })
}

/// Makes a new session's folder and gives its id.
fn new_session(sessions: &Path, now: SystemTime) -> Result<String, Failure> {
    let mut nanos = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    loop {
        let id = format!("run-{nanos:020}");
        match DirBuilder::new().mode(0o700).create(sessions.join(&id)) {
            Ok(()) => return Ok(id),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => nanos += 1,
            Err(error) => {
                return Err(Failure::failed(format!(
                    "cannot make a folder in {}: {error}",
                    sessions.display()
                )));
            }
        }
    }
}

/// What is asked of a started session.
struct Runner {
    json: bool,
    agent: String,
    first: Option<String>,
    log: PathBuf,
}

impl Runner {
    async fn run(
        self,
        local: Local,
        project: &Project,
        models: Models,
        session: String,
        sessions: PathBuf,
        context: &mut Context,
    ) -> Outcome {
        let Local { hosting, lines, folder: _folder } = local;
        let spawner = hosting.spawner.clone();
        let start = Start {
            hosting,
            files: &project.files,
            manifest: Arc::new(project.judged.manifest.clone()),
            models,
            session,
            sessions,
            // Whoever pipes a prompt in is not there to answer.
            unattended: !context.stdin.terminal,
            now: SystemTime::now,
        };
        // What did not load is told by the log's warning.
        let mut interrupts = Interrupts::listen().map_err(Failure::failed)?;
        let starting = async {
            tokio::select! {
                started = Daemon::start(start) => started.map(Some).map_err(Failure::failed),
                _ = interrupts.next() => Ok(None),
            }
        };
        let Some((daemon, _)) = patiently(starting, "loading tools…", context).await? else {
            return Ok(Exit::Stopped);
        };
        let mut desk = Desk::open(&daemon, lines, interrupts, self.json, context).await?;
        let exit = self.turns(&daemon, &mut desk, context).await;
        daemon.shut_down().await;
        spawner.shut_down().await;
        let exit = exit?;
        if exit == Exit::Failed && !self.json {
            context.ui.talk(format_args!("What tools printed is in {}", self.log.display()));
        }
        Ok(exit)
    }

    /// One turn for a given prompt, else a turn a line.
    async fn turns(&self, daemon: &Daemon, desk: &mut Desk, context: &mut Context) -> Outcome {
        let mut exit = Exit::Fine;
        let mut prompt = self.first.clone();
        loop {
            let text = match prompt.take() {
                Some(text) => text,
                None if self.first.is_some() => return Ok(exit),
                None => match desk.prompt(context).await {
                    Ok(Some(text)) => text,
                    Ok(None) => return Ok(exit),
                    Err(_) => return Ok(Exit::Stopped),
                },
            };
            daemon.prompt(&self.agent, &text).await.map_err(Failure::failed)?;
            exit = match desk.turn(daemon, context).await? {
                Ended::Turn(FinishReason::Stop) => Exit::Fine,
                Ended::Turn(FinishReason::Error) => Exit::Failed,
                Ended::Turn(FinishReason::Aborted | FinishReason::Interrupted) => Exit::Stopped,
                Ended::Program => return Ok(Exit::Stopped),
            };
            if context.ui.unheard() {
                return Ok(exit);
            }
        }
    }
}

/// Waits, and says what for when it takes longer than a person expects.
async fn patiently<T>(work: impl Future<Output = T>, what: &str, context: &mut Context) -> T {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(PATIENCE) => context.ui.talk(what),
    }
    work.await
}

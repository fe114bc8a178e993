//! A session's box as it is: real Bun, a scripted model on both wires, the daemon between them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod access;
mod offer;
mod session;
mod together;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use beeuni_daemon::checkout::{Folder, MANIFEST};
use beeuni_daemon::{Daemon, Environment, Hosting, Start, StartError};
use beeuni_manifest::{Context, Manifest, Severity};
use beeuni_models::{Api, Choice, Key, connect};
use beeuni_protocol::event::{Event, EventBody, FinishReason, ToolStatus};
use beeuni_testkit::model::ScriptedModel;
use beeuni_testkit::{bun, project::Project};
use beeuni_toolhost::{BunProgram, Level, LoadReport, Log, Spawner};

/// A checkout, a model's server and a log.
struct Stage {
    project: Project,
    model: ScriptedModel,
    api: Api,
    log: Arc<Lines>,
    secrets: BTreeMap<String, String>,
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn record(&self, _: Level, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// A module around the body of `execute`.
fn module(body: &str) -> String {
    format!(
        "export default {{ description: 'd', parameters: {{ type: 'object' }}, async execute(args: any, context: any) {{ {body} }} }}\n"
    )
}

/// A stage with this manifest, or `None` with a loud line when there is no Bun.
fn stage(api: Api, manifest: &str, modules: &[(&str, String)]) -> Option<Stage> {
    if bun().is_none() {
        eprintln!("skipped: no Bun; run `npm ci` in runtime/ or set BEEUNI_BUN");
        return None;
    }
    let project = Project::new();
    project.write(MANIFEST, manifest);
    for (name, text) in modules {
        project.write(format!("tools/{name}.ts"), text);
    }
    for folder in ["box", "host"] {
        fs::create_dir(project.home().join(folder)).unwrap();
    }
    let (model, log) = (ScriptedModel::start_blocking(), Arc::default());
    Some(Stage { project, model, api, log, secrets: BTreeMap::new() })
}

impl Stage {
    fn home(&self) -> PathBuf {
        self.project.home().canonicalize().unwrap()
    }

    fn manifest(&self, files: &Folder) -> Arc<Manifest> {
        let judged = beeuni_manifest::read(files, MANIFEST, &Context::default());
        let errors: Vec<_> =
            judged.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "{errors:?}");
        Arc::new(judged.manifest)
    }

    fn hosting(&self, manifest: &Manifest) -> Hosting {
        let temp = self.home().join("box");
        let shell = self.project.environment();
        let environment =
            Environment::new(&shell, &manifest.env, self.secrets.clone(), &temp.to_string_lossy());
        Hosting {
            bun: BunProgram { path: bun().unwrap(), env: BTreeMap::new() },
            spawner: Spawner::start().unwrap(),
            checkout: self.project.path(),
            temp,
            state: self.home().join("host"),
            spill: self.home().join("out"),
            sandbox: true,
            log: self.log.clone(),
            environment,
        }
    }

    fn sessions(&self) -> PathBuf {
        self.home().join("sessions")
    }

    async fn start(&self, session: &str) -> Result<(Daemon, LoadReport), StartError> {
        let files = Folder::open(&self.project.path()).unwrap();
        let manifest = self.manifest(&files);
        let url = if self.api == Api::OpenAi { self.model.openai_url() } else { self.model.url() };
        let choice = Choice {
            name: "scripted/scripted-1".to_owned(),
            api: self.api,
            base_url: url,
            key: Some(Key::new("sk-test")),
            key_env: None,
            context: None,
            output: None,
            warning: None,
        };
        let model = connect(&choice).unwrap();
        let enabled = manifest.agents.iter().filter(|(_, entry)| entry.value.enabled);
        let models = enabled.map(|(name, _)| (name.clone(), (model.clone(), None))).collect();
        let start = Start {
            hosting: self.hosting(&manifest),
            files: &files,
            manifest: manifest.clone(),
            models,
            session: session.to_owned(),
            sessions: self.sessions(),
            unattended: true,
            now: SystemTime::now,
        };
        Daemon::start(start).await
    }

    fn events_text(&self, session: &str) -> String {
        fs::read_to_string(self.sessions().join(session).join("events.jsonl")).unwrap()
    }

    fn logged(&self) -> String {
        self.log.0.lock().unwrap().join("\n")
    }
}

/// Reads events after `from` until one fulfils a condition.
async fn events_until(daemon: &Daemon, from: u64, mut last: impl FnMut(&Event) -> bool) -> Vec<Event> {
    let mut reader = daemon.events(from).unwrap();
    let mut events = Vec::new();
    while let Some(event) = reader.next().await.unwrap() {
        let is_last = last(&event);
        events.push(event);
        if is_last {
            break;
        }
    }
    events
}

/// Runs a turn to its end.
async fn turn(daemon: &Daemon, agent: &str, text: &str) -> Vec<Event> {
    let from = daemon.last_event();
    daemon.prompt(agent, text).await.unwrap();
    let session = daemon.session().to_owned();
    events_until(daemon, from, |event| event.session == session && finished(event).is_some()).await
}

fn finished(event: &Event) -> Option<FinishReason> {
    match event.body {
        EventBody::TurnFinished { reason, .. } => Some(reason),
        _ => None,
    }
}

/// The tool calls that ended, by tool.
fn results(events: &[Event]) -> BTreeMap<&str, (ToolStatus, &str)> {
    let ended = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolFinished { name, status, output, .. } => {
            Some((name.as_str(), (*status, output.as_str())))
        }
        _ => None,
    });
    ended.collect()
}

//! A project with agents, hosted tools, a scripted model and a harness that runs it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use beeuni_child::Spawner;
use beeuni_harness::native::{Native, Options};
use beeuni_harness::{
    AgentSetup, CallError, Harness, HostedTool, Listener, Prompt, Setup, Skill, ToolCall, Tools,
};
use beeuni_manifest::{Action, Agent, AgentMode, Entry, Manifest, Permission, Place, Selection, ToolAccess};
use beeuni_models::{Api, Choice, Key, Model, Policy, connect_with};
use beeuni_protocol::event::{EventBody, Reply, ToolStatus};
use beeuni_testkit::model::ScriptedModel;
use tempfile::TempDir;
use tokio::sync::Notify;

/// Far longer than anything takes; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Stage {
    pub home: TempDir,
    pub model: ScriptedModel,
    pub log: Arc<Log>,
    pub hosted: Arc<Hosted>,
    pub native: Native,
    plan: Plan,
}

/// What a test wants to be different.
#[derive(Clone)]
pub struct Plan {
    pub agents: Vec<(&'static str, Agent)>,
    pub tools: Vec<&'static str>,
    pub skills: Vec<Skill>,
    pub unattended: bool,
    /// What `webfetch` may reach although it is not public.
    pub reachable: Vec<std::net::IpAddr>,
    pub api: Api,
    /// In place of the scripted server.
    pub own_model: Option<Arc<dyn Model>>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            agents: vec![("lead", agent())],
            tools: vec!["echo", "slow", "deaf", "fails", "crashes", "panics", "memory", "scrape_webpage"],
            skills: Vec::new(),
            unattended: false,
            reachable: Vec::new(),
            api: Api::OpenAi,
            own_model: None,
        }
    }
}

/// An agent with every tool and no rules.
pub fn agent() -> Agent {
    Agent {
        file: None,
        enabled: true,
        harness: None,
        tools: ToolAccess::All,
        secrets: Selection::None,
        connectors: Selection::None,
        skills: Selection::All,
        description: None,
        model: None,
        mode: AgentMode::All,
        temperature: None,
        steps: None,
        permission: Permission::default(),
        hidden: false,
        prompt: String::new(),
    }
}

/// Rules as `(key, pattern, action)`.
pub fn rules(rules: &[(&str, &str, Action)]) -> Permission {
    let mut permission = Permission::default();
    for (key, pattern, action) in rules {
        permission.rules.entry((*key).to_owned()).or_default().insert((*pattern).to_owned(), *action);
    }
    permission
}

pub fn only(tools: &[&str]) -> ToolAccess {
    ToolAccess::Only(tools.iter().map(|name| (*name).to_owned()).collect())
}

impl Stage {
    pub async fn new() -> Self {
        Self::with(Plan::default()).await
    }

    pub async fn with(plan: Plan) -> Self {
        let home = tempfile::tempdir().unwrap();
        for folder in ["checkout", "temp", "spill", "outside"] {
            std::fs::create_dir(home.path().join(folder)).unwrap();
        }
        let model = ScriptedModel::start().await;
        let log = Arc::new(Log::default());
        let hosted = Arc::new(Hosted::new(&home, &plan.tools));
        let setup = setup(&home, &model, &hosted, &plan);
        let listener = Arc::clone(&log) as Arc<dyn Listener>;
        // Only the test's own server is reached; nothing else of this machine.
        let fetch = beeuni_fetch::Options { allow: plan.reachable.clone(), ..Default::default() };
        let native = Native::start_with(setup, listener, options(&home, &plan), fetch);
        Self { home, model, log, hosted, native, plan }
    }

    /// The same project with another harness, as after a new start of the program.
    pub async fn again(mut self) -> Self {
        let setup = self.setup();
        self.native.shut_down().await;
        self.log = Arc::new(Log::default());
        let listener = Arc::clone(&self.log) as Arc<dyn Listener>;
        self.native = Native::start(setup, listener, options(&self.home, &self.plan));
        self
    }

    pub fn setup(&self) -> Arc<Setup> {
        setup(&self.home, &self.model, &self.hosted, &self.plan)
    }

    /// A setup with other agents and tools.
    pub fn changed(&self, change: impl FnOnce(&mut Plan)) -> Arc<Setup> {
        let mut plan = self.plan.clone();
        change(&mut plan);
        let hosted = Arc::new(Hosted::new(&self.home, &plan.tools));
        setup(&self.home, &self.model, &hosted, &plan)
    }

    /// A path in the checkout.
    pub fn at(&self, path: &str) -> PathBuf {
        self.home.path().join("checkout").join(path)
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub async fn prompt(&self, session: &str, text: &str) {
        let prompt =
            Prompt { session: session.into(), agent: self.plan.agents[0].0.into(), text: text.into() };
        self.native.prompt(prompt).await.unwrap();
    }

    /// Runs a turn to its end and gives its events as lines.
    pub async fn turn(&self, session: &str, text: &str) -> String {
        let from = self.log.len();
        self.prompt(session, text).await;
        self.log.ended(session, from).await;
        self.log.lines(from)
    }

    /// The outcome of one call in a session of its own.
    pub async fn call(&self, tool: &str, arguments: &str) -> (ToolStatus, String) {
        let from = self.log.len();
        let session = format!("call-{from}");
        self.prompt(&session, &format!("CALL {tool} {arguments}\nSAY ok")).await;
        self.log.ended(&session, from).await;
        let outcome = self.log.since(from).into_iter().find_map(|(_, body)| match body {
            EventBody::ToolFinished { status, output, .. } => Some((status, output)),
            _ => None,
        });
        outcome.unwrap_or_else(|| panic!("{tool} was not called: {}", self.log.lines(from)))
    }

    /// Waits for the next thing that is asked and gives its id.
    pub async fn asked(&self, from: usize) -> String {
        let found = |events: &[(String, EventBody)]| {
            events.iter().find_map(|(_, body)| match body {
                EventBody::PermissionAsked { id, .. } | EventBody::QuestionAsked { id, .. } => {
                    Some(id.clone())
                }
                _ => None,
            })
        };
        self.log.wait(from, found).await
    }

    /// Replies to the next thing that is asked, and gives the turn's events as lines.
    pub async fn turn_with(&self, session: &str, text: &str, reply: Reply) -> String {
        let from = self.log.len();
        self.prompt(session, text).await;
        let id = self.asked(from).await;
        self.native.reply(&id, reply).await.unwrap();
        self.log.ended(session, from).await;
        self.log.lines(from)
    }

    /// What the model was asked breaks no provider's rule.
    pub fn assert_valid(&self) {
        assert_eq!(self.model.violations(), Vec::<String>::new());
    }
}

fn options(home: &TempDir, plan: &Plan) -> Options {
    Options {
        state: home.path().join("state"),
        spawner: Spawner::start().unwrap(),
        unattended: plan.unattended,
        now: || UNIX_EPOCH + Duration::from_secs(1_796_083_200),
    }
}

fn setup(home: &TempDir, model: &ScriptedModel, hosted: &Arc<Hosted>, plan: &Plan) -> Arc<Setup> {
    let mut manifest = Manifest { default_agent: plan.agents[0].0.to_owned(), ..Manifest::default() };
    let mut agents = BTreeMap::new();
    for (name, agent) in &plan.agents {
        manifest.agents.insert((*name).to_owned(), Entry { value: agent.clone(), place: Place::default() });
        let model = plan.own_model.clone().unwrap_or_else(|| connected(model, plan.api));
        let own = AgentSetup { model, context: None, skills: plan.skills.clone() };
        agents.insert((*name).to_owned(), own);
    }
    Arc::new(Setup {
        manifest: Arc::new(manifest),
        agents,
        tools: Arc::clone(hosted) as Arc<dyn Tools>,
        directory: home.path().join("checkout"),
        temp: home.path().join("temp"),
        spill: home.path().join("spill"),
    })
}

fn connected(model: &ScriptedModel, api: Api) -> Arc<dyn Model> {
    let choice = Choice {
        name: "scripted/scripted-1".into(),
        api,
        base_url: if api == Api::OpenAi { model.openai_url() } else { model.url() },
        key: Some(Key::new("k")),
        key_env: Some("SCRIPTED_KEY".into()),
        context: None,
        output: Some(4096),
        warning: None,
    };
    let patient = Policy { attempts: 3, base: Duration::from_millis(1), ..Policy::default() };
    connect_with(&choice, patient).unwrap()
}

/// What a listener heard.
#[derive(Default)]
pub struct Log {
    events: Mutex<Vec<(String, EventBody)>>,
    changed: Notify,
}

impl Listener for Log {
    fn event(&self, session: &str, body: EventBody) {
        self.events.lock().unwrap().push((session.to_owned(), body));
        self.changed.notify_waiters();
    }
}

impl Log {
    pub fn len(&self) -> usize {
        self.events.lock().unwrap().len()
    }

    pub fn since(&self, from: usize) -> Vec<(String, EventBody)> {
        self.events.lock().unwrap()[from..].to_vec()
    }

    /// Waits until the events hold something.
    pub async fn wait<T>(&self, from: usize, find: impl Fn(&[(String, EventBody)]) -> Option<T>) -> T {
        let search = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(found) = find(&self.events.lock().unwrap()[from..]) {
                    return found;
                }
                changed.await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, search).await;
        found.unwrap_or_else(|_| panic!("waited in vain after:\n{}", self.lines(from)))
    }

    pub async fn ended(&self, session: &str, from: usize) {
        let ended = |(of, body): &(String, EventBody)| {
            of == session && matches!(body, EventBody::TurnFinished { .. })
        };
        self.wait(from, |events| events.iter().any(ended).then_some(())).await;
    }

    /// Waits until a tool of that name has started.
    pub async fn started(&self, from: usize, tool: &str) {
        let started = |(_, body): &(String, EventBody)| matches!(body, EventBody::ToolStarted { name, .. } if name == tool);
        self.wait(from, |events| events.iter().any(started).then_some(())).await;
    }

    /// Waits until a tool of that name has ended.
    pub async fn finished(&self, from: usize, tool: &str) {
        let finished = |(_, body): &(String, EventBody)| matches!(body, EventBody::ToolFinished { name, .. } if name == tool);
        self.wait(from, |events| events.iter().any(finished).then_some(())).await;
    }

    /// The events a line each: pieces of text joined, ids and times left out, child sessions indented.
    pub fn lines(&self, from: usize) -> String {
        let mut lines: Vec<(String, String)> = Vec::new();
        for (session, body) in self.since(from) {
            let line = line(body);
            match lines.last_mut() {
                Some((of, before))
                    if *of == session && before.starts_with("say ") && line.starts_with("say ") =>
                {
                    before.push_str(&line["say ".len()..]);
                }
                _ => lines.push((session, line)),
            }
        }
        let indent = |session: &str| if session.contains('~') { "  " } else { "" };
        lines.into_iter().map(|(session, line)| format!("{}{line}\n", indent(&session))).collect()
    }
}

fn line(body: EventBody) -> String {
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    match body {
        EventBody::TurnStarted { turn, agent, model, .. } => format!("turn {turn} of {agent} on {model}"),
        EventBody::TextDelta { text } => format!("say {text}"),
        EventBody::ReasoningDelta { text } => format!("think {text}"),
        EventBody::ToolStarted { name, arguments, .. } => format!("start {name} {arguments}"),
        EventBody::ToolFinished { name, status, output, .. } => {
            format!("end {name} {}: {output}", word(serde_json::to_value(status).unwrap()))
        }
        EventBody::PermissionAsked { tool, patterns, .. } => format!("ask {tool} {patterns:?}"),
        EventBody::QuestionAsked { questions, .. } => {
            format!("question {:?}", questions.iter().map(|q| q.question.as_str()).collect::<Vec<_>>())
        }
        EventBody::Replied { .. } => "replied".to_owned(),
        EventBody::ChildSession { child, agent, .. } => format!("child {child} {agent}"),
        EventBody::Retrying { attempt, .. } => format!("retrying {attempt}"),
        EventBody::Usage(usage) => format!("usage {} {} {}", usage.input, usage.output, usage.cached),
        EventBody::TurnFinished { turn, reason, error } => {
            let error = error.map(|error| format!(": {error}")).unwrap_or_default();
            format!("turn {turn} {}{error}", word(serde_json::to_value(reason).unwrap()))
        }
    }
}

/// Hosted tools that a test needs, each by its name.
pub struct Hosted {
    names: Vec<&'static str>,
    spill: PathBuf,
    pub calls: Mutex<Vec<ToolCall>>,
}

/// The schema of every hosted tool here, spelled so that any rewriting would show.
pub const SCHEMA: &str =
    r#"{ "type":"object" , "properties": {"z": {"default": 0.10}, "a": {"enum":[60,null]}},"x-own":1 }"#;

impl Hosted {
    fn new(home: &TempDir, names: &[&'static str]) -> Self {
        Self { names: names.to_vec(), spill: home.path().join("spill"), calls: Mutex::default() }
    }
}

#[async_trait]
impl Tools for Hosted {
    fn list(&self) -> Vec<HostedTool> {
        let tool = |name: &&str| HostedTool {
            name: (*name).to_owned(),
            description: format!("The tool {name}."),
            parameters: serde_json::from_str(SCHEMA).unwrap(),
        };
        self.names.iter().map(tool).collect()
    }

    async fn call(&self, call: ToolCall) -> Result<String, CallError> {
        self.calls.lock().unwrap().push(call.clone());
        match call.name.as_str() {
            "slow" => {
                call.cancel.cancelled().await;
                Err(CallError::Aborted)
            }
            "deaf" => std::future::pending().await,
            "fails" => Err(CallError::Tool("the order is unknown".into())),
            "crashes" => Err(CallError::Host("the tool's process exited with code 3".into())),
            "panics" => panic!("a fault of the host"),
            _ => Ok(call.arguments),
        }
    }

    fn bound(&self, tool: &str, text: String) -> String {
        if text.len() <= 51_200 && text.lines().count() <= 2_000 {
            return text;
        }
        let file = self.spill.join(format!("{tool}.txt"));
        std::fs::write(&file, &text).unwrap();
        format!("{}\n\n[Output truncated: {} bytes]", &text[..100], text.len())
    }

    fn environment(&self, session: &str, agent: &str) -> BTreeMap<String, String> {
        let own = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("SESSION", session), ("AGENT", agent)];
        own.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

//! One session's box in this process: tool host, harness and journal, joined.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use beeuni_harness::native::{Native, Options};
use beeuni_harness::{AgentSetup, Harness as _, HarnessError, Prompt, Setup, Skill, Tools};
use beeuni_manifest::{Agent, Files, Harness, Manifest, skill_description};
use beeuni_models::Model;
use beeuni_protocol::event::Reply;
use beeuni_toolhost::{HostError, LoadReport, Redactor, Status};
use thiserror::Error;

use crate::door::{Door, Hosting};
use crate::journal::{Clock, EVENTS, Journal, Reader, private_folder};

/// What a daemon is started with.
pub struct Start<'a> {
    /// The tool host's part.
    pub hosting: Hosting,
    /// The project's files, for skills.
    pub files: &'a dyn Files,
    /// The judged manifest.
    pub manifest: Arc<Manifest>,
    /// Per enabled agent: its model and the model's window in tokens, where known.
    pub models: BTreeMap<String, (Arc<dyn Model>, Option<u64>)>,
    /// The session's id; its folder below `sessions` is made or gone on with.
    pub session: String,
    /// The folder with a folder per session.
    pub sessions: PathBuf,
    /// Nobody answers permissions and questions.
    pub unattended: bool,
    /// The clock.
    pub now: fn() -> SystemTime,
}

/// Why a daemon does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The session's folder cannot be used.
    #[error("the session's folder {path} cannot be used")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another program runs this session.
    #[error("session {0} is in use by another beeuni program; wait until it ends, or start a new session")]
    InUse(String),
    /// The tool host does not start.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// A running session.
pub struct Daemon {
    session: String,
    harness: Native,
    door: Arc<Door>,
    journal: Arc<Journal>,
    /// A turn has begun since the tools were loaded.
    is_warm: AtomicBool,
    /// Held as long as this program runs the session.
    _lock: File,
}

impl Daemon {
    /// Loads the tools and makes the harness ready. What did not load is in the report; the rest works.
    pub async fn start(start: Start<'_>) -> Result<(Daemon, LoadReport), StartError> {
        let Start { hosting, files, manifest, models, session, sessions, unattended, now } = start;
        let folder = sessions.join(&session);
        let at = |source| StartError::Folder { path: folder.clone(), source };
        private_folder(&folder).map_err(at)?;
        let lock = lock(&folder).await.map_err(at)?.ok_or_else(|| StartError::InUse(session.clone()))?;
        let secrets = Redactor::default();
        secrets.set(hosting.environment.private_values().iter().cloned());
        let clock: Clock = Arc::new(move || millis(now()));
        let journal = Journal::open(&folder.join(EVENTS), secrets, clock).map_err(at)?;

        let directory = hosting.checkout.clone();
        let (temp, spill, spawner) = (hosting.temp.clone(), hosting.spill.clone(), hosting.spawner.clone());
        let (door, report) = Door::open(hosting, manifest.clone(), Harness::Experimental, None).await?;
        let agents = models
            .into_iter()
            .filter_map(|(name, (model, context))| {
                let skills = skills(files, &manifest.agents.get(&name)?.value);
                Some((name, AgentSetup { model, context, skills }))
            })
            .collect();
        let tools: Arc<dyn Tools> = door.clone();
        let setup = Arc::new(Setup { manifest, agents, tools, directory, temp, spill });
        let options = Options { state: folder.join("conversations"), spawner, unattended, now };
        let harness = Native::start(setup, journal.clone(), options);
        Ok((Daemon { session, harness, door, journal, is_warm: AtomicBool::new(false), _lock: lock }, report))
    }

    /// The session's id.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Begins a turn; its events follow. Modules that were edited since the last turn are loaded first: a session in a
    /// working tree runs what stands there. (The manifest stays what it was at the start.)
    pub async fn prompt(&self, agent: &str, text: &str) -> Result<(), HarnessError> {
        if self.is_warm.swap(true, Ordering::Relaxed) {
            self.door.refresh().await;
        }
        let prompt = Prompt { session: self.session.clone(), agent: agent.to_owned(), text: text.to_owned() };
        self.harness.prompt(prompt).await
    }

    /// Ends the running turn, if any.
    pub async fn stop(&self) {
        self.harness.stop(&self.session).await;
    }

    /// Answers a permission or a question.
    pub async fn reply(&self, id: &str, reply: Reply) -> Result<(), HarnessError> {
        self.harness.reply(id, reply).await
    }

    /// The number of the last event of an earlier program; what that one's interruption added comes after it.
    pub fn opened_at(&self) -> u64 {
        self.journal.opened_at()
    }

    /// The number of the last event.
    pub fn last_event(&self) -> u64 {
        self.journal.last_seq()
    }

    /// The events after number `seq`, as they come.
    pub fn events(&self, seq: u64) -> io::Result<Reader> {
        self.journal.reader(seq)
    }

    /// How every tool is.
    pub fn status(&self) -> Status {
        self.door.status()
    }

    /// Stops everything; no process of this session is left afterwards.
    pub async fn shut_down(self) {
        self.harness.shut_down().await;
    }
}

/// How long a lock is waited for. A child that is just being started holds a copy of every descriptor until it becomes
/// its own program, so that a lock can outlive its owner by an instant.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// Takes the session for this program; `None` when another one has it. The kernel lets go when a program ends.
async fn lock(folder: &Path) -> io::Result<Option<File>> {
    let file =
        File::options().write(true).create(true).truncate(false).mode(0o600).open(folder.join("lock"))?;
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(None),
            Err(fs::TryLockError::WouldBlock) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// The skills that an agent may have: `skills/<name>/SKILL.md`.
fn skills(files: &dyn Files, agent: &Agent) -> Vec<Skill> {
    let names = files.folders("skills").into_iter().filter(|name| agent.skills.contains(name));
    let read = |name: String| {
        let folder = format!("skills/{name}");
        let text = files.read(&format!("{folder}/SKILL.md")).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Some(Skill { description: skill_description(&text).unwrap_or_default(), name, text, folder })
    };
    names.filter_map(read).collect()
}

fn millis(now: SystemTime) -> u64 {
    now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

//! The harness's own tools, one file each. A call is first read ([`Tool::prepare`]), then judged by what it is about
//! to touch, then run: so a rule and the tool never read the arguments in two ways.

mod bash;
mod edit;
mod glob;
mod grep;
mod list;
mod question;
mod read;
mod skill;
mod task;
mod todowrite;
mod webfetch;
mod write;

use std::sync::Arc;

use beeuni_manifest::Agent;
use beeuni_models::ToolSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::calls::{Answer, until_stopped};
use super::paths::{Places, Resolved};
use super::turn::Turn;
use crate::contract::AgentSetup;

/// A harness tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Bash,
    Read,
    Write,
    Edit,
    List,
    Glob,
    Grep,
    Task,
    Question,
    TodoWrite,
    WebFetch,
    Skill,
}

/// A call whose arguments were read.
pub(super) enum Ready {
    Bash(bash::Run),
    Read(read::Read),
    Write(write::Write),
    Edit(edit::Edit),
    List(list::List),
    Glob(glob::Glob),
    Grep(grep::Grep),
    Task(task::Task),
    Question(question::Ask),
    TodoWrite(todowrite::Todos),
    WebFetch(webfetch::Fetch),
    Skill(skill::Load),
}

impl Tool {
    /// All of them, in the order in which models see them. It is part of every request, so it never changes by itself:
    /// providers keep what they have read of a request only as far as it is the same as the one before.
    pub const ALL: [Tool; 12] = [
        Tool::Bash,
        Tool::Read,
        Tool::Write,
        Tool::Edit,
        Tool::List,
        Tool::Glob,
        Tool::Grep,
        Tool::Task,
        Tool::Question,
        Tool::TodoWrite,
        Tool::WebFetch,
        Tool::Skill,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Tool::Bash => "bash",
            Tool::Read => "read",
            Tool::Write => "write",
            Tool::Edit => "edit",
            Tool::List => "list",
            Tool::Glob => "glob",
            Tool::Grep => "grep",
            Tool::Task => "task",
            Tool::Question => "question",
            Tool::TodoWrite => "todowrite",
            Tool::WebFetch => "webfetch",
            Tool::Skill => "skill",
        }
    }

    pub fn named(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// What the model is told of it.
    pub fn schema(self, turn: &Turn, agent: &Agent, own: &AgentSetup) -> Option<ToolSchema> {
        let (description, parameters) = match self {
            Tool::Bash => (bash::DESCRIPTION.to_owned(), bash::PARAMETERS),
            Tool::Read => (read::DESCRIPTION.to_owned(), read::PARAMETERS),
            Tool::Write => (write::DESCRIPTION.to_owned(), write::PARAMETERS),
            Tool::Edit => (edit::DESCRIPTION.to_owned(), edit::PARAMETERS),
            Tool::List => (list::DESCRIPTION.to_owned(), list::PARAMETERS),
            Tool::Glob => (glob::DESCRIPTION.to_owned(), glob::PARAMETERS),
            Tool::Grep => (grep::DESCRIPTION.to_owned(), grep::PARAMETERS),
            Tool::Task => (task::description(&turn.setup, agent), task::PARAMETERS),
            Tool::Question => (question::DESCRIPTION.to_owned(), question::PARAMETERS),
            Tool::TodoWrite => (todowrite::DESCRIPTION.to_owned(), todowrite::PARAMETERS),
            Tool::WebFetch => (webfetch::DESCRIPTION.to_owned(), webfetch::PARAMETERS),
            Tool::Skill => (skill::description(agent, own), skill::PARAMETERS),
        };
        // The constants are valid JSON: a test reads each.
        let parameters: Box<RawValue> = serde_json::from_str(parameters).ok()?;
        Some(ToolSchema { name: self.name().to_owned(), description, parameters: Arc::from(parameters) })
    }

    /// Reads the arguments. The error is what the model reads.
    pub fn prepare(self, turn: &Turn, arguments: &str) -> Result<Ready, String> {
        let places = Places::new(&turn.setup);
        let read = Arguments { tool: self.name(), text: arguments };
        Ok(match self {
            Tool::Bash => Ready::Bash(bash::Run::new(read.parse()?, &places)?),
            Tool::Read => Ready::Read(read::Read::new(read.parse()?, &places)?),
            Tool::Write => Ready::Write(write::Write::new(read.parse()?, &places)?),
            Tool::Edit => Ready::Edit(edit::Edit::new(read.parse()?, &places)?),
            Tool::List => Ready::List(list::List::new(read.parse()?, places)?),
            Tool::Glob => Ready::Glob(glob::Glob::new(read.parse()?, places)?),
            Tool::Grep => Ready::Grep(grep::Grep::new(read.parse()?, places)?),
            Tool::Task => Ready::Task(read.parse()?),
            Tool::Question => Ready::Question(read.parse()?),
            Tool::TodoWrite => Ready::TodoWrite(read.parse()?),
            Tool::WebFetch => Ready::WebFetch(read.parse()?),
            Tool::Skill => Ready::Skill(read.parse()?),
        })
    }
}

/// The arguments of a call, for one tool.
struct Arguments<'a> {
    tool: &'static str,
    text: &'a str,
}

impl Arguments<'_> {
    /// Takes them as they are: nothing is turned into another type, what is too much is passed over.
    fn parse<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_str(self.text).map_err(|error| {
            // Where in the text it stands helps nobody: a model's arguments are one line.
            let words = error.to_string();
            let words = words.split(" at line ").next().unwrap_or_default();
            format!("the arguments do not fit {}: {words}", self.tool)
        })
    }
}

impl Ready {
    /// What the rules are matched against.
    pub fn subjects(&self) -> Vec<String> {
        match self {
            Ready::Bash(run) => run.subjects(),
            Ready::Read(read) => vec![read.file.shown.clone()],
            Ready::Write(write) => vec![write.file.shown.clone()],
            Ready::Edit(edit) => vec![edit.file.shown.clone()],
            Ready::List(list) => vec![list.folder.shown.clone()],
            Ready::Glob(glob) => vec![glob.folder.shown.clone()],
            Ready::Grep(grep) => vec![grep.place.shown.clone()],
            Ready::Task(task) => vec![task.subagent_type.clone()],
            Ready::WebFetch(fetch) => vec![fetch.subject()],
            Ready::Skill(skill) => vec![skill.name.clone()],
            Ready::Question(_) | Ready::TodoWrite(_) => vec!["*".to_owned()],
        }
    }

    /// The paths that lie outside of what belongs to the session; those need a permission of their own.
    pub fn outside(&self) -> Vec<String> {
        let place = match self {
            Ready::Bash(run) => &run.workdir,
            Ready::Read(read) => &read.file,
            Ready::Write(write) => &write.file,
            Ready::Edit(edit) => &edit.file,
            Ready::List(list) => &list.folder,
            Ready::Glob(glob) => &glob.folder,
            Ready::Grep(grep) => &grep.place,
            Ready::Task(_)
            | Ready::Question(_)
            | Ready::TodoWrite(_)
            | Ready::WebFetch(_)
            | Ready::Skill(_) => return Vec::new(),
        };
        let Resolved { path, outside, .. } = place;
        if *outside { vec![path.to_string_lossy().into_owned()] } else { Vec::new() }
    }

    pub async fn run(self, turn: &Turn, call_id: &str, cancel: &CancellationToken) -> Answer {
        match self {
            Ready::Bash(run) => run.run(turn, cancel).await,
            Ready::Read(read) => blocking(turn, cancel, move |cancel| read.run(cancel)).await,
            Ready::List(list) => blocking(turn, cancel, move |_| list.run()).await,
            Ready::Glob(glob) => blocking(turn, cancel, move |cancel| glob.run(cancel)).await,
            Ready::Grep(grep) => {
                let permission = turn.permission();
                blocking(turn, cancel, move |cancel| grep.run(&permission, cancel)).await
            }
            Ready::Write(write) => {
                let _alone = turn.shared.files.lock().await;
                blocking(turn, cancel, move |_| write.run()).await
            }
            Ready::Edit(edit) => {
                let _alone = turn.shared.files.lock().await;
                blocking(turn, cancel, move |_| edit.run()).await
            }
            Ready::Task(task) => task.run(turn, call_id, cancel).await,
            Ready::Question(ask) => ask.run(turn, call_id, cancel).await,
            Ready::TodoWrite(todos) => todos.run().into(),
            Ready::WebFetch(fetch) => fetch.run(turn, cancel).await,
            Ready::Skill(skill) => {
                let own = turn.setup.agents.get(&turn.agent);
                let skills = own.map(|own| own.skills.clone()).unwrap_or_default();
                let places = Places::new(&turn.setup);
                blocking(turn, cancel, move |_| skill.run(&skills, &places)).await
            }
        }
    }
}

/// Runs what waits for the disk beside the loop.
async fn blocking(
    turn: &Turn,
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Result<String, String> + Send + 'static,
) -> Answer {
    let signal = cancel.clone();
    let task = tokio::task::spawn_blocking(move || work(&signal));
    match until_stopped(task, cancel).await {
        None => Answer::stopped(turn),
        Some(Ok(result)) => result.into(),
        Some(Err(error)) => Answer::error(format!("the harness failed inside: {error}")),
    }
}

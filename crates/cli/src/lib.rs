//! The beeuni program: parses, calls, prints, and turns failures into exit codes.
//!
//! Everything that the program knows of its surroundings enters through [`World`] and is passed down as a
//! [`Context`]: below this file nothing reads the process's environment, its working folder or the clock.

mod commands;
mod env_file;
mod error;
mod loading;
mod local;
mod program;
mod project;
mod release;
mod runtime;
mod schemas;
mod session;
mod shell;
mod tracked;
mod ui;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Parser as _;

pub use crate::commands::command;
pub use crate::error::{Exit, Failure, Outcome};
pub use crate::runtime::{BunProgram, Found, NoBun, find_bun};
pub use crate::ui::{Input, Output, Ui};

/// What whoever starts the program gives it.
#[derive(Debug)]
pub struct World {
    /// The program's name and its arguments.
    pub args: Vec<OsString>,
    /// The environment. Variables that are not UTF-8 are passed over.
    pub env: BTreeMap<OsString, OsString>,
    /// The working folder, or why there is none.
    pub cwd: io::Result<PathBuf>,
    /// The time at the start.
    pub now: SystemTime,
    /// Standard input.
    pub stdin: Input,
    /// Standard output: data only.
    pub stdout: Output,
    /// Standard error: everything else.
    pub stderr: Output,
}

/// What a command may know and use.
#[derive(Debug)]
pub struct Context {
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The folder to start from: `-C DIR`, else the working folder. Absolute.
    pub cwd: PathBuf,
    /// The time at the start.
    pub now: SystemTime,
    /// Standard input.
    pub stdin: Input,
    /// The way to speak to the user.
    pub ui: Ui,
}

impl Context {
    /// A variable that is set and not empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// Runs the program and says with which code it ends: 0 fine, 1 the operation failed, 2 wrong usage or no manifest.
pub fn main(world: World) -> ExitCode {
    let World { args, env, cwd, now, stdin, stdout, stderr } = world;
    let env: BTreeMap<String, String> = env
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let ui = Ui::new(stdout, stderr, &env);
    let mut context = Context { env, cwd: PathBuf::new(), now, stdin, ui };
    let exit = match start(args, cwd, &mut context) {
        Ok(exit) => exit,
        Err(failure) => context.ui.failure(&failure),
    };
    context.ui.finish(exit).into()
}

fn start(args: Vec<OsString>, cwd: io::Result<PathBuf>, context: &mut Context) -> Outcome {
    let cli = match commands::Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(refusal) => return Ok(context.ui.clap(&refusal)),
    };
    context.cwd = cli.start_folder(cwd)?;
    commands::run(cli.command, context)
}

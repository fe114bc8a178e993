//! The commands, one verb one file. A new verb is a new file, a line in [`Command`] and a line in [`run`].

mod completions;
mod doctor;
mod init;
mod run;
mod setup;
mod tools;
mod validate;

use std::io;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::session::interrupts::Interrupts;
use crate::{Context, Exit, Failure, Outcome};

/// Agents whose tools are written once, as one TypeScript file each, and run the same on every harness.
#[derive(Debug, Parser)]
#[command(name = "beeuni", version, propagate_version = true, max_term_width = 100)]
#[command(arg_required_else_help = true, after_help = "Start with: beeuni setup && beeuni init my-project")]
pub(crate) struct Cli {
    /// Start in this folder instead of the working folder
    #[arg(short = 'C', global = true, value_name = "DIR")]
    folder: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The absolute folder that the command starts in.
    pub(crate) fn start_folder(&self, cwd: io::Result<PathBuf>) -> Result<PathBuf, Failure> {
        let folder = match (cwd, &self.folder) {
            (_, Some(folder)) if folder.is_absolute() => folder.clone(),
            (Ok(cwd), Some(folder)) => cwd.join(folder),
            (Ok(cwd), None) => cwd,
            (Err(error), _) => {
                return Err(Failure::usage(format!("there is no working folder to start from: {error}")));
            }
        };
        if !Path::is_dir(&folder) {
            return Err(Failure::usage(format!("{} is not a folder", folder.display())));
        }
        Ok(folder)
    }
}

/// Every verb and noun at the top.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Setup(setup::Args),
    Doctor(doctor::Args),
    Init(init::Args),
    Validate(validate::Args),
    Run(run::Args),
    #[command(subcommand)]
    Tools(tools::Command),
    Completions(completions::Args),
}

/// Carries a command out.
pub(crate) fn run(command: Command, context: &mut Context) -> Outcome {
    match command {
        Command::Setup(args) => setup::run(&args, context),
        Command::Doctor(args) => doctor::run(&args, context),
        Command::Init(args) => init::run(&args, context),
        Command::Validate(args) => validate::run(&args, context),
        Command::Run(args) => run::run(&args, context),
        Command::Tools(verb) => tools::run(verb, context),
        Command::Completions(args) => completions::run(&args, context),
    }
}

/// The whole command line, for completions and for the test that compares it with the docs.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the asynchronous part of a command to its end, or until the program is asked to end: what the command holds
/// (processes, temporary folders) then goes in order.
fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    block_on_own_signals(async {
        let mut interrupts = Interrupts::listen().map_err(Failure::failed)?;
        tokio::select! {
            result = future => result,
            _ = interrupts.next() => Err(Failure { exit: Exit::Stopped, ..Failure::failed("stopped") }),
        }
    })
}

/// The same for a command that hears signals itself. One worker: calls are short exchanges with processes, and waking a
/// second thread for each costs more than it brings. What still reads or waits in the background is left behind.
fn block_on_own_signals<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(Failure::failed)?;
    let result = runtime.block_on(future);
    runtime.shutdown_background();
    result
}

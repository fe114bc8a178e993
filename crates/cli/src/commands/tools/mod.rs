//! `beeuni tools`: what a project's sessions get. A new verb is a new file, a line in [`Command`] and one in [`run`].

mod call;
mod eject;
mod ls;

use clap::Subcommand;

use crate::{Context, Outcome};

/// List, call and take over the tools of a project
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  beeuni tools ls")]
pub(crate) enum Command {
    Ls(ls::Args),
    Call(call::Args),
    Eject(eject::Args),
}

pub(crate) fn run(verb: Command, context: &mut Context) -> Outcome {
    match verb {
        Command::Ls(args) => ls::run(&args, context),
        Command::Call(args) => call::run(&args, context),
        Command::Eject(args) => eject::run(&args, context),
    }
}

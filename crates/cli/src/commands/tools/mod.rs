//! `beeuni tools`: what a project's sessions get. A new verb is a new file, a line in [`Command`] and one in [`run`].

use clap::Subcommand;

use crate::{Context, Outcome};

/// List, call and take over the tools of a project
#[derive(Debug, Subcommand)]
pub(crate) enum Command {}

pub(crate) fn run(verb: Command, _context: &mut Context) -> Outcome {
    match verb {}
}

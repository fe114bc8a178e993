//! `beeuni completions`.

use clap_complete::Shell;

use crate::{Context, Exit, Outcome};

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  beeuni completions bash > ~/.local/share/bash-completion/completions/beeuni"
)]
pub(crate) struct Args {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "beeuni", &mut script);
    context.ui.raw(&script);
    Ok(Exit::Fine)
}

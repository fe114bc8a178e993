//! The list of chores.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

use crate::{bench, demo, run, setup, test};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The house chores of the Beeuni repository")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install what the tests and the demo need: our TypeScript tools and the pinned Bun
    Setup,
    /// Everything that CI checks: format, lints, types, tests
    Test,
    /// From nothing to an answer: a fresh project, a real tool, a model that calls it
    Demo,
    /// The speed table, each row beside a named peer in the same run
    Bench {
        /// Only rows whose name contains this
        filter: Option<String>,
    },
}

pub fn main() -> ExitCode {
    let outcome = repository().and_then(|root| match Args::parse().chore {
        Chore::Setup => setup::run(&root).map(|_| ()),
        Chore::Test => test::run(&root),
        Chore::Demo => demo::run(&root),
        Chore::Bench { filter } => bench::run(&root, filter.as_deref()),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            run::say(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The repository's root: cargo tells every program that it runs where its package lies.
fn repository() -> Result<PathBuf> {
    let package = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let root = Path::new(&package).parent().context("xtask lies in no workspace")?;
    Ok(root.to_owned())
}

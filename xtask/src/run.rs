//! Runs programs step by step and says so.
#![allow(clippy::print_stderr, reason = "a chore talks to the person who runs it")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Says one line on standard error.
pub fn say(line: &str) {
    eprintln!("{line}");
}

/// A program with its arguments, in a folder.
pub fn command<S: AsRef<OsStr>>(folder: &Path, program: &str, args: &[S]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command
}

/// Announces and runs a step; its output goes to the terminal.
pub fn step(what: &str, mut command: Command) -> Result<()> {
    say(&format!("\n── {what}"));
    let status =
        command.status().with_context(|| format!("{what}: cannot start {:?}", command.get_program()))?;
    if !status.success() {
        bail!("{what}: {status}");
    }
    Ok(())
}

/// Runs a program and gives its standard output; standard error goes to the terminal.
pub fn output(what: &str, mut command: Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{what}: cannot start {:?}", command.get_program()))?;
    if !output.status.success() {
        bail!("{what}: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{what}: printed no UTF-8"))
}

/// Builds a program of the workspace and gives its path.
pub fn build(root: &Path, package: &str, program: &str, release: bool) -> Result<PathBuf> {
    let mut args = vec!["build", "--locked", "--package", package];
    if release {
        args.push("--release");
    }
    step(&format!("cargo {}", args.join(" ")), command(root, "cargo", &args))?;
    let folder = if release { "release" } else { "debug" };
    Ok(target(root)?.join(folder).join(program))
}

/// Where cargo puts what it builds.
fn target(root: &Path) -> Result<PathBuf> {
    let metadata =
        output("cargo metadata", command(root, "cargo", &["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(folder))
}

//! The `beeuni` program as its users see it: the real binary, in a project with a home of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod call;
mod contract;
mod eject;
mod frame;
mod init;
mod ls;
mod project_fixture;
mod run;
mod setup;
mod specs;
mod validate;

use beeuni_testkit::project::Project;

/// The program under test.
const BEEUNI: &str = env!("CARGO_BIN_EXE_beeuni");

/// Runs `beeuni` and writes down what it printed: the exit code, then standard output, then standard error. The
/// project's folder shows as `[project]`.
fn beeuni(project: &Project, args: &[&str]) -> String {
    shown(project, &project.run(BEEUNI, args))
}

fn shown(project: &Project, output: &std::process::Output) -> String {
    let folder = project.path().to_string_lossy().into_owned();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&folder, "[project]");
    let code = output.status.code().map_or_else(|| "signal".to_owned(), |code| code.to_string());
    format!("exit {code}\n--- stdout\n{}--- stderr\n{}", text(&output.stdout), text(&output.stderr))
}

/// A project with this manifest.
fn project(manifest: &str) -> Project {
    let project = Project::new();
    project.write("beeuni.yaml", manifest);
    project
}

/// A module that loads.
const MODULE: &str = "export default { description: 'd', parameters: { type: 'object', properties: {} }, execute() { return 'ok' } }\n";

//! The `beeuni` program: hands the process's surroundings to the library.

use std::process::ExitCode;
use std::time::SystemTime;

use beeuni_cli::{Input, Output, World};

fn main() -> ExitCode {
    beeuni_cli::main(World {
        args: std::env::args_os().collect(),
        env: std::env::vars_os().collect(),
        cwd: std::env::current_dir(),
        now: SystemTime::now(),
        stdin: Input::of(std::io::stdin()),
        stdout: Output::of(std::io::stdout()),
        stderr: Output::of(std::io::stderr()),
    })
}

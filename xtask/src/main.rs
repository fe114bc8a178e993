//! The house chores: `cargo xtask setup | test | demo | bench`.

mod bench;
mod chores;
mod demo;
mod orders;
mod run;
mod setup;
mod test;

fn main() -> std::process::ExitCode {
    chores::main()
}

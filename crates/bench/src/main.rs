//! The speed table: each row beside a named peer, in one run, as ratios. Run by `cargo xtask bench [FILTER]`.

#![allow(clippy::print_stdout, reason = "the table is printed")]

mod calls;
mod cold;
mod echo;
mod memory;
mod peers;
mod rows;
mod stop;
mod table;
mod validate;

fn main() -> anyhow::Result<()> {
    rows::run()
}

//! The `beeuni` program.
fn main() {}

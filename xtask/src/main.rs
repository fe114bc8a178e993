//! The house chores.
fn main() {}

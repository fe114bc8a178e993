//! The speed table.
fn main() {}

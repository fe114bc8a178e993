//! The witness is tested by itself, with nothing of the product.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod model;
mod project;
mod spec;
mod wire;

//! Real children, real kernel.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod lifetime;

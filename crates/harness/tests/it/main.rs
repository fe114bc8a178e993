//! The experimental harness over real HTTP with a scripted model, real files and real children.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod access;
mod asking;
mod bash;
mod files;
mod lifecycle;
mod odd_models;
mod stage;
mod subagents;
mod turns;
mod webfetch;

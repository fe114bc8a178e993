//! What the manifest's readers, users and editors see.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, missing_docs)]

mod access;
mod edit;
mod edit_corpus;
mod hostile;
mod imports;
mod judging;
mod permission;
mod rendering;
mod seeds;

//! The house rules as tests: who may use whom, how long a file may be, where what may stand.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod edges;
mod house;

use std::path::PathBuf;

/// The repository's root.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

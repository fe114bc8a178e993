//! Test support: a scripted model server, temporary projects, a spec runner.
//!
//! It is an independent witness: it shares no code with the product, so that a fault on both sides cannot hide itself.

pub mod model;
pub mod project;
pub mod spec;
pub mod wire;

use std::path::{Path, PathBuf};

/// The Bun that tests run: `BEEUNI_BUN`, else the one that `runtime/package.json` pins, when it is installed.
#[must_use]
pub fn bun() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("BEEUNI_BUN") {
        return Some(PathBuf::from(path));
    }
    let scope = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/node_modules/@oven");
    let mut found: Vec<PathBuf> = scope
        .read_dir()
        .ok()?
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("bun-"))
        .filter_map(|entry| entry.path().join("bin/bun").canonicalize().ok())
        .collect();
    // Several variants can be installed; the shortest name is the one for every processor's full speed.
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    found.into_iter().next()
}

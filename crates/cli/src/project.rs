//! The project that a command works on: its folder, and its manifest as it was judged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use beeuni_daemon::checkout::{Folder, MANIFEST, find_root};
use beeuni_manifest::{Finding, Judged, Severity, read, render};

use crate::{Context, Failure};

/// A project on this machine.
#[derive(Debug)]
pub(crate) struct Project {
    /// The checkout's root, absolute.
    pub(crate) root: PathBuf,
    /// Its files.
    pub(crate) files: Folder,
    /// Its manifest and what is wrong with it.
    pub(crate) judged: Judged,
}

impl Project {
    /// Finds the nearest `beeuni.yaml` from the command's folder upwards and judges it. `environment` are the names that
    /// a session would have; without them `env.required` is not checked.
    pub(crate) fn find(
        context: &Context,
        environment: Option<BTreeSet<String>>,
    ) -> Result<Project, Failure> {
        let root = find_root(&context.cwd).ok_or_else(|| no_manifest(&context.cwd))?;
        let files = Folder::open(&root)
            .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", root.display())))?;
        let judged = read(&files, MANIFEST, &beeuni_manifest::Context { environment });
        Ok(Project { root: files.root().to_owned(), files, judged })
    }

    /// Refuses to start a session from a manifest with errors, except where they concern single tools: those are left
    /// out and the rest works. Says what was left out.
    pub(crate) fn startable(&self, context: &mut Context) -> Result<(), Failure> {
        let is_error = |finding: &&Finding| finding.severity == Severity::Error;
        let errors: Vec<&Finding> = self.judged.findings.iter().filter(is_error).collect();
        let (single, fatal): (Vec<_>, Vec<_>) =
            errors.into_iter().partition(|finding| finding.path.starts_with("tools."));
        for finding in &fatal {
            context.ui.talk(render(finding, &self.judged.sources, false));
        }
        if !fatal.is_empty() {
            let words = format!("{MANIFEST} has errors ({}); nothing was started", fatal.len());
            return Err(Failure::failed(words).hint("correct them; `beeuni validate` shows them all"));
        }
        for finding in &single {
            context.ui.warning(format!("{}: {} (left out)", finding.path, finding.message));
        }
        Ok(())
    }
}

fn no_manifest(from: &Path) -> Failure {
    Failure::usage(format!("there is no {MANIFEST} in {} or above it", from.display()))
        .hint("go into a project, use -C DIR, or make one with `beeuni init`")
}

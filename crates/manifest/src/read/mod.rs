//! From bytes to a judged manifest: everything that is understood, and every finding at once.

mod agents;
mod documents;
mod frontmatter;
mod limits;
mod models;
mod reader;
mod references;
mod skill;
mod tools;
mod top;

use std::collections::BTreeSet;

use crate::Severity;
use crate::files::Files;
use crate::finding::{Finding, Sources};
use crate::manifest::Manifest;

use reader::Reader;
pub use skill::skill_description;

/// The most findings that are kept; further ones would only repeat a mistake.
const MAX_FINDINGS: usize = 1000;

/// What a verdict depends on beside the files.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The names that are set in the environment or as secrets; `None` where that is not known, and not checked.
    pub environment: Option<BTreeSet<String>>,
}

/// A manifest, and what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// What was understood. With an error among the findings nothing should start from it.
    pub manifest: Manifest,
    /// Everything that is wrong, in the order of the files and then of the lines.
    pub findings: Vec<Finding>,
    /// The text of every file that was read, for [`crate::render()`].
    pub sources: Sources,
    /// `false` when the root file is missing or cannot be read; the finding says why.
    pub readable: bool,
}

impl Judged {
    /// Whether a finding is an error.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
}

/// Reads the manifest at `root` (relative to the project's root, as `beeuni.yaml`) with its imports and agents' files,
/// and judges it. Never fails: what is not understood is left out and has a finding.
pub fn read(files: &dyn Files, root: &str, context: &Context) -> Judged {
    let mut reader = Reader::new(files, context);
    let loaded = documents::load(&mut reader, root);
    let manifest = match &loaded {
        Some(loaded) => top::merge(&mut reader, loaded),
        None => Manifest::default(),
    };
    let readable = reader.sources.text(root).is_some();
    let Reader { mut findings, sources, .. } = reader;
    let by_place = |finding: &Finding| (sources.order(&finding.place.file), finding.span.start);
    findings.sort_by_key(by_place);
    // A file that two agents share, or an alias, would say the same twice.
    findings.dedup();
    if let Some(more) = findings.len().checked_sub(MAX_FINDINGS).filter(|more| *more > 0) {
        // Errors are kept first: a flood of warnings must not hide one.
        findings.sort_by_key(|finding| finding.severity);
        findings.truncate(MAX_FINDINGS);
        findings.sort_by_key(by_place);
        let message = format!("{more} more findings are not shown");
        let place = sources.place(root, 0);
        findings.push(Finding {
            severity: Severity::Warning,
            path: String::new(),
            message,
            place,
            span: 0..0,
        });
    }
    Judged { manifest, findings, sources, readable }
}

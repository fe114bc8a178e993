//! The project that a command works on: its folder, and its manifest as it was judged.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use beeuni_daemon::checkout::{Folder, MANIFEST, find_root};
use beeuni_manifest::{Files as _, Finding, Judged, Place, Severity, Sources, read, render};

use crate::{Context, Failure};

/// Where OpenCode's own tools lie: on the standard harness a file there beats the tool of its name (H2).
const OPENCODE_TOOLS: &str = "harnesses/opencode/tools";

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
    pub(crate) fn find(context: &Context, environment: Option<BTreeSet<String>>) -> Result<Project, Failure> {
        let root = find_root(&context.cwd).ok_or_else(|| no_manifest(&context.cwd))?;
        let files = Folder::open(&root)
            .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", root.display())))?;
        let judged = read(&files, MANIFEST, &beeuni_manifest::Context { environment });
        Ok(Project { root: files.root().to_owned(), files, judged })
    }

    /// Refuses to start a session from a manifest with errors, except where they concern single tools: those are left
    /// out and the rest works. Says what was left out.
    pub(crate) fn startable(&self, context: &mut Context) -> Result<(), Failure> {
        let (single, fatal) = self.errors();
        for finding in &fatal {
            context.ui.talk(render(std::slice::from_ref(*finding), &self.judged.sources, false));
        }
        if !fatal.is_empty() {
            let words = format!("{MANIFEST} has errors ({}); nothing was started", fatal.len());
            return Err(Failure::failed(words).hint("correct them; `beeuni validate` shows them all"));
        }
        let declared = self.judged.manifest.session_tools();
        for finding in &single {
            // What is still on the list is loaded, fails there and is told then.
            if declared.iter().any(|tool| finding.path == format!("tools.{}", tool.name)) {
                continue;
            }
            context.ui.warning(format!("{}: {} (left out)", finding.path, finding.message));
        }
        Ok(())
    }

    /// The errors, apart: those that concern single tools, which are left out, and those that no session starts with.
    pub(crate) fn errors(&self) -> (Vec<&Finding>, Vec<&Finding>) {
        let is_error = |finding: &&Finding| finding.severity == Severity::Error;
        let errors = self.judged.findings.iter().filter(is_error);
        errors.partition(|finding| finding.path.starts_with("tools."))
    }

    /// The errors because of which some file is not known whole: it may declare anything.
    pub(crate) fn broken(&self) -> Vec<Finding> {
        let is_broken = |finding: &&Finding| {
            finding.severity == Severity::Error
                && (self.is_opaque() || finding.path.is_empty() || finding.path.starts_with("imports"))
        };
        self.judged.findings.iter().filter(is_broken).cloned().collect()
    }

    /// The absolute path of the root manifest.
    pub(crate) fn manifest_path(&self) -> PathBuf {
        self.root.join(MANIFEST)
    }

    /// Whether nothing could be made of the root file: it has a finding, and no tool is known.
    fn is_opaque(&self) -> bool {
        self.judged.manifest.files.is_empty()
    }

    /// The files that beat a tool of the same name on the standard harness: name and path.
    pub(crate) fn opencode_tools(&self) -> Vec<(String, String)> {
        let files = self.files.file_names(OPENCODE_TOOLS).into_iter();
        let stem =
            |file: &str| file.strip_suffix(".ts").or_else(|| file.strip_suffix(".js")).map(str::to_owned);
        files.filter_map(|file| Some((stem(&file)?, format!("{OPENCODE_TOOLS}/{file}")))).collect()
    }

    /// A finding about one tool, at the line that declares it.
    pub(crate) fn about_tool(&self, severity: Severity, name: &str, message: String) -> Finding {
        let declared = self.judged.manifest.tools.entries.get(name).map(|entry| entry.place.clone());
        let place = declared.unwrap_or_else(|| Place { file: MANIFEST.to_owned(), line: 1, column: 1 });
        self.about(severity, format!("tools.{name}"), place, message)
    }

    /// A finding about what stands at `place`.
    pub(crate) fn about(&self, severity: Severity, path: String, place: Place, message: String) -> Finding {
        let span = span(&self.judged.sources, &place);
        Finding { severity, path, message, place, span }
    }

    /// Refuses to start a session without a variable that the project needs.
    pub(crate) fn required(&self, names: &BTreeSet<String>) -> Result<(), Failure> {
        let required = self.judged.manifest.env.required.iter();
        let missing: Vec<&str> = required.filter(|name| !names.contains(*name)).map(String::as_str).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Failure::failed(format!("this project needs {}, which is not set", missing.join(", ")))
            .hint("set it in the shell, or in a file that you give with --env-file"))
    }
}

fn no_manifest(from: &Path) -> Failure {
    Failure::usage(format!("there is no {MANIFEST} in {} or above it", from.display()))
        .hint("go into a project, use -C DIR, or make one with `beeuni init`")
}

/// The bytes from a place to the end of its line, without a comment.
fn span(sources: &Sources, place: &Place) -> Range<usize> {
    let Some(text) = sources.text(&place.file) else { return 0..0 };
    let before = place.line.saturating_sub(1);
    let line = text.split_inclusive('\n').nth(before).unwrap_or_default();
    let start: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
    let column: usize = line.chars().take(place.column.saturating_sub(1)).map(char::len_utf8).sum();
    let code = line.split(" #").next().unwrap_or(line).trim_end();
    start + column..start + code.len().max(column)
}

//! Which files a session needs and a release would lack, because Git does not track them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use beeuni_daemon::checkout::MANIFEST;
use beeuni_manifest::{Files as _, Finding, Place, Severity, ToolSource};
use beeuni_toolhost::LoadReport;

use crate::Context;
use crate::project::Project;
use crate::tracked::{Untracked, needed, untracked};

/// How many files that one module imports are named one by one.
const MAX_IMPORTS: usize = 3;

/// Where skills lie, each in a folder of its own.
const SKILLS: &str = "skills";

/// How a file of the project comes to be needed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// A tool's own module.
    Module,
    /// A module imports it, or settings beside it say how it is read.
    Imported,
    /// The manifest names it, or it is found where skills lie.
    Named,
}

/// A file that a session needs, and who says so.
struct Need {
    /// As Git knows it: not beyond a link.
    file: String,
    path: String,
    place: Place,
    why: Why,
}

/// Every file that must be in a release.
fn needs(project: &Project, report: Option<&LoadReport>) -> Vec<Need> {
    let mut all = Vec::new();
    let mut add = |file: &str, path: String, place: Place, why: Why| {
        let files = needed(&project.files, file).into_iter();
        all.extend(files.map(|file| Need { file, path: path.clone(), place: place.clone(), why }));
    };
    let manifest = &project.judged.manifest;
    for file in manifest.files.iter().skip(1) {
        add(file, "imports".to_owned(), first(file), Why::Named);
    }
    for (name, agent) in &manifest.agents {
        if let Some(file) = &agent.value.file {
            add(file, format!("agents.{name}"), agent.place.clone(), Why::Named);
        }
    }
    for name in project.files.folders(SKILLS) {
        let file = format!("{SKILLS}/{name}/SKILL.md");
        add(&file, format!("skills.{name}"), first(&file), Why::Named);
    }
    let modules = manifest.tools.entries.iter().filter_map(|(name, entry)| match &entry.value {
        ToolSource::Module(module) => Some((name, module, &entry.place)),
        ToolSource::Beeuni => None,
    });
    for (name, module, place) in modules.clone() {
        add(module, format!("tools.{name}"), place.clone(), Why::Module);
    }
    for (name, _, place) in modules {
        let loaded = report.and_then(|report| report.loaded.iter().find(|tool| tool.name == **name));
        let mut files = loaded.map(|tool| tool.files.clone()).unwrap_or_default();
        // The project's own files first: packages are many, and one hint for them is enough.
        files.sort_by_key(|file| file.contains("/node_modules/"));
        for file in files.iter().filter_map(|file| Path::new(file).strip_prefix(&project.root).ok()?.to_str())
        {
            add(file, format!("tools.{name}"), place.clone(), Why::Imported);
        }
    }
    all
}

fn first(file: &str) -> Place {
    Place { file: file.to_owned(), line: 1, column: 1 }
}

/// Files of the project that Git would leave out of a release (L6), each told once. `report` knows what modules import.
pub(crate) async fn left_out(
    project: &Project,
    context: &mut Context,
    report: Option<&LoadReport>,
) -> Vec<Finding> {
    let needed = needs(project, report);
    let mut paths: BTreeSet<String> = needed.iter().map(|need| need.file.clone()).collect();
    if paths.is_empty() {
        return Vec::new();
    }
    let root = project.files.identity(MANIFEST);
    paths.insert(root.clone());
    let untracked = match untracked(&project.root, &paths, &context.env).await {
        Ok(untracked) => untracked,
        Err(reason) => {
            context.ui.talk(format_args!("Whether Git tracks the project's files was not checked: {reason}"));
            return Vec::new();
        }
    };
    let mut missing: BTreeMap<String, Untracked> =
        untracked.into_iter().map(|file| (file.path.clone(), file)).collect();
    // Before the manifest's first commit every file is untracked, and none of them is forgotten.
    let is_new = missing.remove(&root).is_some();
    let mut found = Vec::new();
    let mut imports: BTreeMap<String, usize> = BTreeMap::new();
    for Need { file, path, place, why } in needed {
        if is_new && why == Why::Named {
            continue;
        }
        let Some(file) = missing.remove(&file) else { continue };
        let mut message = file.message();
        if why == Why::Imported {
            let count = imports.entry(path.clone()).or_default();
            *count += 1;
            match *count {
                ..=MAX_IMPORTS => message = format!("needs a file that a release would lack. {message}"),
                // A folder of packages would repeat itself a thousand times.
                _ => continue,
            }
        }
        found.push(project.about(Severity::Warning, path, place, message));
    }
    for (path, count) in imports.into_iter().filter(|(_, count)| *count > MAX_IMPORTS) {
        let place = found.iter().find(|finding| finding.path == path).map(|finding| finding.place.clone());
        let message = match count - MAX_IMPORTS {
            1 => "needs 1 more file that Git does not track".to_owned(),
            more => format!("needs {more} more files that Git does not track"),
        };
        found.push(project.about(Severity::Warning, path, place.unwrap_or_default(), message));
    }
    found
}

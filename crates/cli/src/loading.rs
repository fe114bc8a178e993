//! Loads a project's modules the way a session does, and lets them go again.

use std::collections::BTreeMap;
use std::sync::Arc;

use beeuni_daemon::Door;
use beeuni_manifest::Harness;
use beeuni_toolhost::{Level, LoadReport};

use crate::local::Local;
use crate::project::Project;
use crate::{Context, Failure, find_bun};

/// What loads and what does not (M7). `None` where nothing can be loaded, such as without a Bun or a folder to work in:
/// one line on standard error says so, and what is known without loading stays of use.
pub(crate) async fn load(project: &Project, context: &mut Context) -> Option<LoadReport> {
    if let Err(missing) = find_bun(&context.env) {
        context.ui.talk(format_args!("The modules were not loaded: {missing}. Run `beeuni setup`."));
        return None;
    }
    let loaded = load_all(project, context).await;
    loaded
        .map_err(|failure| {
            let why = failure.to_string().replace("\n  ", ": ");
            context.ui.talk(format_args!("The modules were not loaded: {why}."));
        })
        .ok()
}

async fn load_all(project: &Project, context: &Context) -> Result<LoadReport, Failure> {
    let local = Local::prepare(context, project, BTreeMap::new(), None, Level::Warn)?;
    let manifest = Arc::new(project.judged.manifest.clone());
    let (_door, report) = Door::open(local.hosting.clone(), manifest, Harness::Experimental, None)
        .await
        .map_err(Failure::failed)?;
    local.hosting.spawner.shut_down().await;
    Ok(report)
}

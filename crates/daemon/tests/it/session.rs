//! One session, one program; what a kill cut off is told.

use std::fs;

use beeuni_daemon::StartError;
use beeuni_models::Api;
use beeuni_protocol::event::{EventBody, FinishReason, ToolStatus};

use crate::{events_until, finished, module, results, stage, turn};

#[tokio::test(flavor = "multi_thread")]
async fn a_second_program_is_refused_until_the_first_ends() {
    let Some(stage) = stage(Api::OpenAi, "tools: {}\n", &[]) else { return };
    let (daemon, _) = stage.start("s1").await.unwrap();
    let refused = stage.start("s1").await.err().unwrap();
    assert!(matches!(&refused, StartError::InUse(session) if session == "s1"), "{refused}");
    assert_eq!(
        refused.to_string(),
        "session s1 is in use by another beeuni program; wait until it ends, or start a new session"
    );
    let (other, _) = stage.start("s2").await.unwrap();
    other.shut_down().await;
    daemon.shut_down().await;
    // The lock is free at once, even where a child of another test still holds a copy of it for an instant.
    let (daemon, _) = stage.start("s1").await.unwrap();
    daemon.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_journal_is_told_as_interrupted() {
    let modules = [("good", module("return 'good'"))];
    let Some(stage) = stage(Api::OpenAi, "tools: {good: tools/good.ts}\n", &modules) else { return };
    let (daemon, _) = stage.start("s1").await.unwrap();
    turn(&daemon, "beeuni", "CALL good {}\nSAY ok").await;
    daemon.shut_down().await;

    // As a kill leaves it: the call began, and half of its end was written.
    let text = stage.events_text("s1");
    let cut = text.find("\"type\":\"tool_finished\"").unwrap();
    fs::write(stage.sessions().join("s1/events.jsonl"), &text[..cut]).unwrap();
    let whole = text[..cut].matches('\n').count() as u64;

    let (daemon, _) = stage.start("s1").await.unwrap();
    assert_eq!(daemon.opened_at(), whole);
    let events = events_until(&daemon, whole, |event| finished(event).is_some()).await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].seq, whole + 1);
    assert_eq!(results(&events)["good"].0, ToolStatus::Aborted);
    assert_eq!(finished(&events[1]), Some(FinishReason::Interrupted));
    let events = turn(&daemon, "beeuni", "SAY on we go").await;
    assert!(matches!(events[0].body, EventBody::TurnStarted { .. }));
    assert_eq!(finished(events.last().unwrap()), Some(FinishReason::Stop));
    daemon.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_module_runs_in_the_next_turn_and_an_unchanged_one_keeps_its_state() {
    let counting = "let n = 0\nexport default { description: 'd', parameters: { type: 'object', properties: {} }, \
                    execute: () => String(++n) }\n";
    let broken = "throw new Error('not yet')\n".to_owned();
    let modules = [("edited", module("return 'old'")), ("counting", counting.to_owned()), ("mended", broken)];
    let manifest = "tools: {edited: tools/edited.ts, counting: tools/counting.ts, mended: tools/mended.ts}\n";
    let Some(stage) = stage(Api::OpenAi, manifest, &modules) else { return };
    let (daemon, _) = stage.start("s1").await.unwrap();
    let script = "CALL edited {}\n+ counting {}\n+ mended {}\nSAY ok";
    let events = turn(&daemon, "beeuni", script).await;
    let first = results(&events);
    assert_eq!((first["edited"].1, first["counting"].1), ("old", "1"));
    assert_eq!(first["mended"].1, "Tool mended not found");
    stage.project.write("tools/edited.ts", module("return 'new'"));
    stage.project.write("tools/mended.ts", module("return 'well'"));
    let events = turn(&daemon, "beeuni", script).await;
    let second = results(&events);
    assert_eq!((second["edited"].1, second["counting"].1, second["mended"].1), ("new", "2", "well"));
    daemon.shut_down().await;
}

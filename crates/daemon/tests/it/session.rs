//! One session, one program; what a kill cut off is told.

use std::fs;
use std::time::{Duration, Instant};

use beeuni_daemon::{Daemon, StartError};
use beeuni_models::Api;
use beeuni_protocol::event::{EventBody, FinishReason, ToolStatus};

use crate::{Stage, events_until, finished, module, results, stage, turn};

/// Starts a session that was shut down. A process that another test is just starting may hold the lock's descriptor for a
/// moment more, until it runs its program.
async fn again(stage: &Stage, session: &str) -> Daemon {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match stage.start(session).await {
            Ok((daemon, _)) => return daemon,
            Err(StartError::InUse(_)) if Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

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
    again(&stage, "s1").await.shut_down().await;
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

    let daemon = again(&stage, "s1").await;
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

//! Stop, reload, shut-down, and going on after a kill.

use std::time::Duration;

use beeuni_harness::native::conversation;
use beeuni_harness::{Harness, HarnessError, Prompt};
use insta::assert_snapshot;

use crate::stage::{Plan, Stage};

#[tokio::test]
async fn a_stop_ends_obedient_and_deaf_tools() {
    let stage = Stage::new().await;
    stage.prompt("s1", "CALL slow {}\n+ deaf {}\n+ echo {}\nSAY ok").await;
    stage.log.finished(0, "echo").await;
    stage.native.stop("s1").await;
    let lines = stage.log.lines(0);
    assert_snapshot!(lines, @r"
    turn 1 of lead on scripted/scripted-1
    usage 10 5 0
    start slow {}
    start deaf {}
    start echo {}
    end echo ok: {}
    end slow aborted: [stopped by the user]
    end deaf aborted: [stopped by the user]
    turn 1 aborted
    ");
    assert!(stage.hosted.calls.lock().unwrap().iter().all(|call| call.cancel.is_cancelled()));
    // Every open call has its answer in the next request.
    stage.turn("s1", "SAY back").await;
    let requests = stage.model.requests();
    assert_eq!(requests[1].results(), ["[stopped by the user]", "[stopped by the user]", "{}"]);
    stage.assert_valid();
}

#[tokio::test]
async fn a_stop_while_the_model_speaks() {
    let stage = Stage::new().await;
    let check = async |session: &str, script: &str| {
        let from = stage.log.len();
        stage.prompt(session, script).await;
        stage.model.wait_for(|requests| requests.iter().any(|request| request.body.contains(script))).await;
        tokio::time::timeout(Duration::from_secs(30), stage.native.stop(session)).await.unwrap();
        let lines = stage.log.lines(from);
        assert!(lines.ends_with("turn 1 aborted\n"), "{lines}");
        let lines = stage.turn(session, "SAY back").await;
        assert!(lines.ends_with("say back\nusage 10 5 0\nturn 2 stop\n"), "{lines}");
    };
    check("s1", "HANG").await;
    check("s2", "HANG 1").await;
    stage.native.stop("s1").await;
    stage.native.stop("nobody").await;
    stage.assert_valid();
}

#[tokio::test]
async fn a_reload_waits_for_nobody_and_takes_no_running_turn() {
    let stage = Stage::new().await;
    stage.turn("s1", "CALL echo {}\nSAY ok").await;
    stage.prompt("s1", "CALL slow {}\nSAY ok").await;
    let setup = stage.changed(|plan| plan.tools = vec!["later"]);
    let busy = stage.native.reload(setup.clone()).await.unwrap_err();
    assert!(matches!(busy, HarnessError::Busy(session) if session == "s1"));
    stage.native.stop("s1").await;
    stage.native.reload(setup).await.unwrap();
    let lines = stage.turn("s1", "CALL later {}\nCALL! echo {}\nSAY ok").await;
    assert!(lines.contains("turn 3 of lead") && lines.contains("end later ok: {}"), "{lines}");
    assert!(lines.contains("end echo unavailable: Tool echo not found"), "{lines}");
    // The conversation went on.
    let last = stage.model.requests().pop().unwrap();
    assert!(last.body.contains("CALL slow"));
    stage.assert_valid();
}

#[tokio::test]
async fn a_shut_down_ends_everything() {
    let stage = Stage::new().await;
    stage.prompt("s1", "CALL slow {}\n+ deaf {}\n+ bash {\"command\":\"sleep 600\"}\nSAY ok").await;
    stage.prompt("s2", "HANG").await;
    stage.log.started(0, "bash").await;
    tokio::time::timeout(Duration::from_secs(30), stage.native.shut_down()).await.unwrap();
    let lines = stage.log.lines(0);
    assert_eq!(lines.matches("turn 1 interrupted\n").count(), 2, "{lines}");
    assert_eq!(lines.matches("aborted: [Tool execution was interrupted]\n").count(), 3, "{lines}");
    let length = stage.log.len();
    let prompt = Prompt { session: "s3".into(), agent: "lead".into(), text: "SAY x".into() };
    assert!(matches!(stage.native.prompt(prompt).await, Err(HarnessError::Down)));
    assert!(matches!(stage.native.reload(stage.setup()).await, Err(HarnessError::Down)));
    assert_eq!(stage.log.len(), length);
    let stage = stage.again().await;
    let lines = stage.turn("s1", "SAY back").await;
    assert!(lines.starts_with("turn 2 of lead") && lines.ends_with("turn 2 stop\n"), "{lines}");
    stage.assert_valid();
}

/// What a killed program leaves: here the file is cut where a kill could cut it.
#[tokio::test]
async fn a_conversation_goes_on_after_a_kill() {
    let stage = Stage::with(Plan { unattended: true, ..Plan::default() }).await;
    stage.turn("s1", "CALL echo {\"n\":1}\n+ echo {\"n\":2}\nSAY done").await;
    let state = stage.home.path().join("state");
    assert!(conversation::exists(&state, "s1"));
    let whole = std::fs::read_to_string(state.join("s1.jsonl")).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), 7, "opened, turn, user, assistant, two answers, assistant: {whole}");
    for cut in 3..=lines.len() {
        let session = format!("cut{cut}");
        let torn = if cut < lines.len() { &lines[cut][..lines[cut].len() / 2] } else { "" };
        let text = lines[..cut].iter().map(|line| format!("{line}\n")).collect::<String>() + torn;
        std::fs::write(state.join(format!("{session}.jsonl")), text).unwrap();
        let told = stage.turn(&session, "SAY back").await;
        assert!(told.starts_with("turn 2 of lead") && told.ends_with("turn 2 stop\n"), "{cut}: {told}");
        let results = stage.model.requests().pop().unwrap().results();
        let interrupted = results.iter().filter(|text| *text == conversation::INTERRUPTED_CALL).count();
        assert_eq!(
            interrupted,
            match cut {
                4 => 2,
                5 => 1,
                _ => 0,
            },
            "{cut}: {results:?}"
        );
    }
    assert_eq!(stage.hosted.calls.lock().unwrap().len(), 2, "no call runs a second time");
    stage.assert_valid();
}

/// A conversation that cannot be kept ends the turn with words instead of going on unkept.
#[tokio::test]
async fn a_state_folder_that_is_none() {
    let stage = Stage::new().await;
    std::fs::write(stage.home.path().join("state"), "a file").unwrap();
    let prompt = Prompt { session: "s1".into(), agent: "lead".into(), text: "SAY x".into() };
    let error = stage.native.prompt(prompt).await.unwrap_err().to_string();
    assert!(error.starts_with("the conversation of session s1 could not be kept:"), "{error}");
    std::fs::remove_file(stage.home.path().join("state")).unwrap();
    let lines = stage.turn("s1", "SAY x").await;
    assert!(lines.ends_with("turn 1 stop\n"), "{lines}");
}

#[tokio::test]
async fn many_sessions_at_once() {
    let stage = Stage::new().await;
    let turns = (0..50).map(|n| {
        let stage = &stage;
        async move {
            let session = format!("s{n}");
            stage.prompt(&session, &format!("CALL echo {{\"n\":{n}}}\nSAY done {n}")).await;
            stage.log.ended(&session, 0).await;
        }
    });
    futures::future::join_all(turns).await;
    for n in 0..50 {
        let session = format!("s{n}");
        let said: String = stage
            .log
            .since(0)
            .into_iter()
            .filter_map(|(of, body)| match body {
                beeuni_protocol::event::EventBody::TextDelta { text } if of == session => Some(text),
                _ => None,
            })
            .collect();
        assert_eq!(said, format!("done {n}"));
    }
    stage.assert_valid();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_right_after_an_end_is_taken() {
    let stage = Stage::new().await;
    // Whoever hears of a turn's end may prompt at once: the turn's place is still being freed on another thread.
    for _ in 0..100 {
        stage.turn("s1", "SAY ok").await;
    }
    stage.assert_valid();
}

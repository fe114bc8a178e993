//! Stopping calls: at once for the caller, and nobody else's loss.

use std::time::Duration;

use beeuni_toolhost::{CallFailure, ToolLimits};

use crate::{Room, eventually, room, spec, tool};

const BODY: &str = "
    const fs = require('fs')
    fs.writeFileSync(args.id + '.started', String(process.pid))
    if (args.how === 'loop') for (;;);
    if (args.how === 'deaf') await new Promise(() => setInterval(() => {}, 1000))
    if (args.how === 'heed') await new Promise((_, fail) => context.signal.addEventListener('abort', () => { fs.writeFileSync(args.id + '.aborted', ''); fail(new Error('heard')) }))
    while (args.how === 'wait' && !fs.existsSync(args.id + '.go')) await Bun.sleep(5)
    return 'done ' + process.pid";

struct Running {
    cancel: tokio_util::sync::CancellationToken,
    task: tokio::task::JoinHandle<Result<String, CallFailure>>,
    pid: String,
}

/// Begins a call and waits until the tool has begun to run it.
async fn running(room: &Room, id: &str, how: &str) -> Running {
    let call = room.request("t", format!("{{\"id\":\"{id}\",\"how\":\"{how}\"}}"));
    let cancel = call.cancel.clone();
    let task = room.begin(call);
    let file = room.at(format!("{id}.started"));
    let mut pid = String::new();
    eventually("the call runs", || {
        pid = std::fs::read_to_string(&file).unwrap_or_default();
        !pid.is_empty()
    })
    .await;
    Running { cancel, task, pid }
}

fn lives(pid: &str) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

async fn pid(room: &Room) -> String {
    let text = room.call("t", "{\"id\":\"probe\"}").await.unwrap();
    text.strip_prefix("done ").unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_heeds_its_signal_keeps_its_process() {
    let Some(room) = room() else { return };
    room.load(&[("t", tool(BODY))]).await;
    let call = running(&room, "a", "heed").await;
    call.cancel.cancel();
    assert_eq!(call.task.await.unwrap(), Err(CallFailure::Aborted));
    eventually("the signal fired", || room.at("a.aborted").exists()).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(pid(&room).await, call.pid, "past the grace");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_is_a_stopped_call() {
    let Some(room) = room() else { return };
    room.load(&[("t", tool(BODY))]).await;
    let call = running(&room, "a", "heed").await;
    call.task.abort();
    eventually("the signal fired", || room.at("a.aborted").exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_does_not_is_killed_when_alone() {
    let Some(room) = room() else { return };
    room.load(&[("t", tool(BODY))]).await;
    for how in ["loop", "deaf"] {
        let call = running(&room, how, how).await;
        call.cancel.cancel();
        assert_eq!(call.task.await.unwrap(), Err(CallFailure::Aborted));
        eventually("it is gone", || !lives(&call.pid)).await;
        assert_ne!(pid(&room).await, call.pid, "{how}: usable again");
    }
    assert!(!room.has_logged("crashes"), "a stop is no crash");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_right_after_a_stop_is_not_lost() {
    let Some(room) = room() else { return };
    room.load(&[("t", tool(BODY))]).await;
    for round in 0..3 {
        let call = running(&room, &round.to_string(), "loop").await;
        call.cancel.cancel();
        assert_eq!(call.task.await.unwrap(), Err(CallFailure::Aborted));
        assert_ne!(pid(&room).await, call.pid, "within the grace");
        eventually("it is gone", || !lives(&call.pid)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_calls_in_the_process_live_on() {
    let Some(room) = room() else { return };
    room.load(&[("t", tool(BODY))]).await;
    let other = running(&room, "other", "wait").await;
    let deaf = running(&room, "deaf", "deaf").await;
    assert_eq!(other.pid, deaf.pid);
    deaf.cancel.cancel();
    assert_eq!(deaf.task.await.unwrap(), Err(CallFailure::Aborted));
    let mut fresh = deaf.pid.clone();
    for _ in 0..1000 {
        fresh = pid(&room).await;
        if fresh != deaf.pid {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_ne!(fresh, deaf.pid, "new calls go to a fresh process");
    assert!(lives(&deaf.pid));
    room.write("other.go", "");
    assert_eq!(other.task.await.unwrap(), Ok(format!("done {}", deaf.pid)));
    eventually("it ends with its other calls", || !lives(&deaf.pid)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_takes_its_siblings_down_only_after_a_missed_ping() {
    let Some(room) = room() else { return };
    room.load(&[("t", tool(BODY))]).await;
    let other = running(&room, "other", "wait").await;
    let looping = running(&room, "loop", "loop").await;
    looping.cancel.cancel();
    assert_eq!(looping.task.await.unwrap(), Err(CallFailure::Aborted));
    let failure = other.task.await.unwrap().unwrap_err();
    assert_eq!(failure, CallFailure::Unresponsive("t".into()));
    eventually("it is gone", || !lives(&looping.pid)).await;
    assert_ne!(pid(&room).await, looping.pid);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_its_time_is_ended() {
    let Some(room) = room() else { return };
    room.write("tools/t.ts", tool(BODY));
    let mut hasty = spec("t");
    let limit = Duration::from_millis(300);
    hasty.limits = ToolLimits { call_time: Some(limit), ..ToolLimits::default() };
    room.load_specs(vec![hasty]).await;
    let call = running(&room, "a", "loop").await;
    assert_eq!(call.task.await.unwrap(), Err(CallFailure::TimedOut { tool: "t".into(), limit }));
    eventually("it is gone", || !lives(&call.pid)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_calls_are_refused_and_the_rest_answered() {
    let Some(room) = room() else { return };
    room.load(&[("t", tool(BODY))]).await;
    let arguments = "{\"id\":\"all\",\"how\":\"wait\"}";
    let calls: Vec<_> = (0..400).map(|_| room.begin(room.request("t", arguments))).collect();
    eventually("some are refused", || {
        calls.iter().filter(|call| call.is_finished()).count() == 400 - 64 - 256
    })
    .await;
    room.write("all.go", "");
    let mut answered = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => answered += 1,
            Err(failure) => assert_eq!(failure, CallFailure::Overloaded("t".into())),
        }
    }
    assert_eq!(answered, 64 + 256);
    assert!(room.call("t", "{\"id\":\"after\"}").await.is_ok());
    let stopped = room.request("t", "{}");
    stopped.cancel.cancel();
    assert_eq!(room.host.call(stopped).await, Err(CallFailure::Aborted));
}

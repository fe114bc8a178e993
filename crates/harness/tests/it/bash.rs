//! `bash` with real children.

use std::time::Duration;

use beeuni_harness::Harness;
use beeuni_protocol::event::ToolStatus;

use crate::stage::Stage;

fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never came true: {what}");
}

#[tokio::test]
async fn commands() {
    let stage = Stage::new().await;
    stage.write("sub/f.txt", "");
    let check = async |arguments: &str, status: ToolStatus, words: &str| {
        assert_eq!(stage.call("bash", arguments).await, (status, words.to_owned()), "{arguments}");
    };
    check(r#"{"command":"echo one; echo two >&2; echo three"}"#, ToolStatus::Ok, "one\ntwo\nthree\n").await;
    check(r#"{"command":"ls","workdir":"sub"}"#, ToolStatus::Ok, "f.txt\n").await;
    check(r#"{"command":"echo $AGENT; cat"}"#, ToolStatus::Ok, "lead\n").await;
    check(r#"{"command":"echo no; exit 3"}"#, ToolStatus::Ok, "no\n[the command exited with code 3]").await;
    check(r#"{"command":"exit 1"}"#, ToolStatus::Ok, "[the command exited with code 1]").await;
    check(r#"{"command":"kill -9 $$"}"#, ToolStatus::Ok, "[the command was killed by signal 9 (SIGKILL)]")
        .await;
    check(r#"{"command":"printf 'a\\377b'"}"#, ToolStatus::Ok, "a\u{fffd}b").await;
    check(
        r#"{"command":"echo start; sleep 600","timeout":300}"#,
        ToolStatus::Error,
        "start\n[the command was ended after 300 ms; give a longer timeout or split it]",
    )
    .await;
    check(r#"{"command":" "}"#, ToolStatus::Error, "the command is empty").await;
    check(r#"{"command":"ls","workdir":"gone"}"#, ToolStatus::Error, "gone is no folder to work in").await;
    check(
        r#"{"command":"ls","timeout":600001}"#,
        ToolStatus::Error,
        "timeout is 600001 and must be between 1 and 600000 milliseconds",
    )
    .await;
    check(r#"{"cmd":"ls"}"#, ToolStatus::Error, "the arguments do not fit bash: missing field `command`")
        .await;
    check(
        r#"{"command":7}"#,
        ToolStatus::Error,
        "the arguments do not fit bash: invalid type: integer `7`, expected a string",
    )
    .await;
}

/// A long output is bounded as M5 says, and one without end fills no memory.
#[tokio::test]
async fn long_outputs() {
    let stage = Stage::new().await;
    let (status, words) = stage.call("bash", r#"{"command":"seq 1 10000"}"#).await;
    assert_eq!(status, ToolStatus::Ok);
    assert!(words.ends_with("[Output truncated: 48894 bytes]"), "{words}");
    let (status, words) = stage.call("bash", r#"{"command":"yes","timeout":500}"#).await;
    assert_eq!(status, ToolStatus::Error);
    assert!(words.len() < 1000, "{}", words.len());
    let kept = std::fs::read_to_string(stage.home.path().join("spill/bash.txt")).unwrap();
    assert!(kept.len() < 3 << 20 && kept.contains("bytes are left out here"), "{}", kept.len());
}

/// F1: a stop ends the whole group, also a child that ignores signals and one in the background.
#[tokio::test]
async fn a_stop_kills_grandchildren() {
    let stage = Stage::new().await;
    let script = "CALL bash {\"command\":\"(trap '' TERM INT HUP; sleep 600 & echo $! > inner; echo $BASHPID > outer; wait)\"}\nSAY ok";
    stage.prompt("s1", script).await;
    eventually("both run", || stage.at("outer").exists() && stage.at("inner").exists()).await;
    let read = |name: &str| std::fs::read_to_string(stage.at(name)).unwrap();
    eventually("the files are whole", || !read("outer").is_empty() && !read("inner").is_empty()).await;
    let pids = [read("outer"), read("inner")];
    assert!(pids.iter().all(|pid| alive(pid)));
    stage.native.stop("s1").await;
    let lines = stage.log.lines(0);
    assert!(lines.ends_with("end bash aborted: [stopped by the user]\nturn 1 aborted\n"), "{lines}");
    eventually("both are gone", || !pids.iter().any(|pid| alive(pid))).await;
}

#[tokio::test]
async fn nothing_outlives_its_command() {
    let stage = Stage::new().await;
    let (status, words) = stage.call("bash", r#"{"command":"sleep 600 & echo $!"}"#).await;
    assert_eq!(status, ToolStatus::Ok);
    eventually("the background process is gone", || !alive(&words)).await;
}

//! Modules that end, break or fill up their own process.

use beeuni_toolhost::{CallFailure, ToolLimits, ToolState};

use crate::{eventually, ok, room, spec, tool};

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_is_that_calls_error_and_five_are_quarantine() {
    let Some(room) = room() else { return };
    let report = room
        .load(&[("t", tool("if (args.code !== undefined) process.exit(args.code); return 'fine'"))])
        .await;
    assert_eq!(report.failed, []);
    for code in [7, 0, 1] {
        let failure = room.call("t", &format!("{{\"code\":{code}}}")).await.unwrap_err();
        assert_eq!(failure.to_string(), format!("t exited with code {code} during the call"));
        assert_eq!(failure.code(), "crashed");
        assert_eq!(room.call("t", "{}").await, ok("fine"), "it comes back");
    }
    for _ in 0..2 {
        assert_eq!(room.call("t", "{\"code\":9}").await.unwrap_err().code(), "crashed");
    }
    let failure = room.call("t", "{}").await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "t is switched off after 5 crashes in a minute, until it is loaded again; the last: exited with code 9"
    );
    let last = "exited with code 9".to_owned();
    assert_eq!(room.host.status().tools[0].state, ToolState::Quarantined(last));
    room.reload(&["t"]).await;
    assert_eq!(room.call("t", "{}").await, ok("fine"), "a load lifts it");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_break_is_told_apart() {
    let Some(room) = room() else { return };
    let fd3 = "const w = (b) => require('fs').writeSync(3, Buffer.from(b)); ";
    for (name, body, code, words) in [
        ("abort", "process.abort()", "crashed", "was killed by signal"),
        (
            "kill",
            "process.kill(process.pid, 'SIGKILL'); await Bun.sleep(60000)",
            "crashed",
            "signal 9 (SIGKILL)",
        ),
        (
            "junk",
            &format!("{fd3} w([255,255,255,255,1,1,1,1,1]); await Bun.sleep(60000)"),
            "protocol_error",
            "over the limit",
        ),
        (
            "kind",
            &format!("{fd3} w([5,0,0,0,99,1,0,0,0]); await Bun.sleep(60000)"),
            "protocol_error",
            "unknown kind",
        ),
        (
            "forged",
            &format!("{fd3} w([5,0,0,0,67,77,0,0,0]); await Bun.sleep(60000)"),
            "protocol_error",
            "an answer to no call",
        ),
        ("half", &format!("{fd3} w([9,0,0,0,67]); await Bun.sleep(60000)"), "protocol_error", "unfinished"),
    ] {
        room.load(&[(name, tool(body)), ("good", tool("return 'good'"))]).await;
        let call = room.begin(room.request(name, "{}"));
        assert_eq!(room.call("good", "{}").await, ok("good"), "{name}");
        let failure = call.await.unwrap().unwrap_err();
        assert_eq!(failure.code(), code, "{name}: {failure}");
        assert!(failure.to_string().contains(words), "{name}: {failure}");
        assert_eq!(room.call("good", "{}").await, ok("good"), "{name}");
    }
    room.load(&[("deep", tool("const f: any = () => f() + 1; return f()"))]).await;
    assert!(matches!(room.call("deep", "{}").await, Err(CallFailure::Tool(text)) if text.contains("stack")));
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_without_end_names_the_limit() {
    let Some(room) = room() else { return };
    room.write(
        "tools/t.ts",
        tool("const all = []; for (;;) { all.push(new Uint8Array(8 << 20).fill(1)); await Bun.sleep(0) }"),
    );
    let mut small = spec("t");
    small.limits = ToolLimits { memory: Some(256 << 20), ..ToolLimits::default() };
    room.load_specs(vec![small]).await;
    let failure = room.call("t", "{}").await.unwrap_err();
    assert_eq!(failure, CallFailure::OutOfMemory { tool: "t".into(), limit: 256 << 20 });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_stderr_stands_in_the_log_only() {
    let Some(room) = room() else { return };
    room.load(&[("t", tool("console.error('last words'); process.exit(7)"))]).await;
    let failure = room.call("t", "{}").await.unwrap_err();
    assert_eq!(failure.to_string(), "t exited with code 7 during the call");
    eventually("the record", || {
        room.has_logged("[tools] t exited with code 7; the end of its stderr:\n  last words")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_crashes_leave_no_zombie() {
    let Some(room) = room() else { return };
    for round in 0..30 {
        // A new text each time, so that every load starts anew and no quarantine sets in.
        room.load(&[("t", tool(&format!("process.exit({round})")))]).await;
        let failure = room.call("t", "{}").await.unwrap_err();
        assert_eq!(failure.to_string(), format!("t exited with code {round} during the call"));
    }
    eventually("no zombies", || zombies() == 0).await;
}

/// Children of this process that ended and were not reaped.
fn zombies() -> usize {
    let me = std::process::id().to_string();
    let mut count = 0;
    for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        count += usize::from(fields.next() == Some("Z") && fields.next() == Some(me.as_str()));
    }
    count
}

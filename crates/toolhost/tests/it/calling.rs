//! Arguments, context, results and their bounds.

use std::fs;
use std::sync::Arc;

use beeuni_toolhost::{CallFailure, MAX_BYTES};

use crate::{ok, room, tool};

#[tokio::test(flavor = "multi_thread")]
async fn results_and_errors_read_as_the_contract_says() {
    let Some(room) = room() else { return };
    let report = room
        .load(&[(
            "t",
            tool("const o: any = {}; o.o = o; return await eval(`(async () => { ${args.run} })()`)"),
        )])
        .await;
    assert_eq!(report.failed, []);
    let failed = |text: &str| Err(CallFailure::Tool(text.to_owned()));
    for (run, expected) in [
        ("return 'text'", ok("text")),
        ("return { a: [1] }", ok("{\n  \"a\": [\n    1\n  ]\n}")),
        ("return undefined", ok("")),
        ("return null", ok("null")),
        ("return 'a\\ud800b'", ok("a\u{fffd}b")),
        ("return { k: '\\ud800' }", ok("{\n  \"k\": \"\u{fffd}\"\n}")),
        ("return new Uint8Array(2)", ok("{\n  \"0\": 0,\n  \"1\": 0\n}")),
        ("const o = {}; o.o = o; return o", failed("JSON.stringify cannot serialize cyclic structures.")),
        ("return { n: 1n }", failed("JSON.stringify cannot serialize BigInt.")),
        ("return { toJSON() { throw new Error('tj') } }", failed("tj")),
        ("throw new TypeError('bad \\ud800')", failed("bad \u{fffd}")),
        ("throw null", failed("null")),
        ("throw { code: 1 }", failed("{\"code\":1}")),
        ("return 'fine'", ok("fine")),
    ] {
        let arguments = serde_json::json!({ "run": run }).to_string();
        assert_eq!(room.call("t", &arguments).await, expected, "{run}");
    }
    let CallFailure::Tool(text) = room.call("t", r#"{"run":"return 'x'.repeat(300e6)"}"#).await.unwrap_err()
    else {
        panic!("a tool error")
    };
    assert!(text.starts_with("the result is too long: 300000000 bytes"), "{text}");
    assert_eq!(room.call("t", r#"{"run":"return 1"}"#).await, ok("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_and_context_are_fresh_and_untouched() {
    let Some(room) = room() else { return };
    let body = "const seen = JSON.stringify([args, Object.keys(args), context.sessionId, context.agent, context.directory, context.env, context.signal instanceof AbortSignal, (({}) as any).admin]); \
        context.env.X = 'poison'; delete context.env.GREETING; args.y = 1; return seen";
    room.load(&[("t", tool(body))]).await;
    let tail = r#""ses_1","beeuni","/workspace",{"GREETING":"hello"},true,null]"#;
    for (arguments, seen) in [
        ("", "{},[]"),
        ("{}", "{},[]"),
        (r#"{"n":"5","extra":1}"#, r#"{"n":"5","extra":1},["n","extra"]"#),
        (
            r#"{"__proto__":{"admin":true},"id":"1"}"#,
            r#"{"__proto__":{"admin":true},"id":"1"},["__proto__","id"]"#,
        ),
    ] {
        assert_eq!(room.call("t", arguments).await, Ok(format!("[{seen},{tail}")), "{arguments}");
    }
    assert!(matches!(room.call("t", "not json").await, Err(CallFailure::Tool(_))));
    // Another environment, then the first again: each call sees its own.
    for value in ["new", "newer", "hello"] {
        let mut call = room.request("t", "{}");
        call.env = Arc::new([("GREETING".to_owned(), value.to_owned())].into());
        let text = room.host.call(call).await.unwrap();
        assert!(text.contains(&format!("{{\"GREETING\":\"{value}\"}}")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_outputs_are_cut_and_saved() {
    let Some(room) = room() else { return };
    let body = "const text = eval(args.text); if (args.fail) throw new Error(text); return text";
    room.load(&[("t", tool(body))]).await;
    for (text, bytes, lines, fail) in [
        ("'line\\n'.repeat(3000)", 15_000, 3_000, false),
        ("'x'.repeat(60000)", 60_000, 1, false),
        ("'x' + '😀'.repeat(20000)", 80_001, 1, false),
        ("'data:image/png;base64,' + 'A'.repeat(300000)", 300_022, 1, true),
    ] {
        let arguments = serde_json::json!({ "text": text, "fail": fail }).to_string();
        let out = match room.call("t", &arguments).await {
            Err(CallFailure::Tool(text)) if fail => text,
            other => other.unwrap(),
        };
        assert!(out.len() < MAX_BYTES && out.lines().count() < 2_000, "{text}");
        let note = out.rsplit_once("\n\n").unwrap().1;
        assert!(
            note.starts_with(&format!("[Output truncated: {bytes} bytes, {lines} lines. The whole")),
            "{note}"
        );
        let file = note.split_once(" is in ").unwrap().1.split_once(';').unwrap().0;
        assert_eq!(fs::metadata(file).unwrap().len(), bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_long_outputs_at_once_are_twenty_files() {
    let Some(room) = room() else { return };
    room.load(&[("t", tool("return String(args.n).padStart(2, '0').repeat(40000)"))]).await;
    let calls: Vec<_> = (0..20).map(|n| room.begin(room.request("t", format!("{{\"n\":{n}}}")))).collect();
    let mut files = std::collections::BTreeSet::new();
    for (n, call) in calls.into_iter().enumerate() {
        let out = call.await.unwrap().unwrap();
        let file = out.split_once(" is in ").unwrap().1.split_once(';').unwrap().0.to_owned();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{n:02}").repeat(40_000));
        files.insert(file);
    }
    assert_eq!(files.len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_of_a_megabyte_come_back_whole() {
    let Some(room) = room() else { return };
    room.load(&[("t", tool("return String(args.text.length)"))]).await;
    for size in [1 << 10, 1 << 20, 30 << 20] {
        let arguments = format!("{{\"text\":\"{}\"}}", "x".repeat(size));
        assert_eq!(room.call("t", &arguments).await, Ok(size.to_string()));
    }
    let long = room.host.call(room.request("t", vec![b' '; 64 << 20])).await.unwrap_err();
    assert_eq!(long.code(), "too_long");
    assert_eq!(room.call("t", "{\"text\":\"\"}").await, ok("0"));
}

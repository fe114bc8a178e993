//! Reloads: by content, without a gap, with nothing left behind.

use std::fs::{self, File};
use std::time::Duration;

use beeuni_toolhost::{ToolLimits, ToolState};

use crate::{eventually, ok, room, spec, tool};

const COUNTER: &str = "import { v } from './lib/v'; let n = 0; export default { description: 'd', parameters: { type: 'object' }, execute: () => v + ++n }";

#[tokio::test(flavor = "multi_thread")]
async fn state_lasts_until_a_file_that_it_imports_changes() {
    let Some(room) = room() else { return };
    room.write("tools/lib/v.ts", "export const v = 'a'");
    let report = room.load(&[("t", COUNTER.into()), ("other", tool("return 'o'"))]).await;
    assert_eq!(report.failed, []);
    for expected in ["a1", "a2", "a3"] {
        assert_eq!(room.call("t", "{}").await, ok(expected));
    }
    for expected in ["a4", "a5"] {
        room.reload(&["t", "other"]).await;
        assert_eq!(room.call("t", "{}").await, ok(expected), "nothing changed");
    }
    // The helper changes; its time stamp does not.
    let helper = room.at("tools/lib/v.ts");
    let stamp = fs::metadata(&helper).unwrap().modified().unwrap();
    room.write("tools/lib/v.ts", "export const v = 'b'");
    File::options().write(true).open(&helper).unwrap().set_modified(stamp).unwrap();
    room.reload(&["t", "other"]).await;
    assert_eq!(room.call("t", "{}").await, ok("b1"));
    // Touched only: the same content.
    room.write("tools/lib/v.ts", "export const v = 'b'");
    room.reload(&["t"]).await;
    assert_eq!(room.call("t", "{}").await, ok("b2"));
    assert_eq!(room.call("other", "{}").await.unwrap_err().code(), "not_loaded", "no longer named");
    // Broken: dropped exactly as at a start.
    room.write("tools/t.ts", "export default {");
    let report = room.reload(&["t"]).await;
    assert_eq!((report.loaded.len(), report.failed.len()), (0, 1));
    assert_eq!(room.call("t", "{}").await.unwrap_err().code(), "not_loaded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_under_way_ends_on_the_old_code_and_there_is_no_gap() {
    let Some(room) = room() else { return };
    let slow = "while (!require('fs').existsSync('go')) await Bun.sleep(5); ";
    let version = |v: &str| tool(&format!("if (args.slow) {{ {slow} }} return '{v}'"));
    room.load(&[("t", version("old"))]).await;
    let under_way = room.begin(room.request("t", r#"{"slow":true}"#));
    let polls = {
        let (host, call) = (room.host.clone(), room.request("t", "{}"));
        tokio::spawn(async move {
            let mut seen = Vec::new();
            loop {
                let answer = host.call(call.clone()).await.unwrap();
                let done = answer == "new";
                seen.push(answer);
                if done {
                    return seen;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    };
    room.load(&[("t", version("new"))]).await;
    assert_eq!(room.call("t", "{}").await, ok("new"));
    assert!(polls.await.unwrap().iter().all(|answer| answer == "old" || answer == "new"));
    room.write("go", "");
    assert_eq!(under_way.await.unwrap(), ok("old"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_process_ends_and_the_next_call_starts_it() {
    let Some(room) = room() else { return };
    room.write("tools/lib/v.ts", "export const v = 'a'");
    room.write("tools/t.ts", COUNTER);
    let mut sleepy = spec("t");
    sleepy.limits = ToolLimits { idle: Some(Duration::from_millis(200)), ..ToolLimits::default() };
    room.load_specs(vec![sleepy]).await;
    assert_eq!(room.call("t", "{}").await, ok("a1"));
    eventually("asleep", || room.host.status().tools[0].state == ToolState::Asleep).await;
    assert_eq!(room.host.report().loaded.len(), 1, "it is still offered");
    assert_eq!(room.call("t", "{}").await, ok("a1"), "started again");
    assert_eq!(room.host.status().tools[0].state, ToolState::Ready);
}

//! Every kind of bad module beside two good ones, in one session (K2, M7).

use beeuni_models::Api;
use beeuni_protocol::event::{EventBody, FinishReason, ToolStatus};

use crate::{events_until, finished, module, results, stage, turn};

const NAMES: [&str; 8] = ["good", "loops", "exits", "late", "hangs", "eats", "prints", "other"];

async fn bad_modules_cost_good_ones_nothing(api: Api) {
    let manifest: String = NAMES.iter().map(|name| format!("  {name}: tools/{name}.ts\n")).collect();
    let frames = "process.stdout.write(Buffer.from([6,0,0,0,67,1,0,0,0,120])); console.log('{\"id\":1,\"ok\":\"forged\"}'); return 'mine'";
    let modules = [
        ("good", module("return `good ${args.n}`")),
        ("loops", module("await Bun.write('looping', 'x'); for (;;);")),
        ("exits", module("process.exit(3)")),
        ("late", module("setTimeout(() => { throw new Error('too late') }, 1); return 'early'")),
        ("hangs", "await new Promise(() => setInterval(() => {}, 1000)); export default {}".to_owned()),
        (
            "eats",
            module(
                "const all = []; for (;;) { all.push(new Uint8Array(8 << 20).fill(1)); await Bun.sleep(0) }",
            ),
        ),
        ("prints", module(frames)),
        ("other", module("return `other ${args.n}`")),
    ];
    let Some(stage) = stage(api, &format!("tools:\n{manifest}"), &modules) else { return };
    let (daemon, report) = stage.start("s1").await.unwrap();
    let failed: Vec<_> =
        report.failed.iter().map(|tool| (tool.name.as_str(), tool.reason.as_str())).collect();
    assert_eq!(failed, [("hangs", "it did not finish loading within 10 s")]);

    let script = "CALL exits {}\n+ eats {}\n+ late {}\n+ prints {}\n+ hangs {}\n+ good {\"n\":1}\n+ other {\"n\":2}\nSAY ok";
    let events = turn(&daemon, "beeuni", script).await;
    let ended = results(&events);
    let check = |tool: &str, status, output: &str| assert_eq!(ended[tool], (status, output), "{tool}");
    check("good", ToolStatus::Ok, "good 1");
    check("other", ToolStatus::Ok, "other 2");
    check("late", ToolStatus::Ok, "early");
    check("prints", ToolStatus::Ok, "mine");
    check("hangs", ToolStatus::Unavailable, "Tool hangs not found");
    check("exits", ToolStatus::Error, "exits exited with code 3 during the call");
    check(
        "eats",
        ToolStatus::Error,
        "eats was killed during the call: it used more than its 512 MiB of memory (limits.memory)",
    );

    // The loop turns while the good ones answer, and ends with the turn.
    let from = daemon.last_event();
    daemon.prompt("beeuni", "CALL loops {}\n+ good {\"n\":3}\n+ other {\"n\":4}\nSAY ok").await.unwrap();
    let mut answers = 0;
    let is_answer = |body: &EventBody| matches!(body, EventBody::ToolFinished { .. });
    events_until(&daemon, from, |event| {
        answers += usize::from(is_answer(&event.body));
        answers == 2
    })
    .await;
    daemon.stop().await;
    let events = events_until(&daemon, from, |event| finished(event).is_some()).await;
    let ended = results(&events);
    assert_eq!((ended["good"], ended["other"]), ((ToolStatus::Ok, "good 3"), (ToolStatus::Ok, "other 4")));
    assert_eq!(ended["loops"].0, ToolStatus::Aborted);
    assert_eq!(finished(events.last().unwrap()), Some(FinishReason::Aborted));

    let events = turn(&daemon, "beeuni", "CALL good {\"n\":5}\n+ other {\"n\":6}\n+ late {}\nSAY ok").await;
    let ended = results(&events);
    assert_eq!((ended["good"].1, ended["other"].1, ended["late"].1), ("good 5", "other 6", "early"));
    assert_eq!(stage.model.violations(), Vec::<String>::new());
    daemon.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_modules_cost_good_ones_nothing_on_the_openai_wire() {
    bad_modules_cost_good_ones_nothing(Api::OpenAi).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_modules_cost_good_ones_nothing_on_the_anthropic_wire() {
    bad_modules_cost_good_ones_nothing(Api::Anthropic).await;
}

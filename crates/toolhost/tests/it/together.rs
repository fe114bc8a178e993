//! Every kind of bad module beside good ones, in one run.

use std::time::Duration;

use crate::{eventually, ok, room, tool};

#[tokio::test(flavor = "multi_thread")]
async fn bad_modules_cost_good_ones_nothing() {
    let Some(room) = room() else { return };
    room.write("tools/lib/x.ts", "export const x = 1");
    let forged = "process.stdout.write(Buffer.from([6,0,0,0,67,1,0,0,0,120])); console.log('{\"id\":1}'); return 'mine'";
    let poison = "process.chdir('/'); process.env.PATH = ''; (globalThis as any).fetch = () => { throw 1 }; \
        JSON.stringify = () => '\"x\"'; JSON.parse = () => ({}); (Array.prototype as any).push = () => { throw 2 }; \
        (Map.prototype as any).get = (Map.prototype as any).set = () => { throw 3 }; String.prototype.toWellFormed = () => 'x'; \
        (Promise.prototype as any).then = () => { throw 4 }; (globalThis as any).Uint8Array = (globalThis as any).TextEncoder = (globalThis as any).Buffer = null; \
        (process as any).exit = (process as any).reallyExit = () => {}; return { poisoned: [args.n] }";
    let good = "import { x } from './lib/x'; export default { description: 'd', parameters: { type: 'object' }, execute: (args, context) => ({ x, directory: context.directory, cwd: process.cwd() }) }";
    let report = room
        .load(&[
            ("good", good.into()),
            ("loops", tool("for (;;);")),
            ("exits", tool("process.exit(4)")),
            ("late", tool("setTimeout(() => { throw new Error('late') }, 1); Promise.reject(new Error('lost')); return 'ok'")),
            ("hangs", "await new Promise(() => setInterval(() => {}, 1000)); export default {}".into()),
            ("eats", tool("const all = []; for (;;) { all.push(new Uint8Array(8 << 20).fill(1)); await Bun.sleep(0) }")),
            ("forges", tool(forged)),
            ("poisons", tool(poison)),
            ("echo", tool("return args")),
        ])
        .await;
    assert_eq!(report.failed.len(), 1);
    assert_eq!(report.failed[0].reason, "it did not finish loading within 10 s");

    let looping = room.request("loops", "{}");
    let stop_loop = looping.cancel.clone();
    let looping = room.begin(looping);
    let exits = room.begin(room.request("exits", "{}"));
    let eats = room.begin(room.request("eats", "{}"));
    assert_eq!(room.call("late", "{}").await, ok("ok"));
    assert_eq!(room.call("forges", "{}").await, ok("mine"));
    for n in 1..4 {
        let expected = format!("{{\n  \"poisoned\": [\n    {n}\n  ]\n}}");
        assert_eq!(room.call("poisons", &format!("{{\"n\":{n}}}")).await, Ok(expected));
    }
    let cwd = room.at("").to_str().unwrap().trim_end_matches('/').to_owned();
    let good = format!("{{\n  \"x\": 1,\n  \"directory\": \"/workspace\",\n  \"cwd\": \"{cwd}\"\n}}");
    while !eats.is_finished() {
        assert_eq!(room.call("good", "{}").await.as_ref(), Ok(&good));
        assert_eq!(room.call("echo", "{\"a\":1}").await, ok("{\n  \"a\": 1\n}"));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let eaten = eats.await.unwrap().unwrap_err().to_string();
    assert_eq!(
        eaten,
        "eats was killed during the call: it used more than its 512 MiB of memory (limits.memory)"
    );
    assert_eq!(exits.await.unwrap().unwrap_err().to_string(), "exits exited with code 4 during the call");
    stop_loop.cancel();
    assert_eq!(looping.await.unwrap().unwrap_err().code(), "aborted");
    eventually("late faults are logged under their tool", || {
        room.has_logged("late: outside any call: late") && room.has_logged("late: outside any call: lost")
    })
    .await;
    assert_eq!(room.call("late", "{}").await, ok("ok"));
    assert_eq!(room.call("good", "{}").await, Ok(good));
}

//! What loads, what does not, and with which words (reference, section 7).

use std::process::Command;

use beeuni_toolhost::{ModuleSpec, NOT_LOADED_RECORD, Source, ToolLimits, ToolState};

use crate::{ok, room, tool};

const GOOD: &str = "description: 'd', parameters: { type: 'object' }, execute: () => 'ran'";

#[tokio::test(flavor = "multi_thread")]
async fn every_format_loads() {
    let Some(room) = room() else { return };
    let files = [
        ("a.ts", format!("export const VERSION = '1'; export const PATTERNS = [/x/]; export default {{ {GOOD} }}")),
        ("b.mts", format!("import type {{ C }} from 'never-installed'; enum U {{ C, F }} export default {{ {GOOD}, U }} satisfies object")),
        ("c.js", format!("export default {{ {GOOD} }}")),
        ("d.mjs", format!("export default {{ {GOOD} }}")),
        ("e.cjs", format!("module.exports = {{ {GOOD} }}")),
        ("f.cts", format!("export = {{ {GOOD} }}")),
        ("g.cjs", format!("module.exports = {{ default: {{ {GOOD} }} }}")),
        ("h.ts", "export default Object.freeze(class { static description = 'd'; static parameters = { type: 'object' }; static execute() { return 'ran' } })".to_owned()),
        ("ü b.ts", format!("export default {{ {GOOD} }}")),
        ("deep.ts", "import p1 from 'p1'; import p2 from 'p2'; import fs from 'node:fs'; import { x } from './lib/x.ts'; import d from './data.json'; export default { description: 'd', parameters: { type: 'object' }, execute: () => [p1, p2, typeof fs.readFileSync, typeof Bun.file, x, d.n].join() === '1,2,function,function,3,4' ? 'ran' : 'wrong' }".to_owned()),
    ];
    room.write("tools/node_modules/p1/index.js", "module.exports = 1");
    room.write("node_modules/p2/index.js", "module.exports = 2");
    room.write("tools/lib/x.ts", "export const x: number = 3");
    room.write("tools/data.json", "{\"n\": 4}");
    let mut specs = Vec::new();
    for (file, text) in &files {
        room.write(&format!("tools/{file}"), text);
        let source = Source::File(format!("tools/{file}").into());
        specs.push(ModuleSpec { name: (*file).into(), source, limits: ToolLimits::default() });
    }
    let source = Source::Text {
        file: "inside.ts".into(),
        text: "export default { description: 'd', parameters: { type: 'object' }, execute: () => 'ran' }",
    };
    specs.push(ModuleSpec { name: "inside".into(), source, limits: ToolLimits::default() });
    let report = room.load_specs(specs.clone()).await;
    assert_eq!(report.failed, []);
    let names: Vec<_> = report.loaded.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, specs.iter().map(|spec| spec.name.clone()).collect::<Vec<_>>(), "in their order");
    for name in names {
        assert_eq!(room.call(&name, "{}").await, ok("ran"), "{name}");
    }
    assert_eq!(room.log.all(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_load_says_why_and_keeps_nobody_from_loading() {
    let Some(room) = room() else { return };
    std::fs::write(room.folder.path().join("outside.ts"), "export const secret = 1; export default {}")
        .unwrap();
    std::os::unix::fs::symlink("../../outside.ts", room.at("tools/link.ts")).unwrap();
    std::os::unix::fs::symlink("nowhere.ts", room.at("tools/dangling.ts")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", room.at("tools/zero.ts")).unwrap();
    std::fs::create_dir(room.at("tools/folder.ts")).unwrap();
    let fifo = Command::new("mkfifo").arg(room.at("tools/fifo.ts")).output().unwrap();
    assert!(fifo.status.success());
    room.write("tools/huge.ts", vec![b' '; 50 << 20]);
    let object = |text: &str| format!("export default {{ {GOOD}, {text} }}");
    // A name, its module, and how the reason begins.
    let cases: Vec<(&str, Option<String>, &str)> = vec![
        ("ok_a", Some(tool("return 'a'")), ""),
        ("missing", None, "the file does not exist"),
        ("dangling", None, "the file does not exist"),
        ("link", None, "the file lies outside the checkout"),
        ("zero", None, "the file lies outside the checkout"),
        ("folder", None, "it is not a regular file"),
        ("fifo", None, "it is not a regular file"),
        ("huge", None, "the file is too large: 52428800 bytes, at most 8388608"),
        (
            "syntax",
            Some("export default {".into()),
            "Expected identifier but found end of file (tools/syntax.ts:1:",
        ),
        ("throws", Some("throw new Error('boom at import')".into()), "boom at import"),
        ("number", Some("throw 42".into()), "42"),
        ("bare", Some("export const tool = {}".into()), "no default export"),
        ("empty", Some(String::new()), "no default export"),
        (
            "package",
            Some("import 'not-a-package'; export default {}".into()),
            "Cannot find package 'not-a-package' ",
        ),
        ("zod", Some("import { z } from 'zod'; export default { z }".into()), "Cannot find package 'zod' "),
        ("relative", Some("import './nope'; export default {}".into()), "Cannot find module './nope' "),
        ("outside", Some("import { secret } from '../../outside.ts'; export default { secret }".into()), ""),
        ("blank", Some(object("description: '  '")), "description is missing"),
        ("noschema", Some(object("parameters: undefined")), "parameters is not a JSON Schema"),
        ("array", Some(object("parameters: { type: 'array' }")), "parameters is not a JSON Schema"),
        ("text", Some(object("execute: 'fn'")), "execute is missing"),
        ("getter", Some("export default { get description() { throw new Error('nope') } }".into()), "nope"),
        ("proxy", Some("export default new Proxy({}, { get() { throw new Error('trap') } })".into()), "trap"),
        (
            "exits",
            Some("process.exit(3); export default {}".into()),
            "the module's process exited with code 3 while loading",
        ),
        (
            "aborts",
            Some("process.abort(); export default {}".into()),
            "the module's process was killed by signal",
        ),
        (
            "hangs",
            Some("await new Promise(() => setInterval(() => {}, 1000)); export default {}".into()),
            "it did not finish loading within 10 s",
        ),
        ("loops", Some("for (;;); export default {}".into()), "it did not finish loading within 10 s"),
        (
            "junk",
            Some("require('fs').writeSync(3, 'junk junk junk'); await new Promise(() => {})".into()),
            "the module's process was ended: it ",
        ),
        ("ok_b", Some(tool("return 'b'")), ""),
    ];
    for (name, text, _) in &cases {
        if let Some(text) = text {
            room.write(&format!("tools/{name}.ts"), text);
        }
    }
    let report = room.reload(&cases.iter().map(|(name, ..)| *name).collect::<Vec<_>>()).await;
    let loaded: Vec<_> = report.loaded.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(loaded, ["ok_a", "ok_b"]);
    let root = room.folder.path().to_str().unwrap();
    for (name, _, reason) in cases.iter().filter(|(name, ..)| !name.starts_with("ok_")) {
        let failed = report.failed.iter().find(|failed| failed.name == *name).unwrap();
        assert!(failed.reason.starts_with(reason), "{name}: {}", failed.reason);
        assert!(!failed.reason.is_empty() && !failed.reason.contains(root), "{name}: {}", failed.reason);
        let line = format!("  {name} (tools/{name}.ts): {}", failed.reason);
        assert!(room.has_logged(&line), "{line}");
    }
    assert_eq!(room.log.all().matches(NOT_LOADED_RECORD).count(), 1);
    let states = room.host.status().tools;
    assert_eq!(
        states.iter().filter(|tool| matches!(tool.state, ToolState::Failed(_))).count(),
        cases.len() - 2
    );
    assert_eq!(room.call("ok_a", "{}").await, ok("a"));
    assert_eq!(room.call("ok_b", "{}").await, ok("b"));
    let refused = room.call("throws", "{}").await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.to_string().as_str()),
        ("not_loaded", "no tool named throws is loaded")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_arrives_as_it_was_written() {
    let Some(room) = room() else { return };
    let schema = r#"{"type":"object","z":{"enum":[60,1440,null,true]},"a":{"type":["string","null"],"const":1,"exclusiveMinimum":0,"default":0.1},"anyOf":[{"required":["a"]}]}"#;
    let text = format!("export default {{ description: 'd\\ud800', parameters: {schema}, execute() {{}} }}");
    let report = room.load(&[("t", text)]).await;
    assert_eq!(report.loaded[0].parameters.get(), schema);
    assert_eq!(report.loaded[0].description, "d\u{fffd}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checkout_cannot_change_how_bun_starts() {
    let Some(room) = room() else { return };
    room.write(".env", "LEAK_FROM_DOTENV=1");
    room.write("bunfig.toml", "preload = ['./preload.ts']");
    room.write("preload.ts", "process.env.PRELOADED = '1'");
    room.load(&[("t", tool("return Object.keys(process.env).sort().join()"))]).await;
    assert_eq!(room.call("t", "").await, ok("HOME,PATH,TMPDIR,TZ"));
}

#[tokio::test(flavor = "multi_thread")]
async fn zod_works_from_the_checkouts_own_node_modules() {
    let Some(room) = room() else { return };
    let zod = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../node_modules/zod");
    if !zod.exists() {
        return eprintln!("skipped: no zod; run `npm ci` at the root");
    }
    std::fs::create_dir(room.at("node_modules")).unwrap();
    let copied = Command::new("cp").arg("-rL").args([zod, room.at("node_modules/zod")]).output().unwrap();
    assert!(copied.status.success());
    let text = "import { z } from 'zod'; let n = 0; export default { description: 'd', \
        parameters: z.toJSONSchema(z.object({ city: z.string() })), execute: () => String(++n) }";
    let report = room.load(&[("t", text.into())]).await;
    assert_eq!(report.failed, []);
    let schema: serde_json::Value = serde_json::from_str(report.loaded[0].parameters.get()).unwrap();
    assert_eq!((schema["type"].as_str(), schema["required"][0].as_str()), (Some("object"), Some("city")));
    assert_eq!(room.call("t", "{}").await, ok("1"));
    room.reload(&["t"]).await;
    assert_eq!(room.call("t", "{}").await, ok("2"), "unchanged, so kept");
    room.write("node_modules/zod/package.json", "{}");
    let report = room.reload(&["t"]).await;
    assert!(report.failed.is_empty() || report.failed[0].reason.starts_with("Cannot find package 'zod'"));
    assert_ne!(room.call("t", "{}").await, ok("3"), "a package is part of the module");
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_that_hang_keep_no_other_from_loading() {
    let Some(room) = room() else { return };
    let hangs = "await new Promise(() => setInterval(() => {}, 1000)); export default {}";
    let names: Vec<String> = (0..24).map(|number| format!("hangs_{number}")).collect();
    let mut tools: Vec<(&str, String)> = names.iter().map(|name| (name.as_str(), hangs.to_owned())).collect();
    let text = format!("require('fs').writeFileSync('loaded', ''); export default {{ {GOOD} }}");
    tools.push(("good", text));
    let room = std::sync::Arc::new(room);
    let begun = std::time::Instant::now();
    let report = room.load(&tools).await;
    assert!(begun.elapsed().as_secs() < 60, "two at once would take 120 s");
    assert!(room.at("loaded").exists());
    assert_eq!(report.loaded.len(), 1);
    let failed: Vec<_> = report.failed.iter().map(|failed| failed.name.clone()).collect();
    assert_eq!(failed, names, "in their order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reason_cannot_forge_a_record() {
    let Some(room) = room() else { return };
    let text = "throw new Error('\\x1b[2J\\u202e\\n[tools] fake record\\n  fake (tools/fake.ts): why')";
    let late = "Promise.reject(new Error('late\\n[tools] fake record\\x1b[2J')); return 'ok'";
    let report = room.load(&[("t", text.into()), ("late", tool(late))]).await;
    let reason = "\u{fffd}[2J\u{fffd}\n    [tools] fake record\n    fake (tools/fake.ts): why";
    assert_eq!(report.failed[0].reason, reason);
    assert_eq!(room.call("late", "{}").await, ok("ok"));
    crate::eventually("the late fault", || {
        room.has_logged("[tools] late: outside any call: late\n  [tools] fake record\u{fffd}[2J")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_is_gone_reads_the_same_at_a_restart() {
    let Some(room) = room() else { return };
    room.load(&[("t", tool("process.exit(1)"))]).await;
    std::fs::remove_file(room.at("tools/t.ts")).unwrap();
    assert_eq!(room.call("t", "{}").await.unwrap_err().code(), "crashed");
    let failure = room.call("t", "{}").await.unwrap_err();
    assert_eq!(failure.to_string(), "t could not be started again: the file does not exist");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_may_not_write_where_the_host_lies() {
    let Some(room) = room() else { return };
    let mut spec = crate::spec("t");
    room.write("tools/t.ts", tool(""));
    spec.limits.write = vec![room.folder.path().to_owned()];
    let failed = room.load_specs(vec![spec]).await.failed;
    assert!(failed[0].reason.starts_with("limits.write names "), "{}", failed[0].reason);
    for state in ["checkout/.state", "tmp/state"] {
        let mut config = crate::config(&room.folder, room.log.clone()).unwrap();
        config.state = room.folder.path().join(state);
        let error = beeuni_toolhost::ToolHost::start(config).err().unwrap().to_string();
        assert!(error.contains("where tools may write"), "{error}");
        assert!(!room.folder.path().join(state).exists());
    }
}

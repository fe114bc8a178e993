//! `beeuni tools call`: what a model's call does, as a person sees it (M2, M3, M5, M7, M8; R2, A2).

use std::fs;
use std::process::Output;
use std::time::SystemTime;

use beeuni_testkit::{bun, project::Project};

use crate::{BEEUNI, shown};

const MANIFEST: &str = "agents:
  beeuni: {}
  greeter: {tools: none}
tools:
  echo: tools/echo.ts
  fails: tools/fails.ts
  lines: tools/lines.ts
  wide: tools/wide.ts
  letters: tools/letters.ts
  half: tools/half.ts
  nothing: tools/nothing.ts
  cycle: tools/cycle.ts
  big: tools/big.ts
  talks: tools/talks.ts
  zodless: tools/zodless.ts
  helped: tools/helped.ts
";

/// Each tool's name and the body of its `execute`.
const BODIES: [(&str, &str); 10] = [
    ("echo", "return args"),
    ("fails", "throw new Error('no order A-1')"),
    ("lines", "return Array.from({ length: 3000 }, (_, n) => `line ${n}`).join('\\n')"),
    ("wide", "return 'x'.repeat(60 * 1024)"),
    ("letters", "return 'a' + 'ü'.repeat(30 * 1024)"),
    ("half", "return 'a\\ud83d'"),
    ("nothing", ""),
    ("cycle", "const a: any = {}; a.a = a; return a"),
    ("big", "return { n: 1n }"),
    ("talks", "console.log('hello'); process.stdout.write('raw\\n'); return 'ok'"),
];

/// The project, or `None` with a loud line when there is no Bun.
fn tools() -> Option<Project> {
    if bun().is_none() {
        eprintln!("skipped: no Bun; run `npm ci` in runtime/ or set BEEUNI_BUN");
        return None;
    }
    let project = crate::project(MANIFEST);
    for (name, body) in BODIES {
        let text = format!(
            "export default {{ description: 'd', parameters: {{ type: 'object' }}, async execute(args: any) {{ {body} }} }}\n"
        );
        project.write(format!("tools/{name}.ts"), text);
    }
    project.write("tools/zodless.ts", "import { z } from 'zod'\nexport default { description: 'd', parameters: z.toJSONSchema(z.object({})), execute() {} }\n");
    project.write("tools/helped.ts", "import { word } from './lib/word'\nexport default { description: 'd', parameters: { type: 'object' }, execute: () => word }\n");
    project.write("tools/lib/word.ts", "export const word = 'one'\n");
    Some(project)
}

fn call(project: &Project, args: &[&str]) -> Output {
    project.run(BEEUNI, &[&["tools", "call"], args].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("whole characters")
}

#[test]
fn m3_outputs_and_errors() {
    let Some(project) = tools() else { return };
    let check = |args: &[&str], code: i32, stdout: &str, stderr: &str| {
        let output = call(&project, args);
        let real = (output.status.code(), text(&output.stdout), text(&output.stderr));
        assert_eq!(real, (Some(code), stdout.to_owned(), stderr.to_owned()), "{args:?}");
    };
    check(&["nothing"], 0, "", "");
    check(&["half"], 0, "a\u{fffd}\n", "");
    check(&["fails"], 1, "", "no order A-1\n");
    check(&["cycle"], 1, "", "JSON.stringify cannot serialize cyclic structures.\n");
    check(&["big"], 1, "", "JSON.stringify cannot serialize BigInt.\n");
    check(&["echo"], 0, "{}\n", "");
    check(&["echo", "--args", ""], 0, "{}\n", "");
    check(&["echo", "--args", "null"], 0, "{}\n", "");
    let own = r#"{"__proto__":{"a":1},"b":2}"#;
    check(&["echo", "--args", own], 0, "{\n  \"__proto__\": {\n    \"a\": 1\n  },\n  \"b\": 2\n}\n", "");
    check(&["nothing", "--json"], 0, "{\n  \"output\": \"\"\n}\n", "");
    check(&["fails", "--json"], 1, "{\n  \"error\": \"no order A-1\"\n}\n", "");
}

#[test]
fn m5_long_outputs_keep_their_beginning_and_say_where_the_whole_is() {
    let Some(project) = tools() else { return };
    let check = |tool: &str, begins: &str, whole: &str| {
        let output = call(&project, &[tool]);
        assert_eq!(text(&output.stderr), "", "{tool}");
        let shown = text(&output.stdout);
        assert!(shown.starts_with(begins), "{tool}: {}", &shown[..100]);
        assert!(shown.len() <= 51_200 && shown.lines().count() <= 2_000, "{tool}: {} bytes", shown.len());
        let (kept, note) = shown.split_once("\n\n").expect("a blank line before the note");
        assert!(whole.starts_with(kept), "{tool}: what is shown is the beginning");
        let size = format!("[Output truncated: {} bytes, {} lines. ", whole.len(), whole.lines().count());
        let file = note
            .strip_prefix(&(size + "The whole output is in "))
            .and_then(|note| note.strip_suffix("; read it in parts or search it.]\n"));
        let file = file.unwrap_or_else(|| panic!("{tool}: {note}"));
        assert_eq!(fs::read_to_string(file).unwrap(), whole, "{tool}");
    };
    let lines: Vec<String> = (0..3000).map(|n| format!("line {n}")).collect();
    check("lines", "line 0\nline 1\n", &lines.join("\n"));
    check("wide", "xxxx", &"x".repeat(60 * 1024));
    check("letters", "aüüü", &format!("a{}", "ü".repeat(30 * 1024)));
}

#[test]
fn arguments_come_from_standard_input_too() {
    let Some(project) = tools() else { return };
    let script = format!("echo '{{\"id\": 7}}' | {BEEUNI} tools call echo --args -");
    let output = project.run("sh", &["-c", &script]);
    assert_eq!(text(&output.stdout), "{\n  \"id\": 7\n}\n");
}

#[test]
fn what_can_never_be_called_exits_with_2() {
    let Some(project) = tools() else { return };
    let check = |args: &[&str], stderr: &str| {
        let output = call(&project, args);
        let real = (output.status.code(), text(&output.stdout), text(&output.stderr));
        assert_eq!(real, (Some(2), String::new(), stderr.to_owned()), "{args:?}");
    };
    check(&["lin"], "error: no tool named lin is loaded\nhint: did you mean lines?\n");
    check(
        &["show"],
        "error: no tool named show is loaded\nhint: this project has: echo, fails, lines, wide, letters, half, nothing, cycle, big, talks, zodless, helped\n",
    );
    check(
        &["bash"],
        "error: no tool named bash is loaded\nhint: bash is a harness tool: only an agent's turn can call it\n",
    );
    check(
        &["echo", "--as", "nobody"],
        "error: there is no enabled agent nobody\nhint: this project has: beeuni, greeter\n",
    );
    check(
        &["echo", "--as", "greeter"],
        "error: agent greeter may not use echo\nhint: see agents.greeter.tools in beeuni.yaml\n",
    );
    let object = "hint: a tool takes an object of its parameters, such as '{\"id\":\"A-1042\"}'\n";
    let quotes = "hint: put the whole object into single quotes, such as '{\"id\":\"A-1042\"}'\n";
    for args in ["[1]", "1", "\"x\"", "true"] {
        check(&["echo", "--args", args], &format!("error: --args is JSON, but no object\n{object}"));
    }
    check(
        &["echo", "--args", "{bad"],
        &format!("error: --args is not JSON: key must be a string at line 1 column 2\n{quotes}"),
    );
    check(
        &["echo", "--args", "{} x"],
        &format!("error: --args is not JSON: trailing characters at line 1 column 4\n{quotes}"),
    );
}

#[test]
fn m8_a_package_that_is_not_there() {
    let Some(project) = tools() else { return };
    insta::assert_snapshot!(shown(&project, &call(&project, &["zodless"])), @r"
    exit 1
    --- stdout
    --- stderr
    error: zodless did not load: Cannot find package 'zod' imported from tools/zodless.ts
    hint: see tools/zodless.ts
    ");
}

#[test]
fn what_a_module_prints_goes_to_standard_error_alone() {
    let Some(project) = tools() else { return };
    insta::assert_snapshot!(shown(&project, &call(&project, &["talks"])), @r"
    exit 0
    --- stdout
    ok
    --- stderr
    [tools] talks: hello
    [tools] talks: raw
    ");
}

#[test]
fn an_edited_helper_counts_also_with_its_old_time_stamp() {
    let Some(project) = tools() else { return };
    assert_eq!(text(&call(&project, &["helped"]).stdout), "one\n");
    let helper = project.at("tools/lib/word.ts");
    let before: SystemTime = fs::metadata(&helper).unwrap().modified().unwrap();
    project.write("tools/lib/word.ts", "export const word = 'two'\n");
    fs::File::options().write(true).open(&helper).unwrap().set_modified(before).unwrap();
    assert_eq!(text(&call(&project, &["helped"]).stdout), "two\n");
}

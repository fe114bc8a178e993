//! `beeuni run` as its users see it: a real model server's wire, real tools, signals.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use beeuni_protocol::event::{Event, EventBody, FinishReason, ToolStatus};
use beeuni_testkit::{bun, model::ScriptedModel, project::Project};

use crate::{BEEUNI, shown};

const MANIFEST: &str = "agents:
  beeuni: {harness: experimental, secrets: all}
  helper: {harness: experimental, file: agents/helper.md}
  off: {enabled: false}
tools:
  echo: tools/echo.ts
  waits: tools/waits.ts
";

/// A checkout beside a scripted model.
struct Stage {
    project: Project,
    model: ScriptedModel,
}

/// The stage, or `None` with a loud line when there is no Bun.
fn stage() -> Option<Stage> {
    if bun().is_none() {
        eprintln!("skipped: no Bun; run `npm ci` in runtime/ or set BEEUNI_BUN");
        return None;
    }
    let project = crate::project(MANIFEST);
    let module = |body: &str| {
        format!(
            "export default {{ description: 'd', parameters: {{ type: 'object' }}, async execute(args: any, context: any) {{ {body} }} }}\n"
        )
    };
    project
        .write("agents/helper.md", "---\nmode: subagent\n---\n")
        .write("tools/echo.ts", module("return args.secret ? String(context.env.CRM_KEY) : args"))
        .write(
            "tools/waits.ts",
            module("await Bun.write('started', String(process.pid)); for (;;) await Bun.sleep(1000)"),
        );
    Some(Stage { project, model: ScriptedModel::start_blocking() })
}

impl Stage {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(BEEUNI);
        command
            .arg("run")
            .args(args)
            .env("BEEUNI_MODEL", "scripted/scripted-1")
            .env("BEEUNI_MODEL_URL", self.model.openai_url())
            .env("BEEUNI_MODEL_API", "openai")
            .env("BEEUNI_MODEL_KEY", "sk-test");
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs in the background of a thread while `during` looks on; gives what the program printed.
    fn run_while(&self, args: &[&str], during: impl FnOnce()) -> Output {
        let mut command = self.command(args);
        thread::scope(|scope| {
            let running = scope.spawn(move || command.output().unwrap());
            during();
            running.join().unwrap()
        })
    }

    /// The live processes with this project's folder in their environment, as `(id, command line)`.
    fn processes(&self) -> Vec<(u32, String)> {
        let marker = self.project.home().to_string_lossy().into_owned();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let ours = ids.filter_map(|id| {
            let folder = Path::new("/proc").join(id.to_string());
            let has = |file: &str| {
                fs::read(folder.join(file)).is_ok_and(|text| String::from_utf8_lossy(&text).contains(&marker))
            };
            let words = fs::read(folder.join("cmdline")).ok().filter(|words| !words.is_empty())?;
            (has("environ") || has("cmdline"))
                .then(|| (id, String::from_utf8_lossy(&words).replace('\0', " ")))
        });
        ours.collect()
    }

    /// The program itself, once a call of `waits` is under way.
    fn program_in_a_call(&self) -> u32 {
        eventually("a call is under way", || self.project.at("started").exists());
        let found = self.processes();
        assert!(found.len() > 1, "the program and its tool's process: {found:?}");
        let program = found.iter().find(|(_, words)| words.contains(" run ")).map(|(id, _)| *id);
        program.unwrap_or_else(|| panic!("no program among {found:?}"))
    }

    fn assert_nothing_is_left(&self) {
        eventually("no process is left", || self.processes().is_empty());
    }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn signal(name: &str, id: u32) {
    let output = Command::new("kill").args([&format!("-{name}"), &id.to_string()]).output().unwrap();
    assert!(output.status.success(), "kill -{name} {id}");
}

/// The events of `--json`, numbered without a gap from the first on.
fn events(output: &Output) -> Vec<Event> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let events: Vec<Event> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let first = events.first().map_or(0, |event| event.seq);
    for (event, seq) in events.iter().zip(first..) {
        assert_eq!(event.seq, seq, "{text}");
    }
    events
}

fn reason(events: &[Event]) -> Option<FinishReason> {
    match events.last()?.body {
        EventBody::TurnFinished { reason, .. } => Some(reason),
        _ => None,
    }
}

#[test]
fn a_turn_with_a_tool() {
    let Some(stage) = stage() else { return };
    let output = stage.run(&["--prompt", "CALL echo {\"id\":\"A-1042\"}\nSAY It is shipped."]);
    let text = shown(&stage.project, &output);
    let (before, time) = text.rsplit_once('(').unwrap();
    assert!(time.ends_with("ms)\n"), "{text}");
    insta::assert_snapshot!(before, @r#"
    exit 0
    --- stdout
    It is shipped.
    --- stderr
    → echo {"id":"A-1042"}
    ✓ echo 
    "#);
    assert_eq!(stage.model.violations(), Vec::<String>::new());
    stage.assert_nothing_is_left();
}

#[test]
fn json_prints_events_alone() {
    let Some(stage) = stage() else { return };
    let output = stage.run(&["--json", "--prompt", "CALL echo {\"id\":1}\nSAY ok"]);
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
        (Some(0), ""),
        "{output:?}"
    );
    let events = events(&output);
    assert_eq!((events[0].seq, reason(&events)), (1, Some(FinishReason::Stop)));
    assert!(events.iter().any(|event| matches!(
        &event.body,
        EventBody::ToolFinished { status: ToolStatus::Ok, output, .. } if output == "{\n  \"id\": 1\n}"
    )));
}

#[test]
fn a_prompt_on_standard_input() {
    let Some(stage) = stage() else { return };
    let file = stage.project.at("prompt.txt");
    fs::write(&file, "SAY from standard input").unwrap();
    let output = stage.command(&[]).stdin(fs::File::open(file).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "from standard input\n");
}

#[test]
fn a_failed_turn_exits_with_1() {
    let Some(stage) = stage() else { return };
    let output = stage.run(&["--json", "--prompt", "FAIL 401\nSAY never"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(reason(&events(&output)), Some(FinishReason::Error));
}

#[test]
fn what_cannot_start_says_why() {
    let Some(stage) = stage() else { return };
    let project = &stage.project;
    project.write("bad.env", "no name here\n");
    project.write(".git/HEAD", "");
    let check = |args: &[&str], code: i32, stderr: &str| {
        let output = stage.run(args);
        let real = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {real}");
        assert!(output.stdout.is_empty() && real.contains(stderr), "{args:?}: {real}");
    };
    check(&["--prompt", " "], 2, "error: the prompt is empty\n");
    check(&[], 2, "error: the prompt is empty\n");
    check(
        &["--prompt", "x", "--agent", "nobody"],
        2,
        "error: there is no agent nobody\nhint: this project has: beeuni\n",
    );
    check(&["--prompt", "x", "--agent", "helper"], 2, "agent helper is a subagent: it cannot lead a session");
    check(&["--prompt", "x", "--agent", "off"], 2, "agent off is switched off (enabled: false)");
    check(&["--prompt", "x", "--continue"], 2, "there is no run to go on with in this checkout");
    check(&["--prompt", "x", "--harness", "other"], 2, "[possible values: standard, experimental]");
    check(
        &["--prompt", "x", "--harness", "standard"],
        1,
        "the standard harness (OpenCode) cannot be driven by this version yet",
    );
    check(&["--prompt", "x", "--env-file", "nothing.env"], 2, "nothing.env");
    check(&["--prompt", "x", "--env-file", "bad.env"], 2, "bad.env");
    project.write("beeuni.yaml", format!("env: {{required: [CRM_KEY]}}\n{MANIFEST}"));
    check(&["--prompt", "x"], 1, "CRM_KEY");
    assert!(stage.model.requests().is_empty(), "nothing was asked of the model");
}

#[test]
fn a_secret_of_a_file_reaches_the_tool_and_no_event() {
    let Some(stage) = stage() else { return };
    stage.project.write("secret.env", "CRM_KEY=hunter2-crm\n");
    stage.project.chmod("secret.env", 0o600);
    let output =
        stage.run(&["--json", "--env-file", "secret.env", "--prompt", "CALL echo {\"secret\":true}\nSAY ok"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(r#""output":"[secret]""#) && !text.contains("hunter2-crm"), "{text}");
}

#[test]
fn ctrl_c_stops_the_turn() {
    let Some(stage) = stage() else { return };
    let output = stage.run_while(&["--json", "--prompt", "CALL waits {}\nSAY never"], || {
        signal("INT", stage.program_in_a_call());
    });
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(reason(&events(&output)), Some(FinishReason::Aborted));
    stage.assert_nothing_is_left();
}

#[test]
fn a_kill_leaves_no_process_and_a_session_that_goes_on() {
    let Some(stage) = stage() else { return };
    let output = stage.run_while(&["--json", "--prompt", "CALL waits {}\nSAY never"], || {
        signal("KILL", stage.program_in_a_call());
    });
    assert_eq!(output.status.code(), None, "{output:?}");
    stage.assert_nothing_is_left();
    let killed = events(&output);

    let output = stage.run(&["--json", "--continue", "--prompt", "SAY on we go"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let resumed = events(&output);
    assert_eq!(resumed[0].seq, killed.last().unwrap().seq + 1);
    assert_eq!(resumed[0].session, killed[0].session);
    let told = |reason| {
        resumed.iter().filter(|event| matches!(&event.body, EventBody::TurnFinished { reason: real, .. } if *real == reason)).count()
    };
    assert_eq!((told(FinishReason::Interrupted), told(FinishReason::Stop)), (1, 1));
    assert_eq!(stage.model.violations(), Vec::<String>::new());
}

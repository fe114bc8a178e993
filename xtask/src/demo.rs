//! `cargo xtask demo`: from a checkout to an answer, with the built program, step by step as a newcomer would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use beeuni_testkit::model::ScriptedModel;

use crate::{orders, run, setup};

/// The tool that the demo adds to its project.
const TOOL: &str = include_str!("../demo/lookup_order.ts");

/// The line that `beeuni init` leaves commented out.
const COMMENTED: &str = "  # lookup_order: tools/lookup_order.ts   # your own tool: a module in your repo";

/// What a person would ask.
const QUESTION: &str =
    "Call the lookup_order tool once with id A-1042 and tell me the order's status and its carrier.";

/// The same for the scripted model, whose prompt is its script.
const SCRIPT: &str = r#"CALL lookup_order {"id":"A-1042"}"#;

/// Variables that name a model; any of the first two, or the third, means a real one.
const MODEL_VARIABLES: [&str; 7] = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "BEEUNI_MODEL",
    "BEEUNI_MODEL_URL",
    "BEEUNI_MODEL_API",
    "BEEUNI_MODEL_KEY",
    "OPENAI_BASE_URL",
];

/// Runs the demo; fails unless the answer holds the order's status and carrier.
pub fn run(root: &Path) -> Result<()> {
    let installed = setup::run(root)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let service = runtime.block_on(orders::start())?;
    let scripted = if MODEL_VARIABLES[..3].iter().any(|name| std::env::var_os(name).is_some()) {
        None
    } else {
        Some(runtime.block_on(ScriptedModel::start()))
    };

    let home = tempfile::tempdir()?;
    let project = home.path().join("shop");
    let demo = Demo { beeuni: installed.beeuni, bun: installed.bun, home: home.path().to_owned() };

    demo.step("A fresh project", home.path(), &["init", "shop"], None)?;
    fs::write(project.join("tools/lookup_order.ts"), TOOL)?;
    let manifest = project.join("beeuni.yaml");
    let text = fs::read_to_string(&manifest)?;
    ensure!(text.contains(COMMENTED), "the starter no longer has the line {COMMENTED:?}");
    fs::write(&manifest, text.replace(COMMENTED, "  lookup_order: tools/lookup_order.ts"))?;
    let secrets = home.path().join("secrets.env");
    fs::write(&secrets, format!("ORDERS_URL=http://{service}\nORDERS_API_KEY={}\n", orders::KEY))?;
    let secrets = secrets.to_string_lossy().into_owned();
    run::say("   wrote tools/lookup_order.ts, switched its line in beeuni.yaml on, and put the service's");
    run::say("   address and key into secrets.env");

    demo.step("Is it right?", &project, &["validate"], None)?;
    demo.step("What does a session get?", &project, &["tools", "ls"], None)?;
    let args = r#"{"id":"A-1042"}"#;
    demo.step(
        "One call without a model",
        &project,
        &["tools", "call", "lookup_order", "--args", args, "--env-file", &secrets],
        None,
    )?;

    let question = if scripted.is_some() {
        run::say(
            "\n   No ANTHROPIC_API_KEY, OPENAI_API_KEY or BEEUNI_MODEL is set, so the model below is scripted:",
        );
        run::say(
            "   a small server that speaks a real provider's protocol and follows its prompt word by word.",
        );
        SCRIPT
    } else {
        QUESTION
    };
    let run_args = ["run", "--harness", "experimental", "--env-file", &secrets, "--prompt", question];
    let answer = demo.step("A model calls it", &project, &run_args, scripted.as_ref())?;
    ensure!(
        answer.contains("shipped") && answer.contains("Alpine Parcel"),
        "the answer lacks the order's status or carrier: {answer}"
    );
    if let Some(model) = scripted {
        let violations = model.violations();
        ensure!(violations.is_empty(), "the model protocol was broken: {violations:?}");
    }
    run::say(
        "\nThe answer went through the model protocol, the agent loop, the tool host, Bun and the order service.",
    );
    Ok(())
}

struct Demo {
    beeuni: PathBuf,
    bun: PathBuf,
    home: PathBuf,
}

impl Demo {
    /// Shows a command, runs it, shows what it printed on standard output and gives that back.
    fn step(
        &self,
        what: &str,
        folder: &Path,
        args: &[&str],
        model: Option<&ScriptedModel>,
    ) -> Result<String> {
        run::say(&format!("\n── {what}\n$ beeuni {}", args.join(" ")));
        let mut command: Command = run::command(folder, &self.beeuni.to_string_lossy(), args);
        // A home of its own: the demo neither reads nor leaves anything in the user's.
        command.env_clear().env("HOME", &self.home).env("BEEUNI_BUN", &self.bun);
        for name in ["PATH", "LANG", "TERM"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        match model {
            Some(model) => {
                command
                    .env("BEEUNI_MODEL", "scripted/scripted-1")
                    .env("BEEUNI_MODEL_API", "openai")
                    .env("BEEUNI_MODEL_URL", format!("{}/v1", model.url()))
                    .env("BEEUNI_MODEL_KEY", "none");
            }
            None => {
                command.envs(MODEL_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
            }
        }
        let printed = run::output(what, command).context("the demo stopped here")?;
        run::say(printed.trim_end());
        Ok(printed)
    }
}

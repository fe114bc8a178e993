//! The loop: answers, calls, retries, limits, and what goes wrong at the model's side.

use beeuni_harness::native::MAX_PROMPT;
use beeuni_harness::{Harness, HarnessError, Prompt};
use beeuni_models::Api;
use insta::assert_snapshot;
use serde_json::Value;

use crate::stage::{Plan, SCHEMA, Stage, agent, only};

#[tokio::test]
async fn a_turn_thinks_speaks_calls_and_ends() {
    for api in [Api::OpenAi, Api::Anthropic] {
        let stage = Stage::with(Plan { api, ..Plan::default() }).await;
        let lines = stage.turn("s1", "SAY Looking.\nCALL echo {\"b\": 1.50, \"a\": {}}\nSAY Fine.").await;
        insta::allow_duplicates! {
            assert_snapshot!(lines, @r#"
        turn 1 of lead on scripted/scripted-1
        say Looking.
        usage 10 5 0
        start echo {"b": 1.50, "a": {}}
        end echo ok: {"b": 1.50, "a": {}}
        say Fine.
        usage 10 5 0
        turn 1 stop
        "#);
        }
        let lines = stage.turn("s1", "SAY Again.").await;
        assert!(lines.starts_with("turn 2 of lead"), "{lines}");
        stage.assert_valid();
    }
}

/// Parallel calls answer in the model's order, whichever is done first.
#[tokio::test]
async fn calls_of_one_message_run_side_by_side() {
    let stage = Stage::new().await;
    stage.write("gate", "");
    // The first can only end once the second has run: one after the other would never end.
    let script = "CALL bash {\"command\":\"while [ -e gate ]; do sleep 0.01; done; echo first\"}\n\
                  + bash {\"command\":\"rm gate; echo second\"}\nSAY ok";
    let lines = stage.turn("s1", script).await;
    assert!(lines.contains("end bash ok: first\n") && lines.contains("end bash ok: second\n"), "{lines}");
    let results = stage.model.requests()[1].results();
    assert_eq!(results, ["first\n", "second\n"]);
    stage.assert_valid();
}

/// Harness tools in their order, then hosted ones in theirs; schemas as the module wrote them (M2, C7, D1, D3).
#[tokio::test]
async fn the_offer_is_the_same_bytes_in_every_request() {
    let tools = vec!["zeta", "alpha", "mid"];
    let stage = Stage::with(Plan { tools, ..Plan::default() }).await;
    stage.turn("s1", "CALL zeta\nSAY a").await;
    stage.turn("s2", "SAY b").await;
    let requests = stage.model.requests();
    assert_eq!(
        requests[0].tools(),
        [
            "bash",
            "read",
            "write",
            "edit",
            "list",
            "glob",
            "grep",
            "task",
            "question",
            "todowrite",
            "webfetch",
            "skill",
            "zeta",
            "alpha",
            "mid"
        ]
    );
    for tool in ["zeta", "alpha", "mid"] {
        assert_eq!(requests[0].schema(tool).as_deref(), Some(SCHEMA));
    }
    for request in &requests {
        for tool in requests[0].tools() {
            assert_eq!(request.schema(&tool), requests[0].schema(&tool));
            let schema: Value = serde_json::from_str(&request.schema(&tool).unwrap()).unwrap();
            assert_eq!(schema["type"], "object", "{tool}");
        }
        assert_eq!(request.json["tools"], requests[0].json["tools"]);
    }
}

#[tokio::test]
async fn arguments_go_through_untouched() {
    for api in [Api::OpenAi, Api::Anthropic] {
        arguments_over(Stage::with(Plan { api, ..Plan::default() }).await).await;
    }
}

async fn arguments_over(stage: Stage) {
    let check = async |given: &str, expected: &str| {
        let (_, output) = stage.call("echo", given).await;
        assert_eq!(output, expected, "{given}");
    };
    check("EMPTY", "{}").await;
    check("{}", "{}").await;
    check(r#"{"n":"5","extra":1}"#, r#"{"n":"5","extra":1}"#).await;
    check(r#"{"n":123456789012345678901234567890.10}"#, r#"{"n":123456789012345678901234567890.10}"#).await;
    check(r#"{"__proto__":{"admin":true},"a":1,"a":2}"#, r#"{"__proto__":{"admin":true},"a":1,"a":2}"#).await;
    check("[1]", "arguments are not a JSON object: it is a list").await;
    check("null", "arguments are not a JSON object: it is null").await;
    check("{\"a\":", "arguments are not a JSON object: EOF while parsing a value at line 1 column 5").await;
    check("not json", "arguments are not a JSON object: expected ident at line 1 column 2").await;
    let names: Vec<String> =
        stage.hosted.calls.lock().unwrap().iter().map(|call| call.arguments.clone()).collect();
    assert_eq!(names.len(), 5, "a call whose arguments are no object runs nothing: {names:?}");
    stage.assert_valid();
}

#[tokio::test]
async fn a_tools_own_words_reach_the_model() {
    let stage = Stage::new().await;
    let check = async |tool: &str, expected: &str| {
        let lines = stage.turn(&format!("s-{tool}"), &format!("CALL {tool} {{}}\nSAY ok")).await;
        assert!(lines.contains(&format!("end {tool} {expected}\n")), "{lines}");
    };
    check("fails", "error: the order is unknown").await;
    check("crashes", "error: the tool's process exited with code 3").await;
    // A fault of ours costs one call, not the turn.
    check("panics", "error: panics failed inside the harness; this is a fault of Beeuni").await;
    assert_eq!(stage.model.requests()[1].results(), ["the order is unknown"]);
}

#[tokio::test]
async fn the_last_step_has_no_tools_and_asks_for_words() {
    let stage = Stage::with(Plan {
        agents: vec![("lead", beeuni_manifest::Agent { steps: Some(2), ..agent() })],
        ..Plan::default()
    })
    .await;
    let lines = stage.turn("s1", "CALL echo {}\nCALL! echo {\"never\":1}\nSAY never").await;
    assert_snapshot!(lines, @r"
    turn 1 of lead on scripted/scripted-1
    usage 10 5 0
    start echo {}
    end echo ok: {}
    usage 10 5 0
    turn 1 stop
    ");
    let requests = stage.model.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].tools().is_empty());
    assert!(requests[1].system().contains("limit of steps"));
    assert!(!requests[0].system().contains("limit of steps"));
}

#[tokio::test]
async fn a_model_that_fails_ends_the_turn_with_words() {
    let stage = Stage::new().await;
    let check = async |script: &str, expected: &[&str]| {
        let session = format!("s{}", stage.log.len());
        let lines = stage.turn(&session, script).await;
        for part in expected {
            assert!(lines.contains(part), "{script}: {part} is not in\n{lines}");
        }
        // The next prompt finds a conversation that every provider takes.
        let lines = stage.turn(&session, "SAY back").await;
        assert!(lines.contains("say back\n") && lines.ends_with("turn 2 stop\n"), "{lines}");
    };
    check("FAIL 503 1\nSAY ok", &["retrying 1\n", "say ok\n", "turn 1 stop"]).await;
    check(
        "FAIL 401\nSAY ok",
        &["turn 1 error: scripted/scripted-1: the provider refused the key", "SCRIPTED_KEY"],
    )
    .await;
    check("FAIL 500\nSAY ok", &["retrying 2\n", "turn 1 error: scripted/scripted-1"]).await;
    check("FULL\nSAY ok", &["turn 1 error: scripted/scripted-1: the conversation no longer fits"]).await;
    check("GARBAGE\nSAY ok", &["turn 1 error: scripted/scripted-1"]).await;
    check("STOP length\nSAY ok", &["say ok\n", "cut off at the model's output limit"]).await;
    check("STOP content_filter\nSAY ok", &["the provider's filter cut the answer off"]).await;
    check("DROP 1 1\nSAY one two three", &["retrying 1\n", "turn 1 stop"]).await;
    check("DROP 1\nSAY one two three", &["retrying 1\n", "turn 1 error"]).await;
    stage.assert_valid();
}

/// What a broken stream had said is not part of the conversation once the request was sent again.
#[tokio::test]
async fn a_stream_that_breaks_is_asked_again() {
    let stage = Stage::new().await;
    stage.turn("s1", "DROP 1 1\nSAY one two three\nCALL echo {}\nSAY ok").await;
    let requests = stage.model.requests();
    let spoken: Vec<&Value> =
        requests[2].messages().iter().filter(|message| message["role"] == "assistant").collect();
    assert_eq!(spoken.len(), 1);
    assert_eq!(spoken[0]["content"], "one two three");
    assert_eq!(stage.hosted.calls.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn prompts_that_are_refused() {
    let stage = Stage::with(Plan {
        agents: vec![
            ("lead", agent()),
            ("off", beeuni_manifest::Agent { enabled: false, ..agent() }),
            ("sub", beeuni_manifest::Agent { mode: beeuni_manifest::AgentMode::Subagent, ..agent() }),
        ],
        ..Plan::default()
    })
    .await;
    let check = async |session: &str, agent: &str, text: String, expected: &str| {
        let prompt = Prompt { session: session.into(), agent: agent.into(), text };
        assert_eq!(stage.native.prompt(prompt).await.unwrap_err().to_string(), expected);
    };
    check("s1", "lead", " \n".into(), "the prompt is empty").await;
    let long = format!(
        "the prompt has {} bytes, and at most 1048576 are taken; put the text into a file and name the file",
        MAX_PROMPT + 1
    );
    check("s1", "lead", "x".repeat(MAX_PROMPT + 1), &long).await;
    check("s1", "nobody", "SAY x".into(), "agent nobody is not declared in beeuni.yaml").await;
    check("s1", "off", "SAY x".into(), "agent off is switched off (enabled: false)").await;
    check(
        "s1",
        "sub",
        "SAY x".into(),
        "agent sub has mode subagent: it is started with task and leads no session",
    )
    .await;
    let id = "the conversation of session ../s could not be kept: \"../s\" is no id for a session";
    check("../s", "lead", "SAY x".into(), id).await;
    assert_eq!(stage.log.len(), 0, "a refused prompt begins no turn");

    stage.prompt("s1", "HANG").await;
    let busy = stage
        .native
        .prompt(Prompt { session: "s1".into(), agent: "lead".into(), text: "SAY x".into() })
        .await;
    assert!(matches!(busy, Err(HarnessError::Busy(session)) if session == "s1"));
    let lines = stage.turn("s2", "SAY other sessions go on").await;
    assert!(lines.contains("say other sessions go on"), "{lines}");
    stage.native.stop("s1").await;
}

#[tokio::test]
async fn agents_are_told_where_they_are_and_who() {
    let own = beeuni_manifest::Agent { prompt: "You count sheep.".into(), temperature: Some(0.5), ..agent() };
    let stage = Stage::with(Plan { agents: vec![("lead", own)], ..Plan::default() }).await;
    stage.turn("s1", "SAY x").await;
    let request = &stage.model.requests()[0];
    let system = request.system().replace(stage.home.path().to_str().unwrap(), "HOME");
    assert_snapshot!(system, @r"
    You count sheep.

    <environment>
    Working directory: HOME/checkout
    Temporary folder: HOME/temp
    Platform: linux
    Date: 2026-12-01
    </environment>
    ");
    assert_eq!(request.json["temperature"], 0.5);
    let stage = Stage::with(Plan { agents: vec![("lead", agent())], ..Plan::default() }).await;
    stage.turn("s1", "SAY x").await;
    assert!(
        stage.model.requests()[0].system().starts_with("You are an agent that works in a project's checkout")
    );
}

/// The same call a third time, with the same answer each time, needs the user's word; a tool that counts does not.
#[tokio::test]
async fn a_loop_is_broken() {
    let stage = Stage::with(Plan { unattended: true, ..Plan::default() }).await;
    let lines = stage.turn("s1", "CALL echo {}\nCALL echo {}\nCALL echo {}\nSAY ok").await;
    let ends: Vec<&str> = lines.lines().filter(|line| line.starts_with("end")).collect();
    assert_eq!(ends[..2], ["end echo ok: {}"; 2]);
    assert!(
        ends[2].starts_with("end echo denied: echo (echo {}: the same call for the third time"),
        "{}",
        ends[2]
    );
    let count = r#"CALL bash {"command":"echo x >> n; wc -l < n"}"#;
    let lines = stage.turn("s2", &format!("{count}\n{count}\n{count}\n{count}\nSAY ok")).await;
    assert!(lines.contains("end bash ok: 4"), "{lines}");
}

#[tokio::test]
async fn an_agent_without_tools_gets_none() {
    let stage = Stage::with(Plan {
        agents: vec![("lead", beeuni_manifest::Agent { tools: only(&[]), ..agent() })],
        ..Plan::default()
    })
    .await;
    let lines = stage.turn("s1", "CALL! echo {}\nSAY ok").await;
    assert!(lines.contains("end echo denied: agent lead may not use echo\n"), "{lines}");
    assert!(stage.model.requests()[0].tools().is_empty());
}

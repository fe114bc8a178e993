//! `task`: who may be started, with which tools, and how it ends (A4, I1, I2).

use beeuni_harness::Harness;
use beeuni_manifest::{Action, Agent, AgentMode, ToolAccess};
use beeuni_protocol::event::Reply;
use indexmap::IndexMap;
use insta::assert_snapshot;
use serde_json::json;

use crate::stage::{Plan, Stage, agent, only, rules};

fn plan(lead: Agent, worker: Agent) -> Plan {
    Plan { agents: vec![("lead", lead), ("worker", worker)], ..Plan::default() }
}

fn task(prompt: &str) -> String {
    task_of("worker", prompt, None)
}

fn task_of(subagent: &str, prompt: &str, task_id: Option<&str>) -> String {
    let mut arguments = json!({"description": "a part", "prompt": prompt, "subagent_type": subagent});
    if let Some(id) = task_id {
        arguments["task_id"] = json!(id);
    }
    format!("task {arguments}")
}

#[tokio::test]
async fn a_subagent_answers_in_a_session_of_its_own() {
    let worker = Agent { mode: AgentMode::Subagent, description: Some("Works.".into()), ..agent() };
    let stage = Stage::with(plan(agent(), worker)).await;
    let lines =
        stage.turn("s1", &format!("CALL {}\nSAY ok", task("CALL echo {\"a\":1}\nSAY Found it."))).await;
    let shown = lines.lines().filter(|line| !line.starts_with("start task")).collect::<Vec<_>>().join("\n");
    assert_snapshot!(shown, @r#"
    turn 1 of lead on scripted/scripted-1
    usage 10 5 0
    child s1~1 worker
      turn 1 of worker on scripted/scripted-1
      usage 10 5 0
      start echo {"a":1}
      end echo ok: {"a":1}
      say Found it.
      usage 10 5 0
      turn 1 stop
    end task ok: Found it.

    [task_id: s1~1; give it to go on with this subagent]
    say ok
    usage 10 5 0
    turn 1 stop
    "#);
    let call = stage.hosted.calls.lock().unwrap()[0].clone();
    assert_eq!(
        (call.session.as_str(), call.session_agent.as_str(), call.agent.as_str()),
        ("s1", "lead", "worker")
    );
    assert!(stage.model.requests()[0].body.contains("- worker: Works."));

    // The same task goes on, and knows what was said.
    let lines =
        stage.turn("s1", &format!("CALL {}\nSAY ok", task_of("worker", "SAY More.", Some("s1~1")))).await;
    assert!(lines.contains("  turn 2 of worker") && lines.contains("end task ok: More."), "{lines}");
    let continued =
        stage.model.requests().into_iter().rev().find(|request| request.body.contains("SAY More.")).unwrap();
    assert!(continued.body.contains("Found it."));
    stage.assert_valid();
}

/// I1: only what both lists allow; a subagent delegates and asks nobody.
#[tokio::test]
async fn a_subagent_gets_what_both_lists_allow() {
    let lead = Agent { tools: only(&["task", "question", "read", "echo"]), ..agent() };
    let worker = Agent { tools: only(&["echo", "fails", "task", "question"]), ..agent() };
    let stage = Stage::with(plan(lead, worker)).await;
    let inner =
        "CALL! fails {}\n+ echo {}\n+ read {\"path\":\"x\"}\n+ task {}\n+ question {}\n+ show {}\nSAY ok";
    let lines = stage.turn("s1", &format!("CALL {}\nSAY ok", task(inner))).await;
    let mut ends: Vec<&str> = lines.lines().filter(|line| line.starts_with("  end")).collect();
    ends.sort_unstable();
    assert_eq!(
        ends,
        [
            "  end echo ok: {}",
            "  end fails denied: agent worker may not use fails",
            "  end question denied: agent worker may not use question",
            "  end read denied: agent worker may not use read",
            "  end show unavailable: Tool show not found",
            "  end task denied: agent worker may not use task",
        ]
    );
    assert_eq!(stage.model.requests()[1].tools(), ["echo"]);
    assert_eq!(stage.model.requests()[0].tools(), ["read", "task", "question", "echo"]);
}

/// I2: the ways to say that an agent does not delegate.
#[tokio::test]
async fn delegation_is_left_out() {
    let map = |entries: &[(&str, bool)]| {
        ToolAccess::Map(
            entries.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect::<IndexMap<_, _>>(),
        )
    };
    let check = async |tools: ToolAccess, delegates: bool| {
        let stage = Stage::with(plan(Agent { tools: tools.clone(), ..agent() }, agent())).await;
        let lines = stage.turn("s1", &format!("CALL! {}\nSAY ok", task("SAY x"))).await;
        assert_eq!(lines.contains("end task ok"), delegates, "{tools:?}\n{lines}");
        assert_eq!(stage.model.requests()[0].tools().contains(&"task".to_owned()), delegates);
    };
    check(map(&[("task", false)]), false).await;
    check(ToolAccess::Exclude(vec!["task".into()]), false).await;
    check(only(&["read"]), false).await;
    check(map(&[("task", true), ("*", false)]), true).await;
}

#[tokio::test]
async fn subagents_that_cannot_be_started() {
    let stage = Stage::with(Plan {
        agents: vec![
            ("lead", Agent { mode: AgentMode::Primary, ..agent() }),
            ("worker", agent()),
            ("off", Agent { enabled: false, ..agent() }),
            ("boss", Agent { mode: AgentMode::Primary, ..agent() }),
        ],
        ..Plan::default()
    })
    .await;
    let check = async |call: String, expected: &str| {
        let session = format!("s{}", stage.log.len());
        let lines = stage.turn(&session, &format!("CALL {call}\nSAY ok")).await;
        assert!(lines.contains(&format!("end task error: {expected}\n")), "{lines}");
    };
    for name in ["off", "boss", "lead", "general", "Worker"] {
        let words = format!("no subagent named {name}; there is worker");
        check(task_of(name, "SAY x", None), &words).await;
    }
    check(task(" "), "the prompt is empty").await;
    for id in ["s1~9", "../x", "call-1"] {
        let words = format!("no task {id} in this session; leave task_id out to start one");
        check(task_of("worker", "SAY x", Some(id)), &words).await;
    }
    let (_, words) = stage.call("task", r#"{"prompt":"x"}"#).await;
    assert_eq!(words, "the arguments do not fit task: missing field `subagent_type`");
}

#[tokio::test]
async fn tasks_side_by_side_and_failing() {
    let stage = Stage::with(plan(agent(), agent())).await;
    stage.write("gate", "");
    let first = task("CALL bash {\"command\":\"while [ -e gate ]; do sleep 0.01; done; echo 1\"}\nSAY first");
    let second = task("CALL bash {\"command\":\"rm gate\"}\nSAY second");
    let third = task("FAIL 401\nSAY third");
    let lines = stage.turn("s1", &format!("CALL {first}\n+ {second}\n+ {third}\nSAY ok")).await;
    assert!(lines.contains("end task ok: first") && lines.contains("end task ok: second"), "{lines}");
    assert!(lines.contains("end task error: the subagent worker failed: scripted/scripted-1"), "{lines}");
    let children: Vec<&str> = lines.lines().filter(|line| line.starts_with("child")).collect();
    assert_eq!(children.len(), 3, "{lines}");
    stage.assert_valid();
}

#[tokio::test]
async fn a_stop_reaches_every_subagent() {
    let stage = Stage::with(plan(agent(), agent())).await;
    let (slow, deaf, silent) = (task("CALL slow {}\nSAY a"), task("CALL deaf {}\nSAY b"), task("HANG"));
    stage.prompt("s1", &format!("CALL {slow}\n+ {deaf}\n+ {silent}\nSAY ok")).await;
    stage.log.started(0, "slow").await;
    stage.log.started(0, "deaf").await;
    stage
        .model
        .wait_for(|requests| {
            requests.iter().any(|request| request.body.contains("HANG") && request.messages().len() == 2)
        })
        .await;
    stage.native.stop("s1").await;
    let lines = stage.log.lines(0);
    assert_eq!(lines.matches("  turn 1 aborted\n").count(), 3, "{lines}");
    assert_eq!(lines.matches("end task aborted: [stopped by the user]\n").count(), 3, "{lines}");
    assert!(lines.ends_with("turn 1 aborted\n"), "{lines}");
    let lines = stage.turn("s1", "SAY back").await;
    assert!(lines.ends_with("turn 2 stop\n"), "{lines}");
    stage.assert_valid();
}

/// A child session can be stopped alone; its parent hears of it and goes on.
#[tokio::test]
async fn a_subagent_is_stopped_alone() {
    let stage = Stage::with(plan(agent(), agent())).await;
    stage.prompt("s1", &format!("CALL {}\nSAY on my own", task("CALL slow {}\nSAY a"))).await;
    stage.log.started(0, "slow").await;
    stage.native.stop("s1~1").await;
    stage.log.ended("s1", 0).await;
    let lines = stage.log.lines(0);
    assert!(lines.contains("  turn 1 aborted\n") && lines.contains("end task aborted"), "{lines}");
    assert!(lines.ends_with("say on my own\nusage 10 5 0\nturn 1 stop\n"), "{lines}");
}

/// A subagent's question of permission reaches the user under its own session.
#[tokio::test]
async fn a_subagent_asks_for_permission() {
    let worker = Agent { permission: rules(&[("echo", "*", Action::Ask)]), ..agent() };
    let stage = Stage::with(plan(agent(), worker)).await;
    let script = format!("CALL {}\nSAY ok", task("CALL echo {}\nSAY x"));
    let lines = stage.turn_with("s1", &script, Reply::Once).await;
    assert!(lines.contains("  ask echo [\"*\"]\n  replied\n  end echo ok: {}\n"), "{lines}");
}

/// An agent may be its own subagent, which has no `task` all the same.
#[tokio::test]
async fn an_agent_starts_itself_once_only() {
    let stage = Stage::new().await;
    let inner = format!("CALL! {}\nSAY x", task_of("lead", "SAY never", None));
    let lines = stage.turn("s1", &format!("CALL {}\nSAY ok", task_of("lead", &inner, None))).await;
    assert!(lines.contains("  end task denied: agent lead may not use task\n"), "{lines}");
    let tools = stage.model.requests()[1].tools();
    assert!(!tools.contains(&"task".to_owned()) && !tools.contains(&"question".to_owned()), "{tools:?}");
}

#[tokio::test]
async fn nobody_prompts_a_subagents_session() {
    let stage = Stage::with(plan(agent(), agent())).await;
    stage.turn("s1", &format!("CALL {}\nSAY ok", task("SAY x"))).await;
    let prompt =
        beeuni_harness::Prompt { session: "s1~1".into(), agent: "lead".into(), text: "SAY y".into() };
    let error = stage.native.prompt(prompt).await.unwrap_err().to_string();
    assert!(error.contains("s1~1 is a subagent's session; prompt the one that started it"), "{error}");
}

//! Which tools an agent sees, and what a call of another one is told (R2, A2, M7, I8).

use beeuni_harness::Skill;
use beeuni_manifest::{Action, Agent, ToolAccess};
use beeuni_protocol::event::ToolStatus;

use crate::stage::{Plan, Stage, agent, only, rules};

async fn stage(lead: Agent) -> Stage {
    Stage::with(Plan { agents: vec![("lead", lead)], unattended: true, ..Plan::default() }).await
}

#[tokio::test]
async fn removed_hidden_and_misspelt_tools() {
    let stage = stage(Agent { tools: only(&["read", "echo", "show"]), ..agent() }).await;
    let check = async |tool: &str, status: ToolStatus, words: &str| {
        assert_eq!(stage.call(tool, "{}").await, (status, words.to_owned()));
    };
    // A list cannot add what the project does not load.
    check("show", ToolStatus::Unavailable, "Tool show not found").await;
    check("Read", ToolStatus::Unavailable, "Tool Read not found").await;
    check("websearch", ToolStatus::Unavailable, "Tool websearch not found").await;
    check("bash", ToolStatus::Denied, "agent lead may not use bash").await;
    check("fails", ToolStatus::Denied, "agent lead may not use fails").await;
    check("echo", ToolStatus::Ok, "{}").await;
    assert_eq!(stage.model.requests()[0].tools(), ["read", "echo"]);
    assert_eq!(stage.hosted.calls.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn write_and_edit_are_apart() {
    let stage = stage(Agent { tools: ToolAccess::Exclude(vec!["write".into()]), ..agent() }).await;
    stage.turn("s1", "SAY x").await;
    let tools = stage.model.requests()[0].tools();
    assert!(tools.contains(&"edit".to_owned()) && !tools.contains(&"write".to_owned()), "{tools:?}");
}

#[tokio::test]
async fn rules_forbid_by_what_a_call_touches() {
    let permission = rules(&[
        ("read", "secret/*", Action::Deny),
        ("edit", "*.lock", Action::Deny),
        ("bash", "*", Action::Allow),
        ("bash", "rm *", Action::Deny),
        ("webfetch", "https://evil.test/*", Action::Deny),
        ("fails", "*", Action::Deny),
        ("skill", "hidden", Action::Deny),
    ]);
    let stage = stage(Agent { permission, ..agent() }).await;
    stage.write("secret/key.txt", "needle");
    stage.write("open.txt", "needle");
    let denied = async |tool: &str, arguments: &str, what: &str| {
        let words = format!("a permission rule of agent lead forbids {what}");
        assert_eq!(stage.call(tool, arguments).await, (ToolStatus::Denied, words));
    };
    let fine = async |tool: &str, arguments: &str| {
        let (status, words) = stage.call(tool, arguments).await;
        assert_eq!(status, ToolStatus::Ok, "{words}");
        words
    };
    denied("read", r#"{"path":"secret/key.txt"}"#, "read (secret/key.txt)").await;
    denied("read", r#"{"path":"./open/../secret//key.txt"}"#, "read (secret/key.txt)").await;
    fine("read", r#"{"path":"open.txt"}"#).await;
    assert_eq!(fine("grep", r#"{"pattern":"needle"}"#).await, "open.txt:1: needle");
    denied("write", r#"{"path":"Cargo.lock","content":""}"#, "write (Cargo.lock)").await;
    denied("edit", r#"{"path":"a/Cargo.lock","old_string":"a","new_string":"b"}"#, "edit (a/Cargo.lock)")
        .await;
    denied("bash", r#"{"command":"ls && rm -rf x"}"#, "bash (ls, rm -rf x)").await;
    fine("bash", r#"{"command":"ls"}"#).await;
    denied("memory", r#"{"command":"create","path":"memory/x.lock"}"#, "memory (memory/x.lock)").await;
    fine("memory", r#"{"command":"view","path":"memory/x.lock"}"#).await;
    let page = r#"{"urls":"https://fine.test/a, https://evil.test/x,y"}"#;
    denied("scrape_webpage", page, "scrape_webpage (https://fine.test/a, https://evil.test/x,y)").await;
    fine("scrape_webpage", r#"{"urls":"https://fine.test/a,b"}"#).await;
    denied("fails", "{}", "fails").await;
}

/// R4, M7: a skill that names a removed tool still loads.
#[tokio::test]
async fn skills() {
    let skill = |name: &str, text: &str| Skill {
        name: name.into(),
        description: format!("About {name}."),
        text: text.into(),
        folder: format!("skills/{name}"),
    };
    let plan = Plan {
        agents: vec![("lead", Agent { permission: rules(&[("skill", "hidden", Action::Deny)]), ..agent() })],
        tools: vec!["echo"],
        skills: vec![skill("beeuni-memory", "Use the memory tool.\n"), skill("hidden", "Never.")],
        ..Plan::default()
    };
    let stage = Stage::with(plan).await;
    stage.write("skills/beeuni-memory/SKILL.md", "Use the memory tool.\n");
    stage.write("skills/beeuni-memory/forms/a.txt", "");
    let ok = (ToolStatus::Ok, "Use the memory tool.\n\n[files of this skill, in skills/beeuni-memory]\nskills/beeuni-memory/forms/a.txt".to_owned());
    assert_eq!(stage.call("skill", r#"{"name":"beeuni-memory"}"#).await, ok);
    let denied = (ToolStatus::Denied, "a permission rule of agent lead forbids skill (hidden)".to_owned());
    assert_eq!(stage.call("skill", r#"{"name":"hidden"}"#).await, denied);
    let missing = (ToolStatus::Error, "no skill named other; there is beeuni-memory, hidden".to_owned());
    assert_eq!(stage.call("skill", r#"{"name":"other"}"#).await, missing);
    let body = &stage.model.requests()[0].body;
    assert!(body.contains("- beeuni-memory: About beeuni-memory.") && !body.contains("- hidden:"));
}

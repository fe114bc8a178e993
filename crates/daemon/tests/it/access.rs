//! Who may use what, and who gets which secret (A1, A2, A4, R2, M4).

use beeuni_models::Api;
use beeuni_protocol::event::ToolStatus;

use crate::{module, results, stage, turn};

const MANIFEST: &str = "default_agent: lead
agents:
  lead: {tools: [task, read, good, key, show], secrets: [A_KEY]}
  shy: {tools: {exclude: [good, bash, memory]}}
  none: {tools: none}
  helper: {secrets: all, file: agents/helper.md}
tools:
  memory: beeuni:memory
  good: tools/good.ts
  other: tools/other.ts
  key: tools/key.ts
";

fn house(api: Api) -> Option<crate::Stage> {
    let modules = [
        ("good", module("return 'good'")),
        ("other", module("return 'other'")),
        (
            "key",
            module(
                "const { A_KEY, B_KEY } = context.env; console.log('printed', A_KEY, B_KEY); return [A_KEY, B_KEY, process.env.A_KEY].map(String).join(' ')",
            ),
        ),
    ];
    let mut stage = stage(api, MANIFEST, &modules)?;
    stage.project.write("agents/helper.md", "---\nmode: subagent\ndescription: Helps.\n---\n");
    stage.secrets = [("A_KEY", "hunter2-aaaa"), ("B_KEY", "hunter2-bbbb")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    Some(stage)
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_what_is_advertised_can_be_called_and_nothing_else() {
    let Some(stage) = house(Api::OpenAi) else { return };
    for agent in ["lead", "shy", "none"] {
        let (daemon, _) = stage.start(agent).await.unwrap();
        let before = stage.model.requests().len();
        for tool in ["read", "glob", "bash", "good", "other", "key", "memory", "show"] {
            let events = turn(&daemon, agent, &format!("CALL! {tool} {{}}\nSAY ok")).await;
            let status = results(&events)[tool].0;
            let offered = stage.model.requests()[before].tools().iter().any(|name| name == tool);
            let callable = !matches!(status, ToolStatus::Denied | ToolStatus::Unavailable);
            assert_eq!(offered, callable, "{agent} {tool}: {status:?}");
        }
        daemon.shut_down().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_a2_the_words_of_a_refusal() {
    let Some(stage) = house(Api::Anthropic) else { return };
    let (daemon, _) = stage.start("s1").await.unwrap();
    let events = turn(&daemon, "lead", "CALL show {}\n+ other {}\n+ nonsense {}\nSAY ok").await;
    let ended = results(&events);
    assert_eq!(ended["show"], (ToolStatus::Unavailable, "Tool show not found"));
    assert_eq!(ended["nonsense"], (ToolStatus::Unavailable, "Tool nonsense not found"));
    assert_eq!(ended["other"], (ToolStatus::Denied, "agent lead may not use other"));
    assert_eq!(stage.model.violations(), Vec::<String>::new());
    daemon.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m4_a_secret_reaches_whom_it_was_granted_and_is_never_told() {
    let Some(stage) = house(Api::OpenAi) else { return };
    for (agent, expected) in
        [("lead", "hunter2-aaaa undefined undefined"), ("shy", "undefined undefined undefined")]
    {
        let (daemon, _) = stage.start(agent).await.unwrap();
        turn(&daemon, agent, "CALL key {}\nSAY ok").await;
        let last = stage.model.requests().pop().unwrap();
        assert_eq!(last.results(), [expected], "what the model of {agent} reads");
        daemon.shut_down().await;
    }
    let events = stage.events_text("lead");
    assert!(events.contains(r#""output":"[secret] undefined undefined""#), "{events}");
    let logged = stage.logged();
    assert!(logged.contains("printed [secret] undefined"), "{logged}");
    assert!(!events.contains("hunter2") && !logged.contains("hunter2"), "{events}\n{logged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a4_a_subagent_gets_what_both_lists_allow() {
    let Some(stage) = house(Api::OpenAi) else { return };
    let (daemon, _) = stage.start("s1").await.unwrap();
    let task = r#"{"description":"a part","subagent_type":"helper","prompt":"CALL other {}\n+ good {}\n+ key {}\nSAY found"}"#;
    let events = turn(&daemon, "lead", &format!("CALL task {task}\nSAY ok")).await;
    let ended = results(&events);
    assert_eq!(ended["good"], (ToolStatus::Ok, "good"));
    assert_eq!(ended["other"].0, ToolStatus::Denied);
    // Its secrets are its own: `helper` has all, and both are hidden.
    assert_eq!(ended["key"], (ToolStatus::Ok, "[secret] [secret] undefined"));
    let requests = stage.model.requests();
    let offers: Vec<Vec<String>> = requests.iter().map(|request| request.tools()).collect();
    assert!(offers[0].contains(&"task".to_owned()));
    let mut child = offers.iter().find(|tools| !tools.contains(&"task".to_owned())).unwrap().clone();
    child.sort();
    assert_eq!(child, ["good", "key", "read"]);
    daemon.shut_down().await;
}

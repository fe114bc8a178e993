//! Permissions and questions that wait for the user.

use beeuni_harness::{Harness, HarnessError};
use beeuni_manifest::{Action, Agent};
use beeuni_protocol::event::{Reply, ToolStatus};
use insta::assert_snapshot;

use crate::stage::{Plan, Stage, agent, rules};

fn plan() -> Plan {
    let permission = rules(&[
        ("bash", "*", Action::Ask),
        ("bash", "echo *", Action::Allow),
        ("bash", "seq *", Action::Ask),
        ("fails", "*", Action::Ask),
    ]);
    Plan { agents: vec![("lead", Agent { permission, ..agent() })], ..Plan::default() }
}

const LS: &str = "CALL bash {\"command\":\"echo a; ls\"}\nSAY ok";

#[tokio::test]
async fn once_always_and_no() {
    let stage = Stage::with(plan()).await;
    stage.write("f", "");
    let lines = stage.turn_with("s1", LS, Reply::Once).await;
    assert_snapshot!(lines, @r#"
    turn 1 of lead on scripted/scripted-1
    usage 10 5 0
    start bash {"command":"echo a; ls"}
    ask bash ["ls"]
    replied
    end bash ok: a
    f

    say ok
    usage 10 5 0
    turn 1 stop
    "#);
    let no = Reply::Reject { message: "use list".into() };
    let lines = stage.turn_with("s1", LS, no).await;
    assert!(lines.contains("end bash denied: the user refused bash (ls) and said: use list\n"), "{lines}");
    let lines = stage.turn_with("s1", LS, Reply::Reject { message: String::new() }).await;
    assert!(lines.contains("end bash denied: the user refused bash (ls)\n"), "{lines}");
    let lines = stage.turn_with("s1", LS, Reply::Always).await;
    assert!(lines.contains("end bash ok: a\nf\n"), "{lines}");
    let lines = stage.turn("s1", LS).await;
    assert!(lines.contains("end bash ok: a\nf\n") && !lines.contains("ask"), "{lines}");
    // The same rule asks no more; other rules still do.
    let lines = stage.turn("s1", "CALL bash {\"command\":\"pwd\"}\nSAY ok").await;
    assert!(lines.contains("end bash ok: ") && !lines.contains("ask"), "{lines}");
    let lines = stage.turn_with("s1", "CALL bash {\"command\":\"seq 1\"}\nSAY ok", Reply::Once).await;
    assert!(lines.contains("ask bash [\"seq 1\"]\n"), "{lines}");
    let lines = stage.turn_with("s1", "CALL fails {}\nSAY ok", Reply::Once).await;
    assert!(lines.contains("ask fails [\"*\"]\nreplied\nend fails error: the order is unknown\n"), "{lines}");
    // Another session has its own say.
    let lines = stage.turn_with("s2", LS, Reply::Once).await;
    assert!(lines.contains("ask bash"), "{lines}");
    stage.assert_valid();
}

#[tokio::test]
async fn replies_that_do_not_fit() {
    let stage = Stage::with(plan()).await;
    assert!(
        matches!(stage.native.reply("x", Reply::Once).await, Err(HarnessError::NotOpen(id)) if id == "x")
    );
    stage.prompt("s1", LS).await;
    let id = stage.asked(0).await;
    let error = stage.native.reply(&id, Reply::Answers { answers: vec![] }).await.unwrap_err();
    assert_eq!(error.to_string(), "this asks for a permission: reply with once, always or reject");
    stage.native.reply(&id, Reply::Once).await.unwrap();
    stage.log.ended("s1", 0).await;
    assert!(matches!(stage.native.reply(&id, Reply::Once).await, Err(HarnessError::NotOpen(_))));
}

#[tokio::test]
async fn a_stop_closes_what_was_asked() {
    let stage = Stage::with(plan()).await;
    stage.prompt("s1", LS).await;
    let id = stage.asked(0).await;
    stage.native.stop("s1").await;
    let lines = stage.log.lines(0);
    assert!(lines.ends_with("replied\nend bash aborted: [stopped by the user]\nturn 1 aborted\n"), "{lines}");
    assert!(stage.native.reply(&id, Reply::Once).await.is_err());
}

#[tokio::test]
async fn nobody_watches() {
    let stage = Stage::with(Plan { unattended: true, ..plan() }).await;
    let words = "bash (ls) needs the user's permission, and nobody watches this session; it was not run";
    assert_eq!(stage.call("bash", r#"{"command":"ls"}"#).await, (ToolStatus::Denied, words.to_owned()));
    let words = "nobody watches this session, so nobody can answer; decide yourself or say what is open";
    let question = r#"{"questions":[{"question":"Which?"}]}"#;
    assert_eq!(stage.call("question", question).await, (ToolStatus::Denied, words.to_owned()));
}

/// Files beside the checkout need a permission of their own; the temporary and the spill folder do not (E6).
#[tokio::test]
async fn files_outside() {
    let stage = Stage::with(Plan { unattended: true, ..Plan::default() }).await;
    let home = stage.home.path().canonicalize().unwrap();
    for folder in ["temp", "spill", "outside"] {
        std::fs::write(home.join(folder).join("f"), "text\n").unwrap();
    }
    std::os::unix::fs::symlink(home.join("outside"), stage.at("way-out")).unwrap();
    let check = async |tool: &str, path: &str, expected: ToolStatus| {
        let (status, words) =
            stage.call(tool, &format!(r#"{{"path":{path:?},"pattern":"x","content":"x"}}"#)).await;
        assert_eq!(status, expected, "{tool} {path}: {words}");
        if expected == ToolStatus::Denied {
            assert!(words.contains("needs the user's permission"), "{words}");
        }
    };
    check("read", "../temp/f", ToolStatus::Ok).await;
    check("read", home.join("spill/f").to_str().unwrap(), ToolStatus::Ok).await;
    for tool in ["read", "write", "list", "glob", "grep"] {
        check(tool, "way-out/f", ToolStatus::Denied).await;
        check(tool, "../outside/f", ToolStatus::Denied).await;
    }
    let (status, _) = stage.call("bash", r#"{"command":"ls","workdir":"/"}"#).await;
    assert_eq!(status, ToolStatus::Denied);
    assert_eq!(std::fs::read_to_string(home.join("outside/f")).unwrap(), "text\n");

    let permission = rules(&[("external_directory", "*", Action::Allow)]);
    let agents = vec![("lead", Agent { permission, ..agent() })];
    let stage = Stage::with(Plan { agents, unattended: true, ..Plan::default() }).await;
    let (status, _) = stage.call("read", r#"{"path":"/etc/passwd"}"#).await;
    assert_eq!(status, ToolStatus::Ok);
}

#[tokio::test]
async fn always_holds_for_the_folder_outside() {
    let stage = Stage::new().await;
    let home = stage.home.path().canonicalize().unwrap();
    for name in ["a", "b"] {
        std::fs::write(home.join("outside").join(name), "text\n").unwrap();
    }
    let read = |name: &str| format!("CALL read {{\"path\":\"../outside/{name}\"}}\nSAY ok");
    let lines = stage.turn_with("s1", &read("a"), Reply::Always).await;
    assert!(lines.contains(&format!("ask external_directory [{:?}]\n", home.join("outside/a"))), "{lines}");
    let lines = stage.turn("s1", &read("b")).await;
    assert!(lines.contains("end read ok"), "{lines}");
}

#[tokio::test]
async fn questions() {
    let stage = Stage::new().await;
    let script = r#"CALL question {"questions":[{"question":"Colour?","options":[{"label":"red"}]},{"question":"Sizes?","multiple":true}]}
SAY ok"#;
    stage.prompt("s1", script).await;
    let id = stage.asked(0).await;
    let check = async |reply: Reply, expected: &str| {
        assert_eq!(stage.native.reply(&id, reply).await.unwrap_err().to_string(), expected);
    };
    check(Reply::Once, "this is a question: reply with answers or reject").await;
    let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    check(Reply::Answers { answers: vec![list(&["red"])] }, "1 answers to 2 questions").await;
    let two = Reply::Answers { answers: vec![list(&["red", "blue"]), list(&[])] };
    check(two, "only one answer may be given to: Colour?").await;
    let answers = vec![list(&["red"]), list(&["S", "M"])];
    stage.native.reply(&id, Reply::Answers { answers }).await.unwrap();
    stage.log.ended("s1", 0).await;
    let lines = stage.log.lines(0);
    assert!(
        lines.contains(
            "question [\"Colour?\", \"Sizes?\"]\nreplied\nend question ok: Colour?\n→ red\n\nSizes?\n→ S, M\n"
        ),
        "{lines}"
    );
    let (status, words) = stage.call("question", r#"{"questions":[]}"#).await;
    assert_eq!((status, words.as_str()), (ToolStatus::Error, "ask 1 to 20 questions, not 0"));
}

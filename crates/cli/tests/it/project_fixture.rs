//! The modules of the tools page, as its readers copy them (M1, M6, M8, E2).

use std::path::Path;

use beeuni_testkit::{bun, project::Project};

use crate::{BEEUNI, beeuni};

/// The documented way to change `web_search`.
const CHANGE: &str = include_str!("../fixtures/page/web_search_change.txt");

/// A project with the page's modules and the checkout's own zod, or `None` with a loud line.
fn page() -> Option<Project> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let zod = root.join("../../node_modules/zod");
    if bun().is_none() || !zod.is_dir() {
        eprintln!("skipped: no Bun or no zod; run `npm ci` here and in runtime/");
        return None;
    }
    let project = Project::new();
    project.copy(&root.join("tests/fixtures/page"));
    // A copy, because a tool's process reads nothing outside of its checkout.
    let copied = project
        .run("sh", &["-c", &format!("mkdir node_modules && cp -RL '{}' node_modules/", zod.display())]);
    assert!(copied.status.success(), "{copied:?}");
    Some(project)
}

#[test]
fn m8_the_modules_of_the_page_load() {
    let Some(project) = page() else { return };
    insta::assert_snapshot!(beeuni(&project, &["validate"]), @r"
    exit 0
    --- stdout
    --- stderr
    beeuni.yaml is valid.
    ");
    let call = beeuni(&project, &["tools", "call", "lookup_order_zod", "--args", r#"{"id":"A-1042"}"#]);
    assert_eq!(call, "exit 0\n--- stdout\norder A-1042: shipped\n--- stderr\n");
    let call = beeuni(&project, &["tools", "call", "weather_now", "--args", r#"{"city":"Berlin"}"#]);
    let words =
        "WEATHER_API_KEY is not set: run `beeuni secrets set WEATHER_API_KEY=-` and grant it to this agent.";
    assert_eq!(call, format!("exit 1\n--- stdout\n--- stderr\n{words}\n"));
}

#[test]
fn e2_the_documented_change_of_web_search_loads() {
    let Some(project) = page() else { return };
    assert!(project.run(BEEUNI, &["tools", "eject", "web_search"]).status.success());
    let ejected = project.read("tools/web_search.ts");
    let statement = CHANGE.lines().next().unwrap();
    assert_eq!(ejected.matches(statement).count(), 1, "the statement that the page names stands there once");
    project.write("tools/web_search.ts", ejected.replace(statement, CHANGE.trim_end()));
    insta::assert_snapshot!(beeuni(&project, &["validate"]), @r"
    exit 0
    --- stdout
    --- stderr
    beeuni.yaml is valid.
    ");
}

#[test]
fn e7_the_way_back() {
    let Some(project) = page() else { return };
    let before = beeuni(&project, &["tools", "ls"]);
    assert!(project.run(BEEUNI, &["tools", "eject", "web_search"]).status.success());
    assert_ne!(beeuni(&project, &["tools", "ls"]), before);
    let line = "web_search: tools/web_search.ts  # ejected from beeuni:web_search\n";
    let ejected = project.read("beeuni.yaml");
    assert!(ejected.contains(line), "{ejected}");
    project.write("beeuni.yaml", ejected.replace(line, "web_search: beeuni:web_search\n"));
    std::fs::remove_file(project.at("tools/web_search.ts")).unwrap();
    assert_eq!(beeuni(&project, &["tools", "ls"]), before);
    assert!(beeuni(&project, &["validate"]).starts_with("exit 0\n"));
}

//! `beeuni init`.

use beeuni_testkit::project::Project;

use crate::{beeuni, project};

/// L1, exactly.
const TOOLS: &str = "\
tools:
  web_search: beeuni:web_search      # maintained by Beeuni, updated automatically
  image_search: beeuni:image_search
  scrape_webpage: beeuni:scrape_webpage
  memory: beeuni:memory
  show: beeuni:show
  # lookup_order: tools/lookup_order.ts   # your own tool: a module in your repo
";

#[test]
fn the_starter_is_whole() {
    let project = Project::new();
    insta::assert_snapshot!(beeuni(&project, &["init", "shop"]), @r"
    exit 0
    --- stdout
      wrote   agents/beeuni.md
      wrote   memory/MEMORY.md
      wrote   skills/beeuni-memory/SKILL.md
      wrote   tools/lookup_order.ts
      wrote   .gitignore
      wrote   beeuni.yaml

    Next:
      1. cd shop && beeuni tools ls
      2. Switch on the sample tool: take the `#` off its line in beeuni.yaml.
      3. beeuni validate
    --- stderr
    ");
    let manifest = project.read("shop/beeuni.yaml");
    assert!(manifest.ends_with(&format!("\n{TOOLS}")) && manifest.contains("secrets: all"), "{manifest}");
    insta::assert_snapshot!(beeuni(&project, &["-C", "shop", "validate"]), @r"
    exit 0
    --- stdout
    --- stderr
    beeuni.yaml is valid.
    ");
    insta::assert_snapshot!(beeuni(&project, &["-C", "shop", "tools", "ls"]), @r"
    exit 0
    --- stdout
    NAME            KIND    SOURCE
    web_search      beeuni  beeuni:web_search
    image_search    beeuni  beeuni:image_search
    scrape_webpage  beeuni  beeuni:scrape_webpage
    memory          beeuni  beeuni:memory
    show            beeuni  beeuni:show
    --- stderr
    ");
}

#[test]
fn the_sample_tool_loads() {
    let project = Project::new();
    let _ = beeuni(&project, &["init"]);
    let manifest = project.read("beeuni.yaml").replace("  # lookup_order:", "  lookup_order:");
    project.write("beeuni.yaml", manifest);
    insta::assert_snapshot!(beeuni(&project, &["validate"]), @r"
    exit 0
    --- stdout
    --- stderr
    beeuni.yaml is valid.
    ");
}

#[test]
fn nothing_is_overwritten() {
    let started = project("mine\n");
    insta::assert_snapshot!(beeuni(&started, &["init"]), @r"
    exit 1
    --- stdout
    --- stderr
    error: [project] has a beeuni.yaml already; nothing was written
    ");
    assert_eq!(started.path().read_dir().unwrap().count(), 1);

    let project = Project::new();
    project.write(".gitignore", "mine\n").write("agents/beeuni.md", "mine\n");
    let told = beeuni(&project, &["init"]);
    assert!(
        told.contains("  kept    .gitignore\n") && told.contains("  kept    agents/beeuni.md\n"),
        "{told}"
    );
    assert_eq!((&*project.read(".gitignore"), &*project.read("agents/beeuni.md")), ("mine\n", "mine\n"));
    assert!(beeuni(&project, &["validate"]).starts_with("exit 0"));

    let blocked = Project::new();
    blocked.write("agents", "a file\n");
    assert!(beeuni(&blocked, &["init"]).starts_with("exit 1"));
    assert!(!blocked.at("beeuni.yaml").exists(), "an incomplete start can be repeated");
}

#[test]
fn the_next_step_is_one_that_a_shell_reads() {
    let told = beeuni(&Project::new(), &["init", "my shop"]);
    assert!(told.contains("  1. cd 'my shop' && beeuni tools ls\n"), "{told}");
}

//! `beeuni tools ls` (S1–S3).

use crate::{MODULE, beeuni, project};

#[test]
fn s1_tools_then_removed_ones() {
    let project = project(
        "tools:\n  lookup_order: tools/lookup_order.ts\n  show: beeuni:show\n  web_search: tools/web_search.ts\n  \
         memory: beeuni:memory\n  scrape_webpage: beeuni:scrape_webpage\n",
    );
    project.write("tools/lookup_order.ts", MODULE).write("tools/web_search.ts", MODULE).write("sub/x", "");
    insta::assert_snapshot!(beeuni(&project, &["-C", "sub", "tools", "ls"]), @r"
    exit 0
    --- stdout
    NAME            KIND                 SOURCE
    web_search      beeuni (overridden)  tools/web_search.ts
    scrape_webpage  beeuni               beeuni:scrape_webpage
    memory          beeuni               beeuni:memory
    show            beeuni               beeuni:show
    lookup_order    project              tools/lookup_order.ts

    Removed Beeuni tools: image_search
    Add `<name>: beeuni:<name>` under `tools:` to get one back.
    --- stderr
    ");
}

#[test]
fn no_key_and_an_empty_key() {
    insta::assert_snapshot!(beeuni(&project(""), &["tools", "ls"]), @r"
    exit 0
    --- stdout
    NAME            KIND    SOURCE
    web_search      beeuni  beeuni:web_search
    image_search    beeuni  beeuni:image_search
    scrape_webpage  beeuni  beeuni:scrape_webpage
    memory          beeuni  beeuni:memory
    show            beeuni  beeuni:show

    beeuni.yaml has no `tools:` key, so sessions get every Beeuni tool. List them under `tools:` to choose.
    --- stderr
    ");
    for empty in ["tools: {}\n", "tools:\n", "tools:\n  # nothing\n"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(beeuni(&project(empty), &["tools", "ls"]), @r"
            exit 0
            --- stdout
            (no tools)

            Removed Beeuni tools: web_search, image_search, scrape_webpage, memory, show
            Add `<name>: beeuni:<name>` under `tools:` to get one back.
            --- stderr
            ");
        }
    }
}

#[test]
fn s3_json() {
    let project = project("imports: [more.yaml]\ntools: {show: beeuni:show}\n");
    project.write("more.yaml", "tools: {a: tools/a.ts}\n").write("tools/a.ts", MODULE);
    insta::assert_snapshot!(beeuni(&project, &["tools", "ls", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "manifest": "[project]/beeuni.yaml",
      "tools_key": true,
      "tools": [
        {
          "name": "show",
          "kind": "beeuni",
          "source": "beeuni:show"
        },
        {
          "name": "a",
          "kind": "project",
          "source": "tools/a.ts"
        }
      ],
      "removed": [
        "web_search",
        "image_search",
        "scrape_webpage",
        "memory"
      ]
    }
    --- stderr
    "#);
}

#[test]
fn long_says_what_loads() {
    let project = project(
        "tools:\n  show: beeuni:show\n  good: tools/good.ts\n  bad: tools/bad.ts\nlimits:\n  tools:\n    \
         good: {network: false, memory: 256MiB}\n",
    );
    project.write("tools/good.ts", MODULE).write("tools/bad.ts", "throw new Error('boom')\n");
    insta::assert_snapshot!(beeuni(&project, &["tools", "ls", "--long"]), @r"
    exit 0
    --- stdout
    NAME  KIND     SOURCE         FILE           STATE  SANDBOX
    show  beeuni   beeuni:show    beeuni.yaml:2  loads  standard
    good  project  tools/good.ts  beeuni.yaml:3  loads  no network, memory 256 MiB
    bad   project  tools/bad.ts   beeuni.yaml:4  fails  standard

    Removed Beeuni tools: web_search, image_search, scrape_webpage, memory
    Add `<name>: beeuni:<name>` under `tools:` to get one back.
    --- stderr
    ");
    let json = beeuni(&project, &["tools", "ls", "--long", "--json"]);
    let expected = "\"source\": \"tools/bad.ts\",\n      \"file\": \"beeuni.yaml\",\n      \"line\": 4,\n      \
                    \"state\": \"fails\",\n      \"reason\": \"boom\"\n";
    assert!(json.contains(expected), "{json}");
}

#[test]
fn what_is_wrong_is_told_beside_the_list() {
    let check = |manifest: &str, warning: &str| {
        let told = beeuni(&project(manifest), &["tools", "ls", "--json"]);
        assert!(told.starts_with("exit 0"), "{told}");
        assert_eq!(
            told.split("--- stderr\n").nth(1).unwrap(),
            format!("warning: beeuni.yaml has errors{warning}\n")
        );
    };
    let single = " in single tools, which sessions leave out: run `beeuni validate`";
    let fatal = ", so no session starts with it: run `beeuni validate`";
    check("tools: {show: beeuni:show, bash: tools/b.ts}\n", single);
    check("tools: {show: beeuni:show, x: tools/none.ts}\n", single);
    check("tools: {show: beeuni:show, bash: tools/b.ts}\ndefault_agent: nobody\n", fatal);
    let imported = project("imports: [more.yaml]\ntools: {show: beeuni:show}\n");
    imported.write("more.yaml", "tools: {x: [\n");
    let told = beeuni(&imported, &["tools", "ls"]);
    assert!(
        told.starts_with("exit 1\n--- stdout\n--- stderr\nerror: ") && told.contains("more.yaml:"),
        "{told}"
    );
    let opaque = project("tools: {show: [\n");
    assert!(beeuni(&opaque, &["tools", "ls"]).starts_with("exit 1\n--- stdout\n--- stderr\nerror: "));
}

#[test]
fn h2_a_file_of_opencode_is_told_on_stderr() {
    let project = project("");
    project
        .write("harnesses/opencode/tools/web_search.ts", "")
        .write("harnesses/opencode/tools/other.ts", "");
    let told = beeuni(&project, &["tools", "ls"]);
    let stderr = told.split("--- stderr\n").nth(1).unwrap();
    assert_eq!(
        stderr,
        "warning: harnesses/opencode/tools/web_search.ts replaces web_search on the standard harness\n"
    );
}

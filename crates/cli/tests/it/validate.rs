//! `beeuni validate` (V1–V7, faults A2, L6).

use beeuni_testkit::project::Project;

use crate::{MODULE, beeuni, project};

#[test]
fn v1_v2_v3_v6_findings_with_their_lines() {
    let project = project(
        "agents:\n  beeuni:\n    tools: [read, show]\ntools:\n  web_search: beeuni:image_search\n  \
         lookup: tools/lookup.ts\n",
    );
    insta::assert_snapshot!(beeuni(&project, &["validate", "--no-load"]), @r#"
    exit 1
    --- stdout
    warning: agents.beeuni.tools: "show" is a Beeuni tool this project does not load: add `show: beeuni:show` under the top-level `tools`, or remove it here.
     --> beeuni.yaml:3:19
      |
    3 |     tools: [read, show]
      |                   ^^^^

    error: tools.web_search: must be `beeuni:web_search` (the Beeuni tool) or a repo-relative path to a .ts or .js module (e.g. `tools/web_search.ts`) that replaces it.
     --> beeuni.yaml:5:15
      |
    5 |   web_search: beeuni:image_search
      |               ^^^^^^^^^^^^^^^^^^^

    error: tools.lookup: "tools/lookup.ts" does not exist in the project files.
     --> beeuni.yaml:6:11
      |
    6 |   lookup: tools/lookup.ts
      |           ^^^^^^^^^^^^^^^
    --- stderr
    beeuni.yaml is not valid: 2 errors, 1 warning.
    "#);
    insta::assert_snapshot!(beeuni(&project, &["validate", "--no-load", "--json"]), @r#"
    exit 1
    --- stdout
    {
      "valid": false,
      "path": "[project]/beeuni.yaml",
      "issues": [
        {
          "path": "agents.beeuni.tools",
          "message": "\"show\" is a Beeuni tool this project does not load: add `show: beeuni:show` under the top-level `tools`, or remove it here.",
          "severity": "warning",
          "file": "beeuni.yaml",
          "line": 3,
          "column": 19
        },
        {
          "path": "tools.web_search",
          "message": "must be `beeuni:web_search` (the Beeuni tool) or a repo-relative path to a .ts or .js module (e.g. `tools/web_search.ts`) that replaces it.",
          "severity": "error",
          "file": "beeuni.yaml",
          "line": 5,
          "column": 15
        },
        {
          "path": "tools.lookup",
          "message": "\"tools/lookup.ts\" does not exist in the project files.",
          "severity": "error",
          "file": "beeuni.yaml",
          "line": 6,
          "column": 11
        }
      ]
    }
    --- stderr
    beeuni.yaml is not valid: 2 errors, 1 warning.
    "#);
}

#[test]
fn exit_codes() {
    let check = |project: &Project, code: i32| {
        let told = beeuni(project, &["validate", "--no-load"]);
        assert!(told.starts_with(&format!("exit {code}\n")), "{told}");
    };
    check(&project(""), 0);
    check(&project("unknown: 1\n"), 0);
    check(&project("tools: text\n"), 1);
    check(&project("tools: {a: [\n"), 1);
    check(&Project::new(), 2);
    let folder = Project::new();
    folder.write("beeuni.yaml/x", "");
    check(&folder, 2);
}

#[test]
fn a2_every_module_that_does_not_load_has_its_own_reason() {
    let project = project(
        "tools:\n  show: beeuni:show\n  ok_a: tools/a.ts\n  boom: tools/boom.ts\n  syntax: tools/syntax.ts\n  \
         nothing: tools/nothing.ts\n",
    );
    project
        .write("tools/a.ts", MODULE)
        .write("tools/boom.ts", "throw new Error('boom at import')\n")
        .write("tools/syntax.ts", "export default {\n")
        .write("tools/nothing.ts", "export const tool = {}\n");
    insta::assert_snapshot!(beeuni(&project, &["validate"]), @r"
    exit 1
    --- stdout
    error: tools.boom: boom at import
     --> beeuni.yaml:4:3
      |
    4 |   boom: tools/boom.ts
      |   ^^^^^^^^^^^^^^^^^^^

    error: tools.syntax: Expected identifier but found end of file (tools/syntax.ts:1:17)
     --> beeuni.yaml:5:3
      |
    5 |   syntax: tools/syntax.ts
      |   ^^^^^^^^^^^^^^^^^^^^^^^

    error: tools.nothing: no default export: the module must `export default { description, parameters, execute }`
     --> beeuni.yaml:6:3
      |
    6 |   nothing: tools/nothing.ts
      |   ^^^^^^^^^^^^^^^^^^^^^^^^^
    --- stderr
    beeuni.yaml is not valid: 3 errors, no warnings.
    ");
    assert!(beeuni(&project, &["validate", "--no-load"]).starts_with("exit 0"));
}

#[test]
fn without_bun_loading_is_skipped_with_one_line() {
    let project = project("tools:\n  show: beeuni:show\n  a: tools/a.ts\n");
    project.write("tools/a.ts", "export default {\n");
    let mut command = project.command(crate::BEEUNI);
    let output = command.arg("validate").env_remove("BEEUNI_BUN").env("PATH", "/nothing").output().unwrap();
    insta::assert_snapshot!(crate::shown(&project, &output), @r"
    exit 0
    --- stdout
    --- stderr
    The modules were not loaded: Bun is not installed: tools run in it. Run `beeuni setup`.
    beeuni.yaml is valid.
    ");
}

#[test]
fn l6_a_module_that_git_leaves_out() {
    let project = project("tools:\n  show: beeuni:show\n  a: tools/a.ts\n  b: tools/b.ts\n  c: tools/c.ts\n");
    project.write(".gitignore", "b.ts\n").write("tools/a.ts", MODULE).write("tools/b.ts", MODULE).git();
    project.write("tools/c.ts", MODULE);
    insta::assert_snapshot!(beeuni(&project, &["validate", "--no-load"]), @r#"
    exit 0
    --- stdout
    warning: tools.b: Git ignores "tools/b.ts", and a release holds only files that Git tracks: run `git add --force tools/b.ts`.
     --> beeuni.yaml:4:3
      |
    4 |   b: tools/b.ts
      |   ^^^^^^^^^^^^^

    warning: tools.c: Git does not track "tools/c.ts", and a release holds only files that Git tracks: run `git add tools/c.ts`.
     --> beeuni.yaml:5:3
      |
    5 |   c: tools/c.ts
      |   ^^^^^^^^^^^^^
    --- stderr
    beeuni.yaml is valid, with 2 warnings.
    "#);
}

#[test]
fn a_required_variable_that_is_not_set() {
    let project = project("env: {required: [ORDERS_URL, PATH]}\n");
    let told = beeuni(&project, &["validate", "--no-load"]);
    assert!(told.contains("ORDERS_URL") && told.starts_with("exit 0"), "{told}");
    assert!(!told.contains("PATH is"), "{told}");
}

#[test]
fn d1_a_schema_that_a_provider_refuses_is_a_warning() {
    let module = "export default { description: 'd', execute: () => 1, parameters: { type: 'object', properties: \
                  { a: {}, b: {} }, anyOf: [{ required: ['a'] }, { required: ['b'] }] } }\n";
    let check = |models: &str, expected: &str| {
        let project = project(&format!("{models}tools:\n  show: beeuni:show\n  either: tools/either.ts\n"));
        project.write("tools/either.ts", module);
        let told = beeuni(&project, &["validate"]);
        assert!(told.starts_with("exit 0\n"), "{told}");
        let lines: Vec<&str> = told.lines().filter(|line| line.starts_with("warning")).collect();
        assert_eq!(lines.join("\n"), expected);
    };
    let refused = |who: &str| {
        format!(
            "warning: tools.either: {who} refuses `anyOf` at the top of `parameters`: say it in the description and \
             check it in `execute`, or move it into a property"
        )
    };
    check("", &format!("{}\n{}", refused("Anthropic"), refused("OpenAI")));
    check("models: {default: anthropic/claude-sonnet-4-5}\n", &refused("Anthropic"));
    check("models: {default: ollama/qwen3}\n", "");
}

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
    let bytes = Project::new();
    bytes.write("beeuni.yaml", b"project:\n  name: \xff\n");
    check(&bytes, 1);
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

#[test]
fn findings_are_told_also_when_nothing_can_be_loaded() {
    let project = project("tools:\n  show: beeuni:memory\n  a: tools/a.ts\n");
    project.write("tools/a.ts", MODULE);
    let mut command = project.command(crate::BEEUNI);
    command.args(["validate", "--json"]).env_remove("HOME").env_remove("XDG_STATE_HOME");
    let told = crate::shown(&project, &command.output().unwrap());
    assert!(told.starts_with("exit 1\n--- stdout\n{\n  \"valid\": false"), "{told}");
    let stderr = told.split("--- stderr\n").nth(1).unwrap();
    assert!(stderr.starts_with("The modules were not loaded: ") && stderr.lines().count() == 2, "{stderr}");
    let mut command = project.command(crate::BEEUNI);
    command.arg("validate").env("XDG_STATE_HOME", "/proc/nothing").env("TMPDIR", "/proc/nothing");
    let told = crate::shown(&project, &command.output().unwrap());
    assert!(told.starts_with("exit 1\n--- stdout\nerror: tools.show"), "{told}");
}

/// A stranger's checkout: a sparse index of a partial clone, from which reading the index fetches what is missing by
/// running a program that the repository's configuration names.
const LAZY_FETCH: &str = r#"
set -e
mkdir -p tools2/deep; echo a > tools2/deep/a.ts; git init -q
git add beeuni.yaml tools2; git commit -qm x
git sparse-checkout init --cone --sparse-index; git sparse-checkout set tools
for o in $(git rev-parse HEAD:tools2 HEAD:tools2/deep); do rm -f .git/objects/${o%${o#??}}/${o#??}; done
printf '#!/bin/sh\nid > "%s/PWNED"\n' "$PWD" > .git/up.sh; chmod +x .git/up.sh
git config core.repositoryformatversion 1; git config extensions.partialClone origin
git config remote.origin.promisor true
git config remote.origin.url "$PWD/.git"; git config remote.origin.uploadpack "$PWD/.git/up.sh"
git config core.fsmonitor "$PWD/.git/up.sh"
"#;

#[test]
fn a_look_at_git_runs_nothing_of_the_checkout() {
    let project = project("tools:\n  show: beeuni:show\n  x: tools/x.ts\n");
    project.write("tools/x.ts", MODULE);
    let output = project.run("sh", &["-c", LAZY_FETCH]);
    assert!(output.status.success(), "{output:?}");
    for variables in
        [&[][..], &[("GIT_NO_LAZY_FETCH", "0"), ("GIT_ALLOW_PROTOCOL", "file"), ("GIT_TRACE", "2")]]
    {
        let mut command = project.command(crate::BEEUNI);
        command.args(["validate", "--no-load"]).envs(variables.iter().copied());
        let told = crate::shown(&project, &command.output().unwrap());
        assert!(told.starts_with("exit 0"), "{told}");
        assert!(!project.at("PWNED").exists(), "the checkout's program ran: {told}");
    }
}

/// The warnings of `validate`, each as its first line, with what is the same in all left out.
fn warnings(project: &Project, args: &[&str]) -> Vec<String> {
    let told = beeuni(project, &[&["validate"], args].concat());
    assert!(told.starts_with("exit 0\n"), "{told}");
    let lines = told.lines().filter_map(|line| line.strip_prefix("warning: "));
    lines.map(|line| line.replace(", and a release holds only files that Git tracks", "")).collect()
}

#[test]
fn l6_everything_that_a_session_needs() {
    let project = project(
        "imports: [more.yaml]\ntools:\n  show: beeuni:show\n  a: tools/a.ts\nagents:\n  beeuni: {}\n  \
         helper: {file: agents/helper.md}\n",
    );
    let imports =
        "import './lib one.ts'\nimport './l2.ts'\nimport './l3.ts'\nimport './l4.ts'\nimport './l5.ts'\n";
    project.write("tools/a.ts", format!("{imports}{MODULE}")).git();
    project.write("more.yaml", "tools: {}\n").write("agents/helper.md", "hi\n");
    project.write("skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nhi\n");
    for name in ["lib one", "l2", "l3", "l4", "l5"] {
        project.write(format!("tools/{name}.ts"), "");
    }
    let named = |what: &str, path: &str| {
        let file = format!("Git does not track \"{path}\": run `git add {path}`.");
        format!(
            "{what}: {}",
            if path.contains(' ') { file.replace("add ", "add '").replace("`.", "'`.") } else { file }
        )
    };
    let imported = |path: &str| {
        named("tools.a", path).replace("tools.a: ", "tools.a: needs a file that a release would lack. ")
    };
    let manifest = [
        named("imports", "more.yaml"),
        named("agents.helper", "agents/helper.md"),
        named("skills.s", "skills/s/SKILL.md"),
    ];
    assert_eq!(warnings(&project, &["--no-load"]), manifest);
    let told = warnings(&project, &[]);
    let files = ["l5", "l4", "l3"].map(|name| imported(&format!("tools/{name}.ts")));
    let more = "tools.a: needs 2 more files that Git does not track".to_owned();
    assert_eq!(told, [&manifest[..], &files, &[more]].concat());
    for name in ["l2", "l3", "l4", "l5"] {
        assert!(project.run("git", &["add", &format!("tools/{name}.ts")]).status.success());
    }
    assert_eq!(warnings(&project, &[])[3..], [imported("tools/lib one.ts")]);
    let output = project.run("git", &["add", "--all"]);
    assert!(output.status.success());
    assert!(warnings(&project, &[]).is_empty());
}

#[test]
fn l6_a_new_project_has_nothing_forgotten() {
    let project = project("agents:\n  beeuni: {file: agents/beeuni.md}\n");
    project.write("agents/beeuni.md", "hi\n");
    assert!(project.run("git", &["init", "-q"]).status.success());
    assert!(warnings(&project, &["--no-load"]).is_empty());
}

#[test]
fn l6_links_are_followed() {
    let project = project("tools:\n  show: beeuni:show\n  a: tools/a.ts\n  b: tools/b.ts\n");
    project.write("real/a.ts", MODULE).write("real/b.ts", MODULE).link("tools", "real").git();
    assert!(warnings(&project, &["--no-load"]).is_empty());
    for file in ["tools", "real/b.ts"] {
        assert!(project.run("git", &["rm", "-q", "--cached", file]).status.success());
    }
    assert_eq!(
        warnings(&project, &["--no-load"]),
        [
            "tools.a: Git does not track \"tools\": run `git add tools`.",
            "tools.b: Git does not track \"real/b.ts\": run `git add real/b.ts`."
        ]
    );
}

#[test]
fn l6_a_git_that_does_not_answer_is_told() {
    let project = project("tools:\n  show: beeuni:show\n  a: tools/a.ts\n");
    project.write("tools/a.ts", MODULE).git().write(".git/index", "no index");
    let told = beeuni(&project, &["validate", "--no-load"]);
    let words = "--- stderr\nWhether Git tracks the project's files was not checked: ";
    assert!(told.starts_with("exit 0") && told.contains(words), "{told}");
    assert_eq!(told.split("--- stderr\n").nth(1).unwrap().lines().count(), 2, "{told}");
}

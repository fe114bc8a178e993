//! What a user sees.

use beeuni_manifest::render;

use super::judging::judge;

#[test]
fn excerpts() {
    let judged = judge(
        "tools:\n  show: beeuni:show\n  web_search: beeuni:image_search # wrong\nagents:\n  beeuni: {tools: [bahs]}\n",
    );
    insta::assert_snapshot!(render(&judged.findings, &judged.sources, false), @r#"
    error: tools.web_search: must be `beeuni:web_search` (the Beeuni tool) or a repo-relative path to a .ts or .js module (e.g. `tools/web_search.ts`) that replaces it.
     --> beeuni.yaml:3:15
      |
    3 |   web_search: beeuni:image_search # wrong
      |               ^^^^^^^^^^^^^^^^^^^

    warning: agents.beeuni.tools: "bahs" is no harness tool, Beeuni tool or tool of this project, so it changes nothing here. Did you mean `bash`?
     --> beeuni.yaml:5:20
      |
    5 |   beeuni: {tools: [bahs]}
      |                    ^^^^
    "#);
    let broken = judge("tools:\n  show: \"beeuni\n");
    insta::assert_snapshot!(render(&broken.findings, &broken.sources, false), @r#"
    error: a quote is opened here and never closed
     --> beeuni.yaml:2:9
      |
    2 |   show: "beeuni
      |         ^
    "#);
    assert!(render(&broken.findings, &broken.sources, true).contains("\u{1b}["));
}

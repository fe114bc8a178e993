//! Manifests of several files.

use beeuni_manifest::{Context, FileKind, MemoryFiles, read};

use super::judging::lines;

#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let start = MemoryFiles::new()
        .with("t/a.ts", "")
        .with_link("alias.yaml", "b.yaml")
        .with_kind("pipe.yaml", FileKind::Special);
    let all = files.iter().fold(start, |all, (path, text)| all.with(path, *text));
    assert_eq!(lines(&read(&all, "beeuni.yaml", &Context::default())), expected);
}

#[test]
fn files_merge_in_order_and_clash_in_words() {
    let x = "tools: {x: t/a.ts, show: beeuni:show}";
    check(
        &[("beeuni.yaml", "imports: [a.yaml, b.yaml]"), ("a.yaml", x), ("b.yaml", "tools:\n  x: t/a.ts")],
        &["error b.yaml:2:3 tools.x: tools \"x\" is declared in both a.yaml and b.yaml — one name, one file"],
    );
    check(
        &[("beeuni.yaml", "imports: [a.yaml, b.yaml]"), ("a.yaml", "imports: [b.yaml]"), ("b.yaml", x)],
        &[],
    );
    check(&[("beeuni.yaml", "imports: [b.yaml, alias.yaml]"), ("b.yaml", x)], &[]);
    check(
        &[("beeuni.yaml", "imports: [a.yaml]"), ("a.yaml", "env: {}\nodd: 1")],
        &[
            "error a.yaml:1:1 env: \"env\" may stand in the root file only; move it to beeuni.yaml",
            "warning a.yaml:2:1 odd: unknown key \"odd\": it changes nothing.",
        ],
    );
    check(
        &[("beeuni.yaml", "imports: [gone.yaml, a.json, ../x.yaml, pipe.yaml]"), ("a.json", "")],
        &[
            "error beeuni.yaml:1:11 imports: \"gone.yaml\" does not exist in the project files.",
            "error beeuni.yaml:1:22 imports: \"a.json\" must end in .yaml or .yml, or be a folder",
            "error beeuni.yaml:1:30 imports: \"../x.yaml\" has a `..` segment: it must stay below the project's root",
            "error beeuni.yaml:1:41 imports: \"pipe.yaml\" is no regular file.",
        ],
    );
    let judged = read(
        &MemoryFiles::new()
            .with("beeuni.yaml", "imports: [d]")
            .with("d/b.yml", "tools:")
            .with("d/a.yaml", ""),
        "beeuni.yaml",
        &Context::default(),
    );
    assert!(judged.manifest.tools.has_key, "L3: an empty key in an import counts");
    assert_eq!(judged.manifest.files, ["beeuni.yaml", "d/a.yaml", "d/b.yml"]);
    assert!(judged.manifest.session_tools().is_empty());
}

#[test]
fn circles_show_their_chain() {
    let circle =
        |file: &str, chain: &str| format!("error {file} imports: these imports form a circle: {chain}");
    check(
        &[
            ("beeuni.yaml", "imports: [a.yaml]"),
            ("a.yaml", "imports: [b.yaml]"),
            ("b.yaml", "imports: [a.yaml]"),
        ],
        &[&circle("b.yaml:1:11", "a.yaml → b.yaml → a.yaml")],
    );
    check(
        &[("beeuni.yaml", "imports: [beeuni.yaml]")],
        &[&circle("beeuni.yaml:1:11", "beeuni.yaml → beeuni.yaml")],
    );
    check(
        &[("beeuni.yaml", "imports: [d]"), ("d/a.yaml", "imports: [d]")],
        &[&circle("d/a.yaml:1:11", "d/a.yaml → d/a.yaml")],
    );
    check(
        &[("beeuni.yaml", "imports: [b.yaml]"), ("b.yaml", "imports: [alias.yaml]")],
        &[&circle("b.yaml:1:11", "b.yaml → alias.yaml")],
    );
}

#[test]
fn depth_and_number_are_bounded() {
    let mut deep = MemoryFiles::new().with("beeuni.yaml", "imports: [f1.yaml]");
    for level in 1..=9 {
        deep = deep.with(&format!("f{level}.yaml"), format!("imports: [f{}.yaml]", level + 1));
    }
    let judged = read(&deep.with("f10.yaml", ""), "beeuni.yaml", &Context::default());
    assert_eq!(
        lines(&judged),
        ["error f8.yaml:1:11 imports: \"f9.yaml\" is imported more than 8 levels deep"]
    );
    let many = (0..250).fold(MemoryFiles::new().with("beeuni.yaml", "imports: [d]"), |all, n| {
        all.with(&format!("d/{n:03}.yaml"), "")
    });
    let judged = read(&many, "beeuni.yaml", &Context::default());
    assert_eq!(
        lines(&judged),
        [
            "error beeuni.yaml:1:11 imports: more than 200 files are imported; \"d/199.yaml\" is the first too many"
        ]
    );
}

//! Allow, ask and deny.

use beeuni_manifest::{Action, Context, MEMORY_VIEW, MemoryFiles, matches, read, simple_commands};

#[track_caller]
fn check(rules: &str, tool: &str, subjects: &[&str], expected: Action) {
    let files = MemoryFiles::new()
        .with("beeuni.yaml", "")
        .with("agents/beeuni.md", format!("---\npermission: {rules}\n---\n"));
    let judged = read(&files, "beeuni.yaml", &Context::default());
    assert!(judged.findings.is_empty(), "{:?}", judged.findings);
    let subjects: Vec<String> = subjects.iter().map(|subject| (*subject).to_owned()).collect();
    assert_eq!(
        judged.manifest.agents["beeuni"].value.permission.action(tool, &subjects),
        expected,
        "{rules} {tool}"
    );
}

#[test]
fn rules() {
    use Action::{Allow, Ask, Deny};
    check("{}", "bash", &["ls"], Allow);
    check("deny", "bash", &["ls"], Deny);
    check("{'*': deny, bash: allow}", "bash", &["ls"], Allow);
    check("{'*': deny, bash: allow}", "read", &["x"], Deny);
    check("{bash: {'*': ask, 'git *': allow, 'git push *': deny}}", "bash", &["git log"], Allow);
    check("{bash: {'git push *': deny, 'git *': allow}}", "bash", &["git log", "git push x"], Deny);
    check("{bash: {'*': ask, 'ls': allow}}", "bash", &["ls", "rm x"], Ask);
    check("{bash: {'a*': allow, '*a': deny}}", "bash", &["aa"], Deny);
    check("{edit: deny}", "write", &["x"], Deny);
    check("{edit: deny, write: allow}", "write", &["x"], Allow);
    check("{edit: deny}", "apply_patch", &["x"], Deny);
    check("{websearch: ask}", "image_search", &["*"], Ask);
    check(
        "{webfetch: {'https://a.de/*': allow, '*': deny}}",
        "scrape_webpage",
        &["https://a.de/x", "http://b"],
        Deny,
    );
    check("{edit: deny, read: ask}", "memory", &["memory/a"], Deny);
    check("{edit: deny, read: ask}", MEMORY_VIEW, &["memory/a"], Ask);
    check("{read: deny, memory: allow}", MEMORY_VIEW, &["memory/a"], Allow);
    check("{bash: ask}", "pty_spawn", &["*"], Ask);
    check("{'lookup_*': deny, '*': allow}", "lookup_order", &["*"], Deny);
}

#[test]
fn globs() {
    for (pattern, subject, fits) in [
        ("*", "", true),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("a*c", "abxc", true),
        ("a*c", "abcd", false),
        ("src/*", "src/a/b", true),
        ("ä?", "äö", true),
        ("", "", true),
        ("", "a", false),
        ("*a*b", "xaxxb", true),
    ] {
        assert_eq!(matches(pattern, subject), fits, "{pattern} {subject}");
    }
}

#[test]
fn shell_lines() {
    for (line, expected) in [
        ("ls", Some(vec!["ls"])),
        ("", Some(vec![])),
        ("# only a comment", Some(vec![])),
        ("a && b || c ; d | e & f\ng", Some(vec!["a", "b", "c", "d", "e", "f", "g"])),
        ("echo 'a && b' \"c; d\" e\\;f", Some(vec!["echo 'a && b' \"c; d\" e\\;f"])),
        ("rm   -rf\t x # why", Some(vec!["rm -rf x"])),
        ("a &&\n b", Some(vec!["a", "b"])),
        ("a 2>&1 >out", Some(vec!["a 2>&1 >out"])),
        ("a &>all; b", Some(vec!["a &>all", "b"])),
        ("a \\\n b;", Some(vec!["a b"])),
        ("echo a#b", Some(vec!["echo a#b"])),
        ("echo $(x)", None),
        ("echo `x`", None),
        ("echo \"$(x)\"", None),
        ("(a)", None),
        ("{ a; }", None),
        ("cat <<E\nx\nE", None),
        ("diff <(a) b", None),
        ("> out", None),
        ("2>out", None),
        ("if a; then b; fi", None),
        ("echo 'open", None),
        ("echo \"open", None),
        ("a &&", None),
        ("&& a", None),
        ("a ;; b", None),
        ("a; ; b", None),
        ("f() { a; }", None),
        ("echo $'a'", None),
        ("a\\", None),
        ("! a", None),
    ] {
        let expected: Option<Vec<String>> =
            expected.map(|list| list.into_iter().map(str::to_owned).collect());
        assert_eq!(simple_commands(line), expected, "{line}");
    }
}

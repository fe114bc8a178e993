//! Input that means harm, or nothing at all.

use std::fmt::Write as _;

use beeuni_manifest::{Context, MemoryFiles, read, render, simple_commands};
use proptest::prelude::*;

use super::judging::{judge, lines};

#[test]
fn an_alias_bomb_costs_nothing() {
    let mut yaml = "x0: &a0 [z, z, z, z, z, z, z, z, z]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        writeln!(yaml, "x{level}: &a{level} [{aliases}]").unwrap();
    }
    let found = lines(&judge(&yaml));
    assert!(found.len() == 1 && found[0].contains("more than 100000 values"), "{found:?}");
}

#[test]
fn a_flood_of_warnings_hides_no_error() {
    let mut yaml = String::new();
    for key in 0..5000 {
        writeln!(yaml, "odd{key}: 1").unwrap();
    }
    let judged = judge(&(yaml + "harness: none\n"));
    assert!(judged.has_errors());
    assert_eq!(judged.findings.len(), 1001);
    assert_eq!(judged.findings[1000].message, "4001 more findings are not shown");
}

#[test]
fn depth_is_bounded() {
    for yaml in [
        format!("a: {}", "[".repeat(100_000)),
        format!("a: {}{}", "[".repeat(80), "]".repeat(80)),
        "- ".repeat(5000),
        "? ".repeat(5000),
    ] {
        assert_eq!(judge(&yaml).findings.len(), 1);
    }
}

#[test]
fn many_tools_in_many_files() {
    let mut files = MemoryFiles::new().with("beeuni.yaml", "imports: [parts]\ntools: {show: beeuni:show}\n");
    for part in 0..50 {
        let mut yaml = "tools:\n".to_owned();
        for tool in 0..20 {
            writeln!(yaml, "  tool_{part}_{tool}: tools/t{part}_{tool}.ts").unwrap();
            files = files.with(&format!("tools/t{part}_{tool}.ts"), "");
        }
        files = files.with(&format!("parts/p{part}.yaml"), yaml);
    }
    let begun = std::time::Instant::now();
    let judged = read(&files, "beeuni.yaml", &Context::default());
    eprintln!("1,000 tools in 50 files: {:?}", begun.elapsed());
    assert_eq!((judged.findings.len(), judged.manifest.session_tools().len()), (0, 1001));
}

const WHOLE: &str = "beeuni_version: 1\nproject: {name: ä, description: |\n  text}\nagents: &a\n  beeuni: {tools: {exclude: [bash]}, secrets: [A_B]}\ntools:\n  show: 'beeuni:show'\n  a: tools/a.ts\nlimits: {memory: 1GiB, tools: {a: {idle: 3s}}}\nmodels: {default: a/b, x: {api: openai, base_url: 'http://x'}}\nconnectors: {c: {url: 'https://x'}}\nimports: [tools]\n";

fn survives(bytes: Vec<u8>) {
    let files = MemoryFiles::new().with("beeuni.yaml", bytes.clone()).with("agents/beeuni.md", bytes);
    let judged = read(&files, "beeuni.yaml", &Context::default());
    render(&judged.findings, &judged.sources, true);
}

proptest! {
    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        survives(bytes);
    }

    #[test]
    fn mutated_manifests(at in 0..WHOLE.len(), cut in 0..20usize, with in "[ \\t\\n:{}\\[\\]&*!'\"|>#a0-]{0,6}") {
        let mut bytes = WHOLE.as_bytes().to_vec();
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, with.into_bytes());
        survives([b"---\n".to_vec(), bytes.clone(), b"\n---\nx".to_vec()].concat());
        survives(bytes);
    }

    #[test]
    fn shell_lines(line in "[ a'\"\\\\&|;<>$(){}#\n`]{0,30}") {
        simple_commands(&line);
    }
}

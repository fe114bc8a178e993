//! What holds for every command: help, suggestions, exit codes, colours, pipes.

use std::collections::BTreeSet;
use std::process::Command;

use beeuni_testkit::project::Project;

use crate::{BEEUNI, beeuni, project};

/// Every command and subcommand, as its words.
fn verbs(command: &clap::Command, words: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let mut words = words.to_vec();
        words.push(verb.get_name().to_owned());
        if verb.has_subcommands() {
            found.extend(verbs(verb, &words));
        } else {
            found.push(words);
        }
    }
    found
}

#[test]
fn every_command_has_help_with_an_example() {
    let project = Project::new();
    for words in verbs(&beeuni_cli::command(), &[]) {
        let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
        args.push("--help");
        let output = project.run(BEEUNI, &args);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}");
        let example = format!("beeuni {}", words.join(" "));
        assert!(text.contains("Example") && text.contains(&example), "{words:?} has no example:\n{text}");
    }
}

#[test]
fn the_docs_name_every_command() {
    let docs = include_str!("../../../../docs/cli.md");
    let described: BTreeSet<String> = docs
        .lines()
        .filter_map(|line| Some(line.strip_prefix("## `beeuni ")?.trim_end_matches('`').to_owned()))
        .collect();
    let real = verbs(&beeuni_cli::command(), &[]);
    let real: BTreeSet<String> = real.into_iter().map(|words| words.join(" ")).collect();
    assert_eq!(described, real, "docs/cli.md has one heading per command");
}

#[test]
fn wrong_usage_exits_with_2_and_a_suggestion() {
    let project = project("");
    let check = |args: &[&str], suggestion: &str| {
        let output = project.run(BEEUNI, args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(output.stdout.is_empty() && text.contains(suggestion), "{args:?}: {text}");
    };
    check(&["validat"], "'validate'");
    check(&["tools", "ejct"], "'eject'");
    check(&["validate", "--jsn"], "'--json'");
    check(&["tools", "eject"], "<NAME>");
    check(&["-C", "nothing", "validate"], "nothing is not a folder");
    check(&[], "Usage: beeuni");
}

#[test]
fn a_folder_without_a_manifest_exits_with_2() {
    let project = Project::new();
    project.write("repo/.git/HEAD", "").write("repo/sub/x", "").write("beeuni.yaml", "");
    for args in [&["validate"][..], &["tools", "ls"], &["tools", "eject", "show"]] {
        let args = [&["-C", "repo/sub"], args].concat();
        insta::allow_duplicates! {
            insta::assert_snapshot!(beeuni(&project, &args), @r"
            exit 2
            --- stdout
            --- stderr
            error: there is no beeuni.yaml in [project]/repo/sub or above it
            hint: go into a project, use -C DIR, or make one with `beeuni init`
            ");
        }
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let project = project("");
    let script = format!("{BEEUNI} completions bash | head -n 1; exec 3>&1; {BEEUNI} tools ls | true");
    let output = project.run("bash", &["-c", &script]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("_beeuni"));
}

#[test]
fn a_full_disk_is_an_error() {
    let project = project("");
    let output = project.run("sh", &["-c", &format!("{BEEUNI} tools ls > /dev/full")]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("error: cannot write to standard output"), "{text}");
}

#[test]
fn colours_only_for_people() {
    let project = project("tools: {bash: tools/b.ts}\n");
    let script = |prefix: &str| {
        // `script` gives the program a terminal.
        let command = format!("{prefix} {BEEUNI} validate --no-load");
        let run = project.command("script").args(["-qec", &command, "/dev/null"]).output();
        run.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Ok(coloured) = script("TERM=xterm") else {
        eprintln!("skipped: there is no `script` program to make a terminal with");
        return;
    };
    assert!(coloured.contains('\u{1b}'), "{coloured}");
    assert!(!script("NO_COLOR=1 TERM=xterm").unwrap().contains('\u{1b}'));
    assert!(!script("TERM=dumb").unwrap().contains('\u{1b}'));
    assert!(!beeuni(&project, &["validate", "--no-load"]).contains('\u{1b}'));
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = Command::new(BEEUNI).args(["completions", shell]).output().unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().contains("eject"), "{shell}");
    }
}

//! The spec runner: what passes, what fails and how it says so, what an update writes.

use std::path::Path;

use beeuni_testkit::project::Project;
use beeuni_testkit::spec::{SpecError, cases, covers, run};

/// A case with this transcript, beside a program `greet` on the path.
fn case(transcript: &str) -> Project {
    let project = Project::new();
    project.write("specs/area/case/transcript.txt", transcript);
    project.write("specs/area/case/project/note.txt", "a note\n");
    project.write("bin/greet", "#!/bin/sh\necho \"hello $1\"\n").chmod("bin/greet", 0o755);
    project
}

fn outcome(project: &Project, update: bool) -> Result<(), String> {
    let result = run(&project.at("specs/area/case"), &project.at("bin"), update);
    let specs = project.at("specs/area/case").to_string_lossy().into_owned();
    result.map_err(|error| error.to_string().replace(&specs, "CASE"))
}

#[test]
fn transcripts_that_match() {
    let check = |body: &str| {
        let transcript = format!("# covers: S1\n# A comment.\n\n{body}");
        assert_eq!(outcome(&case(&transcript), false), Ok(()), "{body}");
    };
    check("$ greet ada\nhello ada\n");
    check("$ greet ada\nhello ada");
    check("$ greet ada\nhello ada\n\n\n$ cat note.txt\na note\n");
    check("$ greet ada\nhello [..]\n");
    check("$ greet ada\n[..]el[..]da[..]\n");
    check("$ printf 'a\\n\\nb\\n'\na\n\nb\n");
    check("$ seq 9\n1\n...\n9\n");
    check("$ seq 9\n...\n");
    check("$ true\n...\n");
    check("$ true\n");
    check("$ echo no >&2; echo yes; exit 3\nyes\n! no\n[exit 3]\n");
    check("$ echo one >&2; echo two >&2\n! ...\n");
    check("$ echo a \\\n  b\na b\n");
    check("$ pwd; env\n...\n");
    check("$ echo kept > file\n$ cat file\nkept\n");
    check("$ echo \"$HOME $XDG_STATE_HOME\"\n[..]/home [..]/home/state\n");
}

#[test]
fn transcripts_that_do_not_match() {
    let check = |body: &str, expected: &str| {
        assert_eq!(outcome(&case(body), false), Err(expected.to_owned()), "{body}");
    };
    check(
        "# covers: S1\n$ greet ada\nhello eve\n",
        "CASE/transcript.txt:2: $ greet ada\n- hello eve\n+ hello ada",
    );
    check("# covers: S1\n$ seq 3\n1\n3\n", "CASE/transcript.txt:2: $ seq 3\n  1\n+ 2\n  3");
    check("# covers: S1\n$ seq 1\n1\n2\n", "CASE/transcript.txt:2: $ seq 1\n  1\n- 2");
    check("# covers: S1\n$ exit 2\n", "CASE/transcript.txt:2: $ exit 2\n+ [exit 2]");
    check("# covers: S1\n$ true\n[exit 1]\n", "CASE/transcript.txt:2: $ true\n- [exit 1]");
    check("# covers: S1\n$ echo e >&2\n", "CASE/transcript.txt:2: $ echo e >&2\n+ ! e");
    check("# covers: S1\n$ echo e >&2\ne\n", "CASE/transcript.txt:2: $ echo e >&2\n- e\n+ ! e");
    check("# covers: S1\n", "CASE/transcript.txt:1: there is no `$ ` command");
    check("# covers: S1\nhm\n$ true\n", "CASE/transcript.txt:2: \"hm\" stands before the first `$ ` command");
    let missing = "CASE/transcript.txt:1: the first line must be `# covers: <ids of the contract>`";
    check("$ true\n", missing);
    check("# covers:\n$ true\n", missing);
    check("", missing);
}

#[test]
fn an_update_writes_only_what_differs() {
    let project = case("# covers: S1\n\n$ greet ada\nhello [..]\n\n$ greet bob\nwrong\n\n$ pwd\n");
    assert_eq!(outcome(&project, true), Ok(()));
    let updated = "# covers: S1\n\n$ greet ada\nhello [..]\n\n$ greet bob\nhello bob\n\n$ pwd\n[..]\n";
    assert_eq!(project.read("specs/area/case/transcript.txt"), updated);
    assert_eq!(outcome(&project, false), Ok(()));
    assert_eq!(outcome(&project, true), Ok(()));
    assert_eq!(project.read("specs/area/case/transcript.txt"), updated);
}

#[test]
fn cases_are_found_and_say_what_they_cover() {
    let project = case("# covers: S1 E2  V7\n$ true\n");
    project.write("specs/area/no-case/readme.txt", "").write("specs/loose.txt", "");
    let found = cases(&project.at("specs"));
    assert_eq!(found, [project.at("specs/area/case")]);
    assert_eq!(covers(&found[0]).unwrap(), ["S1", "E2", "V7"]);
    assert_eq!(cases(&project.at("nothing")), Vec::<std::path::PathBuf>::new());
    assert!(matches!(covers(Path::new("/nothing")), Err(SpecError::File { .. })));
}

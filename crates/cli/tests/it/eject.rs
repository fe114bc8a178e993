//! `beeuni tools eject` (E1–E7, faults K7–K9).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use beeuni_testkit::project::Project;

use crate::{BEEUNI, beeuni, project};

const LISTED: &str = "\
# banner
tools:
  web_search: beeuni:web_search      # maintained by Beeuni, updated automatically
  show:   beeuni:show   # mine


agents:   # odd  spacing
    beeuni: {}
# the end";

/// Every file of the project with its bytes.
fn snapshot(project: &Project) -> Vec<(String, Vec<u8>)> {
    let mut open = vec![project.path()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(project.path()).unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                open.push(path);
                found.push((name, Vec::new()));
            } else {
                found.push((name, fs::read(path).unwrap_or_default()));
            }
        }
    }
    found.sort();
    found
}

/// A refusal changes no byte and has this exit code and these words.
fn check_refused(project: &Project, args: &[&str], code: i32, words: &str) {
    let before = snapshot(project);
    let told = beeuni(project, args);
    assert!(told.starts_with(&format!("exit {code}\n--- stdout\n--- stderr\n")), "{told}");
    assert!(told.contains(words), "{words:?} is not in {told}");
    assert_eq!(snapshot(project), before);
}

#[test]
fn e1_e3_the_transcript_and_the_one_line() {
    let project = project(LISTED);
    project.write("sub/x", "");
    insta::assert_snapshot!(beeuni(&project, &["-C", "sub", "tools", "eject", "web_search"]), @r#"
    exit 0
    --- stdout
      ✓  Ejected web_search
      wrote   tools/web_search.ts (the Beeuni source, now the project's to change)
      set     beeuni.yaml: tools.web_search: tools/web_search.ts

    Next:
      1. Edit tools/web_search.ts. Keep the default export: { description, parameters, execute(args, context) }.
      2. beeuni validate
      3. git add tools/web_search.ts beeuni.yaml && git commit -m "Own the web_search tool"
      4. Open a change request: git push origin HEAD && beeuni cr open --title "Own the web_search tool"
    Sessions load the copy after the change request merges.
    --- stderr
    "#);
    let expected = LISTED.replace(
        "  web_search: beeuni:web_search      # maintained by Beeuni, updated automatically",
        "  web_search: tools/web_search.ts  # ejected from beeuni:web_search",
    );
    assert_eq!(project.read("beeuni.yaml"), expected);
    assert_eq!(project.read("tools/web_search.ts"), beeuni_builtins::get("web_search").unwrap().source);
    let names: Vec<String> = snapshot(&project).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["beeuni.yaml", "sub", "sub/x", "tools", "tools/web_search.ts"],
        "nothing else is left"
    );
    let mode = fs::metadata(project.at("tools/web_search.ts")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode & 0o644, 0o644, "{mode:o}");
}

#[test]
fn e3_the_file_that_declares_the_entry() {
    let project = project("imports: [parts]\n");
    project.write("parts/b c.yaml", "tools:\n  show: beeuni:show\n");
    let told = beeuni(&project, &["tools", "eject", "show"]);
    assert!(told.contains("  set     parts/b c.yaml: tools.show: tools/show.ts\n"), "{told}");
    assert!(told.contains("  3. git add tools/show.ts 'parts/b c.yaml' && git commit"), "{told}");
    assert_eq!(project.read("beeuni.yaml"), "imports: [parts]\n");
    assert_eq!(project.read("parts/b c.yaml"), "tools:\n  show: tools/show.ts  # ejected from beeuni:show\n");
}

#[test]
fn e4_no_key_lists_the_others() {
    let project = project("# only this");
    let told = beeuni(&project, &["tools", "eject", "memory"]);
    let listed = "\n    listed  web_search: beeuni:web_search, image_search: beeuni:image_search, \
                  scrape_webpage: beeuni:scrape_webpage, show: beeuni:show (so the other Beeuni tools stay)\n\n";
    assert!(told.contains(listed), "{told}");
    let listing = beeuni(&project, &["tools", "ls"]);
    assert!(listing.contains("memory          beeuni (overridden)  tools/memory.ts"), "{listing}");
    assert!(!listing.contains("Removed"), "{listing}");
}

#[test]
fn e5_e6_refusals() {
    let names = "web_search, image_search, scrape_webpage, memory, show";
    let existing = project(LISTED);
    existing.write("tools/show.ts", "mine\n");
    check_refused(&existing, &["tools", "eject", "show"], 1, "tools/show.ts exists already");
    check_refused(&existing, &["tools", "eject", "lookup_order"], 2, names);
    check_refused(&existing, &["tools", "eject", "lookup_order", "--force"], 2, names);
    assert!(beeuni(&existing, &["tools", "eject", "show", "--force"]).starts_with("exit 0"));
    assert_eq!(existing.read("tools/show.ts"), beeuni_builtins::get("show").unwrap().source);

    let elsewhere = project("tools:\n  show: other/show.ts\n");
    elsewhere.write("other/show.ts", "mine\n");
    check_refused(&elsewhere, &["tools", "eject", "show"], 1, "other/show.ts");
    assert!(beeuni(&elsewhere, &["tools", "eject", "show", "--force"]).starts_with("exit 0"));
    assert_eq!(elsewhere.read("other/show.ts"), "mine\n");
}

#[test]
fn k8_all_or_nothing() {
    let file = project(LISTED);
    file.write("tools", "a plain file\n");
    check_refused(&file, &["tools", "eject", "show"], 1, "tools is not a folder");
    check_refused(&file, &["tools", "eject", "show", "--force"], 1, "tools is not a folder");

    let link = project(LISTED);
    link.link("tools", "../home");
    check_refused(&link, &["tools", "eject", "show"], 1, "tools is not a folder");

    let folder = project(LISTED);
    folder.write("tools/show.ts/x", "");
    check_refused(&folder, &["tools", "eject", "show", "--force"], 1, "tools/show.ts");

    check_refused(&project("tools: {show: [\n"), &["tools", "eject", "show"], 1, "beeuni.yaml:1:");
    let imported = project("imports: [more.yaml]\n");
    imported.write("more.yaml", "tools:\n  show: 'beeuni:show\n");
    check_refused(&imported, &["tools", "eject", "show"], 1, "more.yaml:");
}

#[test]
fn k8_a_checkout_that_cannot_be_written() {
    let project = project(LISTED);
    project.chmod("", 0o555);
    if fs::write(project.at("probe"), "").is_ok() {
        fs::remove_file(project.at("probe")).unwrap();
        eprintln!("skipped: this user (root) may write everywhere");
        project.chmod("", 0o755);
        return;
    }
    check_refused(&project, &["tools", "eject", "show"], 1, "cannot be written");
    project.chmod("", 0o755).chmod("beeuni.yaml", 0o444);
    check_refused(&project, &["tools", "eject", "show"], 1, "beeuni.yaml cannot be written");
}

#[test]
fn k7_link_and_mode_are_kept() {
    let project = Project::new();
    project.write("config/real.yaml", LISTED).link("beeuni.yaml", "config/real.yaml");
    project.chmod("config/real.yaml", 0o640);
    assert!(beeuni(&project, &["tools", "eject", "show"]).starts_with("exit 0"));
    assert!(project.at("beeuni.yaml").is_symlink());
    assert!(project.read("config/real.yaml").contains("# ejected from beeuni:show"));
    let mode = fs::metadata(project.at("config/real.yaml")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o640);
}

#[test]
fn links_are_told_as_what_they_lead_to() {
    let project = Project::new();
    project.write("config/my real.yaml", LISTED).link("beeuni.yaml", "config/my real.yaml");
    project.write("code/tools/x", "").link("tools", "code/tools").git();
    let told = beeuni(&project, &["tools", "eject", "show"]);
    for line in [
        "  wrote   code/tools/show.ts (",
        "  set     config/my real.yaml: tools.show: tools/show.ts\n",
        "  1. Edit code/tools/show.ts. ",
        "  3. git add code/tools/show.ts 'config/my real.yaml' && git commit",
    ] {
        assert!(told.starts_with("exit 0") && told.contains(line), "{line:?} is not in {told}");
    }
    let added = project.run("sh", &["-c", "git add code/tools/show.ts 'config/my real.yaml'"]);
    assert!(added.status.success(), "{added:?}");
    assert!(!beeuni(&project, &["validate", "--no-load"]).contains("Git"));
}

#[test]
fn a_newer_manifest_and_a_tool_that_two_files_declare() {
    let newer = project("beeuni_version: 3\ntools:\n  show: beeuni:show\n");
    check_refused(
        &newer,
        &["tools", "eject", "show"],
        1,
        "beeuni_version: this program reads versions 1 and 2",
    );
    let twice = project("imports: [more.yaml]\ntools:\n  show: beeuni:show\n");
    twice.write("more.yaml", "tools:\n  show: beeuni:show\n  memory: beeuni:memory\n");
    let words = "more.yaml:2:3: `show` is declared here and at beeuni.yaml:3:3";
    check_refused(&twice, &["tools", "eject", "show"], 1, words);
    check_refused(&twice, &["tools", "eject", "show", "--force"], 1, words);
    assert!(beeuni(&twice, &["tools", "eject", "memory"]).starts_with("exit 0"));
}

#[test]
fn a_project_of_somebody_else_stays_theirs() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let project = project(LISTED);
    if chown(project.at("beeuni.yaml"), Some(65_534), Some(65_533)).is_err() {
        eprintln!("skipped: this user may not give files away");
        return;
    }
    project.chmod("beeuni.yaml", 0o640);
    assert!(beeuni(&project, &["tools", "eject", "show"]).starts_with("exit 0"));
    for file in ["beeuni.yaml", "tools", "tools/show.ts"] {
        let meta = fs::metadata(project.at(file)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (65_534, 65_533), "{file}");
    }
    assert_eq!(fs::metadata(project.at("beeuni.yaml")).unwrap().mode() & 0o777, 0o640);
}

#[test]
fn k7_two_at_once_lose_nothing() {
    for _ in 0..10 {
        let project = project(LISTED);
        let children: Vec<_> = ["show", "memory", "web_search"]
            .iter()
            .map(|name| {
                let mut command = project.command("sh");
                command.args(["-c", &format!("exec {BEEUNI} tools eject {name}")]).stdout(Stdio::null());
                std::thread::spawn(move || command.status().unwrap())
            })
            .collect();
        while children.iter().any(|child| !child.is_finished()) {
            let text = project.read("beeuni.yaml");
            assert!(text.starts_with("# banner") && text.ends_with("# the end"), "half a file: {text:?}");
        }
        for child in children {
            assert!(child.join().unwrap().success());
        }
        assert_eq!(project.read("beeuni.yaml").matches("# ejected from").count(), 3);
    }
}

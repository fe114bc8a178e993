//! Temporary projects.

use beeuni_testkit::{bun, project::Project};

#[test]
fn nothing_of_the_machine_leaks_in() {
    let project = Project::new();
    let output = project.run("env", &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> =
        text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let known: Vec<String> = project.environment().into_keys().collect();
    assert!(names.iter().all(|name| known.iter().any(|known| known == name)), "{names:?}");
    for name in ["HOME", "TMPDIR", "XDG_DATA_HOME"] {
        assert!(std::path::Path::new(&project.environment()[name]).is_dir(), "{name}");
    }
}

#[test]
fn a_project_is_built_step_by_step() {
    let project = Project::new();
    project
        .write("tools/a.ts", "export default 1\n")
        .link("b.ts", "tools/a.ts")
        .chmod("tools/a.ts", 0o600)
        .git();
    assert_eq!(project.read("b.ts"), "export default 1\n");
    let log = project.run("git", &["log", "--format=%an %s"]);
    assert_eq!(String::from_utf8(log.stdout).unwrap(), "Ada Example Begin\n");
    let pwd = project.run("pwd", &[]);
    assert_eq!(String::from_utf8(pwd.stdout).unwrap().trim_end(), project.path().to_str().unwrap());

    let copy = Project::new();
    copy.copy(&project.path());
    assert!(copy.at("b.ts").is_symlink());
}

#[test]
fn buns_version_is_the_pinned_one() {
    let Some(bun) = bun() else {
        eprintln!("skipped: no Bun; run `cargo xtask setup`");
        return;
    };
    let output = Project::new().run(bun, &["--version"]);
    assert!(output.status.success());
}

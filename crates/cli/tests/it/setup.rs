//! `beeuni setup` with npm programs of our own: no test needs the network.

use std::fs;

use beeuni_testkit::project::Project;

use crate::{BEEUNI, shown};

/// Puts a Bun that says the pinned version where npm would.
const GOOD: &str = r#"mkdir -p node_modules/@oven/bun-linux-x64/bin
printf '#!/bin/sh\necho 1.4.5\n' > node_modules/@oven/bun-linux-x64/bin/bun
chmod +x node_modules/@oven/bun-linux-x64/bin/bun"#;

/// A machine whose npm is this script; it counts how often it ran.
fn machine(npm: &str) -> Project {
    let project = Project::new();
    let count = project.at("runs");
    project.write("bin/npm", format!("#!/bin/sh\necho run >> {}\n{npm}\n", count.display()));
    project.chmod("bin/npm", 0o755).write("runs", "");
    project
}

fn setup(project: &Project, args: &[&str]) -> String {
    let path = format!("{}:/usr/bin:/bin", project.at("bin").display());
    let mut command = project.command(BEEUNI);
    let output = command.arg("setup").args(args).env("PATH", path).env_remove("BEEUNI_BUN").output().unwrap();
    let data = project.home().canonicalize().unwrap().join("data");
    shown(project, &output).replace(&*data.to_string_lossy(), "[data]")
}

fn runs(project: &Project) -> usize {
    project.read("runs").lines().count()
}

/// Nothing but the lock, or that and one finished folder.
fn left(project: &Project) -> Vec<String> {
    let folder = project.home().join("data/beeuni/runtime");
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn it_installs_once() {
    let project = machine(GOOD);
    let told = setup(&project, &[]);
    assert!(told.starts_with("exit 0\n--- stdout\n[data]/beeuni/runtime/"), "{told}");
    assert!(told.contains("/node_modules/@oven/bun-linux-x64/bin/bun\n"), "{told}");
    assert!(setup(&project, &[]).contains("Bun 1.4.5 is already installed."));
    assert_eq!((runs(&project), left(&project).len()), (1, 2));
    // A Bun that no longer runs is replaced.
    let bun = project.home().join("data/beeuni/runtime").join(&left(&project)[1]).join("bun");
    fs::write(bun.canonicalize().unwrap(), "#!/bin/sh\nexit 1\n").unwrap();
    assert!(setup(&project, &[]).starts_with("exit 0"));
    assert_eq!((runs(&project), left(&project).len()), (2, 2));
}

#[test]
fn two_at_once_install_once() {
    let project = machine(GOOD);
    let told: Vec<String> = std::thread::scope(|scope| {
        let both: Vec<_> = (0..2).map(|_| scope.spawn(|| setup(&project, &[]))).collect();
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(told.iter().all(|told| told.starts_with("exit 0")), "{told:?}");
    assert_eq!((runs(&project), left(&project).len()), (1, 2));
}

#[test]
fn what_was_cut_off_is_swept() {
    let project = machine(GOOD);
    fs::create_dir_all(project.home().join("data/beeuni/runtime/.setup-old/node_modules")).unwrap();
    assert!(setup(&project, &[]).starts_with("exit 0"));
    assert_eq!(left(&project).len(), 2);
}

#[test]
fn bad_news_says_what_to_do() {
    let check = |npm: &str, words: &[&str]| {
        let project = machine(npm);
        let told = setup(&project, &[]);
        assert!(told.starts_with("exit 1\n--- stdout\n--- stderr\n"), "{told}");
        for words in words {
            assert!(told.contains(words), "{words:?} is not in {told}");
        }
        assert_eq!(left(&project), [".lock"], "{npm}");
    };
    check("echo 'npm error code ENOSPC' >&2; exit 228", &["npm error code ENOSPC", "the disk is full"]);
    check(
        "echo 'npm http fetch GET x attempt 3 failed with ENOTFOUND' >&2",
        &["ENOTFOUND", "is this machine online"],
    );
    check("exit 0", &["npm has no Bun for this machine", "BEEUNI_BUN"]);
    check("exit 7", &["npm did not install Bun"]);
    check(&GOOD.replace("1.4.5", "1.0.0"), &["version 1.0.0", "1.4.5 is pinned"]);
    check(&GOOD.replace("echo 1.4.5", "exit 132"), &["does not run on this machine"]);

    let project = Project::new();
    let told = setup(&project, &["--standard"]);
    assert!(told.starts_with("exit 1") && told.contains("pins no OpenCode"), "{told}");
    let mut command = project.command(BEEUNI);
    let output = command.arg("setup").env("PATH", "/nothing").output().unwrap();
    assert!(shown(&project, &output).contains("npm is not on PATH"));
}

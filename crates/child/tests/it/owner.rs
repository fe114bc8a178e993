//! That nothing outlives the program, however that ends: by shutting down, by ending without, by SIGKILL.

use crate::lifetime::{STRAYS, straying};
use crate::{eventually, is_gone, line};
use beeuni_child::{Sandbox, SpawnError, Spawner};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program's name that looks like the fields that the system prints after it.
const ODD_NAME: &str = ") S 1 1\n1 1 (a";

/// Not a test of its own: the process that the tests below run and end.
#[tokio::test]
async fn an_owner() {
    let Some(folder) = std::env::var_os("BEEUNI_TEST_OWNER").map(PathBuf::from) else { return };
    let spawner = Spawner::start().unwrap();
    let mut children = Vec::new();
    let odd = format!("'{}' 1000 & echo $!", folder.join(ODD_NAME).display());
    for script in STRAYS.iter().copied().chain([odd.as_str()]) {
        for confined in [false, true] {
            let mut spec = straying(script, "exec sleep 1000");
            let sandbox = Sandbox { read: vec![folder.clone()], ..Sandbox::default() };
            spec.sandbox = confined.then_some(sandbox);
            let mut child = spawner.spawn(spec).await.unwrap();
            let stray = line(&mut child).await;
            assert!(!is_gone(&stray), "{script}");
            eprintln!("owns {} {stray}", child.pid());
            children.push(child);
        }
    }
    eprintln!("owns all");
    match std::io::stdin().lines().next().unwrap().unwrap().as_str() {
        "shut down" => spawner.shut_down().await,
        "start one and end" => {
            let mut spec = straying("true", "exec sleep 1000");
            spec.sandbox = Some(Sandbox::default());
            children.push(spawner.spawn(spec).await.unwrap());
        }
        how => assert_eq!(how, "end"),
    }
    std::process::exit(0);
}

/// Starts an owner and tells which processes it has.
fn owner(folder: &Path) -> (Child, Vec<String>) {
    std::os::unix::fs::symlink("/bin/sleep", folder.join(ODD_NAME)).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "owner::an_owner", "--nocapture"]).env("BEEUNI_TEST_OWNER", folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    // A spawner of this process would itself end what the owner leaves behind.
    #[allow(clippy::disallowed_methods)]
    let mut owner = command.spawn().unwrap();
    let mut pids = Vec::new();
    for said in BufReader::new(owner.stderr.take().unwrap()).lines() {
        match said.unwrap().rsplit_once("owns ") {
            Some((_, "all")) => return (owner, pids),
            Some((_, both)) => pids.extend(both.split(' ').map(str::to_owned)),
            None => {}
        }
    }
    panic!("the owner has ended: {:?}", owner.wait());
}

/// Tells it to end and waits until it has.
fn end(owner: &mut Child, how: &str) {
    use std::io::Write;
    owner.stdin.take().unwrap().write_all(format!("{how}\n").as_bytes()).unwrap();
    assert!(owner.wait().unwrap().success());
}

#[tokio::test]
async fn nothing_is_left_when_it_has_shut_down() {
    let folder = tempfile::tempdir().unwrap();
    let (mut owner, pids) = owner(folder.path());
    end(&mut owner, "shut down");
    let left: Vec<_> = pids.iter().filter(|pid| !is_gone(pid)).collect();
    assert!(left.is_empty(), "{left:?} of {pids:?}");
}

#[tokio::test]
async fn all_of_it_dies_when_it_ends_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let (mut owner, pids) = owner(folder.path());
    end(&mut owner, "end");
    eventually("all that it had has ended", || pids.iter().all(|pid| is_gone(pid))).await;
}

#[tokio::test]
async fn all_of_it_dies_when_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut owner, pids) = owner(folder.path());
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("all that it had has ended", || pids.iter().all(|pid| is_gone(pid))).await;
}

#[tokio::test]
async fn starts_nothing_after_it_has_shut_down() {
    let spawner = Spawner::start().unwrap();
    let mut child = spawner.spawn(straying("sleep 1000 & echo $!", "wait")).await.unwrap();
    let stray = line(&mut child).await;
    let other = spawner.clone();
    spawner.shut_down().await;
    assert!(is_gone(&stray) && is_gone(&child.pid().to_string()));
    assert_eq!(child.wait().await.signal, Some(libc::SIGKILL));
    let refused = other.spawn(straying("true", "true")).await;
    assert!(matches!(refused, Err(SpawnError::Stopped { .. })));
    // Twice is as good as once.
    other.shut_down().await;
}

/// A user's own command may end the process that watches over the others.
#[tokio::test]
async fn a_new_warden_knows_the_children_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let (mut owner, pids) = owner(folder.path());
    let list = format!("/proc/{0}/task", owner.id());
    let of_thread = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children"));
    let children: String =
        std::fs::read_dir(list).unwrap().flatten().filter_map(|task| of_thread(task).ok()).collect();
    let name = |pid: &&str| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let warden = children.split_whitespace().find(|pid| name(pid).starts_with(b"beeuni-warden")).unwrap();
    // SAFETY: kill touches no memory of this process.
    #[allow(unsafe_code)]
    let killed = unsafe { libc::kill(warden.parse().unwrap(), libc::SIGKILL) };
    assert_eq!(killed, 0);
    end(&mut owner, "start one and end");
    eventually("all that it had has ended", || pids.iter().all(|pid| is_gone(pid))).await;
}

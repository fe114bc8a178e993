//! How children end, and that nothing of them stays.

use crate::{eventually, is_gone, line, run, shell, state};
use beeuni_child::{Spawner, Spec, Stdin};

#[tokio::test]
async fn says_how_it_ended() {
    let spawner = Spawner::start().unwrap();
    let check = async |script: &str, expected: &str| {
        assert_eq!(run(&spawner, shell(script)).await.2.to_string(), expected, "{script}");
    };
    check("exit 0", "exited with code 0").await;
    check("exit 7", "exited with code 7").await;
    check("kill -9 $$", "was killed by signal 9 (SIGKILL)").await;
    check("kill -ABRT $$", "was killed by signal 6 (SIGABRT)").await;
    check("kill -SEGV $$", "was killed by signal 11 (SIGSEGV)").await;
    // Rust ignores this one, and what is ignored would stay so.
    check("kill -PIPE $$", "was killed by signal 13 (SIGPIPE)").await;
    check("kill -40 $$", "was killed by signal 40").await;
}

#[tokio::test]
async fn can_be_waited_for_by_many_and_again() {
    let spawner = Spawner::start().unwrap();
    let child = spawner.spawn(shell("exit 3")).await.unwrap();
    let (one, two) = tokio::join!(child.wait(), child.wait());
    assert_eq!((one.code, two.code, child.wait().await.code), (Some(3), Some(3), Some(3)));
    // Its id may be another process's by now.
    child.kill();
    child.terminate();
}

#[tokio::test]
async fn is_asked_and_is_killed() {
    let spawner = Spawner::start().unwrap();
    let mut child =
        spawner.spawn(shell("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done")).await.unwrap();
    line(&mut child).await;
    child.terminate();
    assert_eq!(child.wait().await.code, Some(5));
    let mut child = spawner.spawn(shell("trap '' TERM; echo ready; while :; do :; done")).await.unwrap();
    line(&mut child).await;
    child.terminate();
    child.kill();
    assert_eq!(child.wait().await.signal, Some(libc::SIGKILL));
}

/// Scripts that start `sleep 1000` in some way and print its id.
pub(crate) const STRAYS: &[&str] = &[
    "sleep 1000 & echo $!",
    // Its parent ends at once.
    "(sleep 1000 & echo $!)",
    // In a group of its own.
    "timeout 2000 sleep 1000 & echo $!",
    "set -m; sleep 1000 & echo $!",
    // Deaf to everything that can be ignored.
    "(trap '' HUP TERM INT; sleep 1000 & echo $!)",
    // In a session of its own; then without a living parent as well, and without the environment.
    "setsid sleep 1000 & echo $!",
    "(setsid sh -c 'sleep 1000 & echo $!' &)",
    "(env -i setsid setsid -f sh -c '(sleep 1000 & echo $!)' &)",
];

/// A shell that runs one of them and then does what the second script says. Nobody watches its memory, so
/// nobody has seen its descendants before they are to be ended.
pub(crate) fn straying(script: &str, then: &str) -> Spec {
    let mut spec = shell(&format!("exec 2>/dev/null; {script}; {then}"));
    spec.limits.memory = u64::MAX;
    spec.stdin = Stdin::Piped;
    spec
}

#[tokio::test]
async fn what_it_leaves_behind_is_ended_when_it_ends() {
    let spawner = Spawner::start().unwrap();
    for script in STRAYS {
        let mut child = spawner.spawn(straying(script, "read word; exit 4")).await.unwrap();
        let stray = line(&mut child).await;
        drop(child.stdin.take());
        assert_eq!(child.wait().await.code, Some(4), "{script}");
        assert!(is_gone(&stray), "{script}");
    }
}

#[tokio::test]
async fn a_dropped_child_takes_all_with_it() {
    let spawner = Spawner::start().unwrap();
    for script in STRAYS {
        let mut child = spawner.spawn(straying(script, "wait; sleep 1000")).await.unwrap();
        let (stray, pid) = (line(&mut child).await, child.pid().to_string());
        drop(child);
        eventually(script, || is_gone(&stray) && state(&pid).is_none()).await;
    }
}

/// F6: a host that crashes again and again leaves nothing to bury.
#[tokio::test]
async fn thirty_crashes_leave_no_zombie() {
    let spawner = Spawner::start().unwrap();
    let mut pids = Vec::new();
    for _ in 0..30 {
        let child = spawner.spawn(shell("kill -ABRT $$")).await.unwrap();
        pids.push(child.pid().to_string());
        assert_eq!(child.wait().await.signal, Some(libc::SIGABRT));
    }
    let left: Vec<_> = pids.iter().filter(|pid| state(pid).is_some()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn many_at_once() {
    let spawner = Spawner::start().unwrap();
    let all = (0..64).map(|number| {
        let spawner = spawner.clone();
        tokio::spawn(async move { run(&spawner, shell(&format!("echo {number}"))).await.0 })
    });
    for (number, task) in all.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(task.await.unwrap(), format!("{number}\n"));
    }
}

#[tokio::test]
async fn a_child_outlives_the_last_handle_to_the_spawner() {
    let spawner = Spawner::start().unwrap();
    let mut child = spawner.spawn(shell("echo ready; read word; exit 6")).await.unwrap();
    drop(spawner);
    line(&mut child).await;
    assert_eq!(child.wait().await.code, Some(6));
}

#[test]
fn ends_with_its_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (child, pid) = runtime.block_on(async {
        let mut child = Spawner::start().unwrap().spawn(shell("echo $$; exec sleep 1000")).await.unwrap();
        let pid = line(&mut child).await;
        (child, pid)
    });
    drop(runtime);
    let waiting = tokio::runtime::Runtime::new().unwrap();
    waiting.block_on(eventually("the child has ended", || state(&pid).is_none()));
    assert_eq!(waiting.block_on(child.wait()).signal, Some(libc::SIGKILL));
}

#[tokio::test]
async fn a_spawn_that_is_given_up_leaves_nothing() {
    let spawner = Spawner::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        let mut spec = shell("echo $$ >>pids; exec sleep 1000");
        spec.cwd = folder.path().to_owned();
        // Polled once: the request is on its way, and nobody waits for the answer.
        let given_up = tokio::time::timeout(std::time::Duration::ZERO, spawner.spawn(spec));
        drop(given_up.await);
    }
    // The thread takes one request after the other, so this one comes after all of those.
    run(&spawner, shell("true")).await;
    eventually("all of them have ended", || {
        let pids = std::fs::read_to_string(folder.path().join("pids")).unwrap_or_default();
        pids.lines().all(|pid| state(pid).is_none())
    })
    .await;
}

/// As process 1 of a container, this process adopts what its children leave behind, and has to bury it.
#[tokio::test]
async fn a_subreaper_buries_what_it_adopts() {
    // SAFETY: the call takes numbers only. It makes orphans come to this process rather than to process 1.
    #[allow(unsafe_code)]
    let adopts = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    assert_eq!(adopts, 0);
    let spawner = Spawner::start().unwrap();
    for script in STRAYS {
        let mut child = spawner.spawn(straying(script, "read word; exit 4")).await.unwrap();
        let stray = line(&mut child).await;
        drop(child.stdin.take());
        child.wait().await;
        eventually(script, || state(&stray).is_none()).await;
    }
}

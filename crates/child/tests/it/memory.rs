//! G3: a child that takes too much memory is ended, and it is said why.

use crate::{bun, eventually, is_gone, line, run, shell};
use beeuni_child::{Exit, Limits, Spawner, Spec};

const HOG: &str =
    "const all = []; for (let n = 0; ; n++) { all.push(new Uint8Array(1 << 24).fill(1)); await 0; }";

fn hog(program: &std::path::Path, before: &str, after: &str) -> Spec {
    let mut spec = shell(&format!("{before} {} -e '{HOG}' {after}", program.display()));
    spec.limits = Limits { memory: 200 << 20, ..Limits::default() };
    spec
}

#[tokio::test]
async fn too_much_memory_ends_it() {
    let Some(bun) = bun() else { return };
    let spawner = Spawner::start().unwrap();
    let expected = Exit { code: None, signal: Some(libc::SIGKILL), out_of_memory: Some(200 << 20) };
    let check = async |before: &str, after: &str| {
        let (_, err, exit) = run(&spawner, hog(&bun, before, after)).await;
        assert_eq!(exit, expected, "{before} {after}: {err}");
        assert_eq!(exit.to_string(), "was killed for using more than 200 MiB of memory");
    };
    check("exec", "").await;
    check("", "& wait").await;
    check("timeout 1000", "& sleep 1000").await;
}

#[tokio::test]
async fn memory_that_processes_share_is_counted_once() {
    let Some(bun) = bun() else { return };
    let spawner = Spawner::start().unwrap();
    // Twenty times Bun's own pages are far over the limit, and are there once.
    let one = format!("{} -e 'await Bun.sleep(1500)' &", bun.display());
    let mut spec = shell(&format!("{} wait", one.repeat(20)));
    spec.limits = Limits { memory: 400 << 20, ..Limits::default() };
    let (out, err, exit) = run(&spawner, spec).await;
    assert!(exit.success(), "{exit} {out} {err}");
}

#[tokio::test]
async fn one_over_its_limit_takes_no_other_with_it() {
    let Some(bun) = bun() else { return };
    let spawner = Spawner::start().unwrap();
    let mut other = spawner.spawn(shell("echo $$; read word")).await.unwrap();
    let mut quiet = shell("echo $$; exec sleep 1000");
    quiet.limits.memory = u64::MAX;
    let mut unlimited = spawner.spawn(quiet).await.unwrap();
    let pid = line(&mut unlimited).await;
    line(&mut other).await;
    assert!(run(&spawner, hog(&bun, "exec", "")).await.2.out_of_memory.is_some());
    assert!(!is_gone(&pid));
    unlimited.kill();
    assert_eq!(unlimited.wait().await.out_of_memory, None);
    eventually("it has ended", || is_gone(&pid)).await;
}

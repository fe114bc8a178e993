//! Real children, real kernel, real Bun.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod attacks;
mod lifetime;
mod memory;
mod owner;
mod start;

use beeuni_child::{Child, Exit, Spawner, Spec};
use std::path::{Path, PathBuf};
use tokio::io::AsyncReadExt;

/// A shell with a script, and the environment that programs want.
fn shell(script: &str) -> Spec {
    let mut spec = Spec::new("/bin/sh", "/");
    spec.args = vec!["-c".into(), script.into()];
    spec.env = [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())].into();
    spec
}

/// Runs to the end: standard output, standard error, how it ended.
async fn run(spawner: &Spawner, spec: Spec) -> (String, String, Exit) {
    let mut child = spawner.spawn(spec).await.unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (read, also_read) = tokio::join!(stdout.read_to_string(&mut out), stderr.read_to_string(&mut err));
    read.and(also_read).unwrap();
    (out, err, child.wait().await)
}

/// Reads one line that the child prints.
async fn line(child: &mut Child) -> String {
    let mut text = Vec::new();
    loop {
        let byte = child.stdout.as_mut().unwrap().read_u8().await.expect("a line");
        if byte == b'\n' {
            return String::from_utf8(text).unwrap();
        }
        text.push(byte);
    }
}

/// Waits until a condition holds; fails when it has not for far longer than it should take.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("never came true: {what}");
}

/// State letter of a process, `None` when there is no such process.
fn state(pid: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim().chars().next()
}

/// Whether a process no longer runs. One that another process has yet to reap counts as ended.
fn is_gone(pid: &str) -> bool {
    matches!(state(pid), None | Some('Z' | 'X'))
}

fn bun() -> Option<PathBuf> {
    let set = std::env::var_os("BEEUNI_BUN").map(PathBuf::from);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/node_modules/@oven");
    let pinned = || {
        let platforms = std::fs::read_dir(folder).ok()?;
        platforms.flatten().map(|entry| entry.path().join("bin/bun")).find(|path| path.is_file())
    };
    let found = set.or_else(pinned).and_then(|path| path.canonicalize().ok());
    if found.is_none() {
        eprintln!("skipped: no Bun; set BEEUNI_BUN or run `npm ci` in runtime/");
    }
    found
}

//! What a hostile tool can and cannot do, tried by real calls from a real Bun: as this user and, when this user
//! is root, once more as an ordinary one.

use crate::{bun, line, run, shell};
use beeuni_child::{Sandbox, Spawner, Spec, probe};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const SCRIPT: &str = include_str!("attacks.js");

/// Name of the attempt, and what it must print.
const EXPECTED: &[(&str, &str)] = &[
    ("read a key", "EACCES"),
    ("read a key by a shell", "fails"),
    ("read /etc/shadow", "EACCES"),
    ("read environ of parent", "EACCES"),
    ("read memory of parent", "EACCES"),
    ("look through the root of parent", "EACCES"),
    ("trace parent", "errno 1"),
    ("signal parent", "errno 1"),
    ("read environ of sibling", "EACCES"),
    ("read memory of sibling", "EACCES"),
    ("look through the root of sibling", "EACCES"),
    ("trace sibling", "errno 1"),
    ("signal sibling", "errno 1"),
    ("system calls", "as expected"),
    ("write outside", "EACCES"),
    ("write a system setting", "EACCES"),
    ("write /usr", "EACCES"),
    ("unshare", "errno 1"),
    ("unshare by a program", "fails"),
    ("clone a user namespace", "errno 1"),
    ("mount", "errno 1"),
    ("io_uring", "errno 1"),
    ("packet socket", "errno 13"),
    ("leave the session", "ok"),
    ("session unchanged", "ok"),
    ("NoNewPrivs", "1"),
    ("CapEff", "0000000000000000"),
    ("CapPrm", "0000000000000000"),
    ("CapInh", "0000000000000000"),
    ("CapAmb", "0000000000000000"),
    ("write the workspace", "ok"),
    ("run a shell", "ok"),
    ("run git", "ok"),
    ("run with a time limit", "ok"),
    ("much data through a program", "ok"),
    ("JIT", "ok"),
    ("worker", "ok"),
    ("detached child", "ok"),
];

macro_rules! calls {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name)),*] };
}

/// Calls that are tried with arguments of their own.
const CALLS: &[(&str, libc::c_long)] = calls! {
    SYS_ptrace SYS_kill SYS_unshare SYS_clone SYS_mount SYS_io_uring_setup SYS_socket SYS_setsid
    SYS_prlimit64 SYS_setpriority SYS_ioprio_set SYS_sched_setaffinity SYS_sched_setscheduler SYS_sched_setparam
    SYS_sched_setattr SYS_move_pages SYS_migrate_pages SYS_pidfd_open SYS_pidfd_send_signal
    SYS_fchmod SYS_fchmodat SYS_fchmodat2 SYS_openat SYS_mknodat SYS_mkdirat
};

/// The same, where the kernel still has them.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[(&str, libc::c_long)] = calls! { SYS_chmod SYS_creat SYS_open SYS_mknod };
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[(&str, libc::c_long)] = &[];

/// Calls that are not permitted, whatever the arguments.
const REFUSED: &[(&str, libc::c_long)] = calls! {
    SYS_shmget SYS_shmat SYS_shmctl SYS_msgget SYS_msgsnd SYS_msgrcv SYS_msgctl SYS_semget SYS_semop
    SYS_semtimedop SYS_semctl SYS_mq_open SYS_mq_unlink SYS_mq_timedsend SYS_mq_timedreceive SYS_mq_notify
    SYS_mq_getsetattr SYS_process_madvise SYS_process_mrelease SYS_kcmp SYS_memfd_secret
};

/// Calls that a program is told the kernel does not have.
const ABSENT: &[(&str, libc::c_long)] = calls! { SYS_clone3 SYS_openat2 SYS_memfd_create };

fn numbers(calls: &[(&str, libc::c_long)]) -> String {
    let each = calls.iter().map(|(name, number)| format!("{:?}:{number}", name.trim_start_matches("SYS_")));
    format!("{{{}}}", each.collect::<Vec<_>>().join(","))
}

/// The last attempts, by whether the sandbox has a network.
const ONLINE: &[(&str, &str)] = &[("name lookup", "ok"), ("fetch loopback", "ok")];

fn is_supported() -> bool {
    let support = probe();
    let whole = support.landlock_abi.is_some_and(|abi| abi >= 6) && support.seccomp && support.capabilities;
    if !whole {
        eprintln!("skipped: this kernel cannot confine fully: {:?}", support.notes);
    }
    whole
}

/// Answers every request with 204, until the test ends.
fn listener() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
        }
    });
    port
}

fn confined(bun: &Path, script: &Path, workspace: &Path, network: bool) -> Spec {
    let mut spec = Spec::new(bun, workspace);
    spec.args = ["--no-env-file", "--config=/dev/null", "--no-install"].map(Into::into).into();
    spec.args.push(script.into());
    let folder = workspace.to_str().unwrap();
    let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", folder), ("TMPDIR", folder)];
    spec.env = env.map(|(name, value)| (name.into(), value.into())).into();
    // Bun looks at the folder of what it runs.
    let host = script.parent().unwrap().to_owned();
    spec.sandbox = Some(Sandbox { read: vec![host], write: vec![workspace.to_owned()], network });
    spec
}

#[tokio::test]
async fn a_hostile_tool_gets_nothing_and_an_honest_one_works() {
    let Some(bun) = bun() else { return };
    if !is_supported() {
        return;
    }
    let spawner = Spawner::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("key"), "secret").unwrap();
    std::fs::set_permissions(at("key"), PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::create_dir(at("workspace")).unwrap();
    std::fs::create_dir(at("host")).unwrap();
    std::fs::write(at("host/attacks.js"), SCRIPT).unwrap();
    let (script, workspace) = (at("host/attacks.js"), at("workspace"));

    let wait = at("workspace/wait.js");
    std::fs::write(&wait, "console.log('ready'); await Bun.sleep(1e8)").unwrap();
    let mut sibling = spawner.spawn(confined(&bun, &wait, &workspace, true)).await.unwrap();
    assert_eq!(line(&mut sibling).await, "ready");

    let (port, pid) = (listener(), sibling.pid());
    for network in [true, false] {
        let task = format!(
            r#"{{"parent":{},"sibling":{pid},"secret":{:?},"outside":{:?},"workspace":{workspace:?},"port":{port},
            "calls":{},"refused":{},"absent":{}}}"#,
            std::process::id(),
            at("key"),
            at("outside"),
            numbers(&[CALLS, OLD_CALLS].concat()),
            numbers(REFUSED),
            numbers(ABSENT),
        );
        let mut spec = confined(&bun, &script, &workspace, network);
        spec.args.push(task.into());
        let (out, err, exit) = run(&spawner, spec).await;
        let said: Vec<_> = out.lines().filter_map(|line| line.split_once(": ")).collect();
        assert!(exit.success() && said.len() == EXPECTED.len() + ONLINE.len(), "{exit}\n{out}\n{err}");
        let (common, online) = said.split_at(EXPECTED.len());
        let wrong: Vec<_> = common.iter().zip(EXPECTED).filter(|(said, expected)| said != expected).collect();
        assert!(wrong.is_empty(), "said, expected: {wrong:#?}");
        match network {
            true => assert_eq!(online, ONLINE),
            false => assert_ne!(online[1], ONLINE[1], "reached the network"),
        }
    }
    sibling.kill();
    sibling.wait().await;
}

/// A confined tool cannot leave its session, so everything it started is found.
#[tokio::test]
async fn nothing_escapes_a_confined_child() {
    if !is_supported() {
        return;
    }
    let spawner = Spawner::start().unwrap();
    for script in [
        "setsid sleep 1000 & echo $!",
        "(setsid sh -c 'echo $$; exec sleep 1000' &) ",
        "timeout 2000 true; (timeout 2000 setsid sh -c 'echo $$; exec sleep 1000' &)",
    ] {
        let mut spec = shell(&format!("exec 2>/dev/null; {script}; sleep 1000"));
        spec.sandbox = Some(Sandbox::default());
        let mut child = spawner.spawn(spec).await.unwrap();
        let stray = line(&mut child).await;
        child.kill();
        child.wait().await;
        crate::eventually(script, || crate::is_gone(&stray)).await;
    }
}

#[tokio::test]
async fn all_of_it_as_an_ordinary_user() {
    let me = std::fs::read_to_string("/proc/self/status").unwrap();
    if !me.contains("\nUid:\t0\t0") {
        return;
    }
    let setpriv = Path::new("/usr/bin/setpriv");
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    if !setpriv.exists() {
        eprintln!("skipped: no setpriv, so the attacks were tried as root only");
        return;
    }
    let mut spec = Spec::new(setpriv, folder.path());
    let test = folder.path().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &test).unwrap();
    spec.args = ["--reuid=65534", "--regid=65534", "--clear-groups"].map(Into::into).into();
    spec.args.push(test.into());
    let others =
        ["--nocapture", "--test-threads=1", "--skip=ordinary_user", "--skip=memory", "--skip=an_owner"];
    spec.args.extend(others.map(Into::into));
    spec.limits.memory = u64::MAX;
    spec.env = [("PATH".into(), "/usr/bin:/bin".into()), ("TMPDIR".into(), folder.path().into())].into();
    if let Some(bun) = bun() {
        spec.env.insert("BEEUNI_BUN".into(), bun.into());
    }
    let (out, err, exit) = run(&Spawner::start().unwrap(), spec).await;
    assert!(exit.success(), "{exit}\n{out}\n{err}");
    eprint!("{err}");
}

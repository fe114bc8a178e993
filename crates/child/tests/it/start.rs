//! What a child is given, and what is said when it cannot start.

use crate::{run, shell};
use beeuni_child::{SpawnError, Spawner, Spec, Stdin};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn gets_only_what_it_was_given() {
    let spawner = Spawner::start().unwrap();
    let _open_in_the_parent = std::fs::File::open("/dev/null").unwrap();
    let check = async |script: &str, expected: &str| {
        let mut spec = shell(script);
        spec.env.insert("GREETING".into(), "hello".into());
        spec.cwd = PathBuf::from("/usr");
        let (out, err, exit) = run(&spawner, spec).await;
        assert_eq!((out.as_str(), err.as_str(), exit.success()), (expected, "", true), "{script}");
    };
    check("tr '\\0' '\\n' </proc/$$/environ", "GREETING=hello\nPATH=/usr/local/bin:/usr/bin:/bin\n").await;
    check("pwd", "/usr\n").await;
    check("cat; echo end", "end\n").await;
    // The shell reads the folder itself, through descriptor 3.
    check("cd /proc/$$/fd && echo [0-9]*", "0 1 2 3\n").await;
    check("ulimit -c; ulimit -n", "0\n1024\n").await;
    check("grep NoNewPrivs /proc/$$/status", "NoNewPrivs:\t1\n").await;
    check("cat /proc/$$/oom_score_adj", "500\n").await;
    // Field 5 is the group and field 6 the session.
    check("cut -d' ' -f5,6 /proc/$$/stat | sed \"s/$$/me/g\"", "me me\n").await;
    check("exec grep SigBlk /proc/self/status", "SigBlk:\t0000000000000000\n").await;
}

#[tokio::test]
async fn talks_on_a_channel_and_reads_its_input() {
    let spawner = Spawner::start().unwrap();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut ours = tokio::net::UnixStream::from_std(ours).unwrap();
    let mut spec = shell("read word; read more <&3; echo \"$word $more\" >&3");
    spec.stdin = Stdin::Piped;
    spec.channel = Some(OwnedFd::from(theirs));
    let mut child = spawner.spawn(spec).await.unwrap();
    child.stdin.take().unwrap().write_all(b"one\n").await.unwrap();
    ours.write_all(b"two\n").await.unwrap();
    let mut answer = String::new();
    ours.read_to_string(&mut answer).await.unwrap();
    assert_eq!((answer.as_str(), child.wait().await.success()), ("one two\n", true));
}

#[tokio::test]
async fn says_which_program_and_why() {
    let spawner = Spawner::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, mode: u32, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    };
    let lost = file("lost", 0o755, "#!/no/such/interpreter\n");
    let text = file("text", 0o644, "hello");
    let junk = file("junk", 0o755, "\u{1}\u{2}");
    let check = async |change: &dyn Fn(&mut Spec), expected: &str| {
        let mut spec = shell("true");
        change(&mut spec);
        let error = spawner.spawn(spec).await.unwrap_err().to_string();
        assert_eq!(error.replace(folder.path().to_str().unwrap(), "DIR"), expected);
    };
    check(&|s| s.program = "/no/such".into(), "cannot start /no/such: there is no such program").await;
    check(&|s| s.program = "no-such".into(), "cannot start no-such: there is no such program").await;
    check(&|s| s.program = text.clone(), "cannot start DIR/text: it is not a program this user may run")
        .await;
    check(&|s| s.program = junk.clone(), "cannot start DIR/junk: it is not a program this user may run")
        .await;
    check(&|s| s.program = "/usr".into(), "cannot start /usr: it is not a program this user may run").await;
    check(&|s| s.program = lost.clone(), "cannot start DIR/lost: the interpreter it names is missing").await;
    check(&|s| s.cwd = "/no/dir".into(), "cannot start /bin/sh: /no/dir is not a folder it can work in")
        .await;
    check(&|s| s.cwd = text.clone(), "cannot start /bin/sh: DIR/text is not a folder it can work in").await;
    check(&|s| s.args.push("a\0b".into()), "cannot start /bin/sh: argument 3 holds a zero byte").await;
    check(
        &|s| drop(s.env.insert("KEY".into(), "secret\0".into())),
        "cannot start /bin/sh: environment variable \"KEY\" holds a zero byte",
    )
    .await;
    check(
        &|s| drop(s.env.insert("A=B".into(), "".into())),
        "cannot start /bin/sh: environment variable \"A=B\" has a name that is empty or holds `=`",
    )
    .await;
    check(
        &|s| s.args.push("x".repeat(1 << 20).into()),
        "cannot start /bin/sh: the program could not be executed: Argument list too long (os error 7)",
    )
    .await;
}

#[tokio::test]
async fn a_bare_name_is_looked_up_in_the_childs_own_path() {
    let spawner = Spawner::start().unwrap();
    let mut spec = shell("echo $0");
    spec.program = "sh".into();
    assert_eq!(run(&spawner, spec).await.0, "sh\n");
    let mut spec = shell("true");
    (spec.program, spec.env) = ("sh".into(), Default::default());
    assert!(matches!(spawner.spawn(spec).await, Err(SpawnError::Missing { .. })));
}

#[test]
fn needs_a_runtime() {
    let error = Spawner::start().unwrap_err();
    assert_eq!(error.to_string(), "the spawner must be started inside a tokio runtime");
}

//! The file tools on a real folder.

use std::os::unix::fs::PermissionsExt as _;

use beeuni_protocol::event::ToolStatus;

use crate::stage::{Plan, Stage};

async fn stage() -> Stage {
    Stage::with(Plan { unattended: true, ..Plan::default() }).await
}

#[tokio::test]
async fn reading() {
    let stage = stage().await;
    stage.write("a.txt", "one\ntwo\r\nthree");
    stage.write("empty", "");
    stage.write("image.png", b"\x89PNG\0\0");
    stage.write("long.txt", format!("{}\nend\n", "ü".repeat(3000)));
    stage.write("many.txt", (1..=5000).map(|n| format!("{n}\n")).collect::<String>());
    stage.write("wide.txt", format!("{}\n", "x".repeat(1900)).repeat(100));
    stage.write("src/Config.ts", "");
    stage.write("latin.txt", b"caf\xe9\n");
    let check = async |arguments: &str, status: ToolStatus, words: &str| {
        assert_eq!(stage.call("read", arguments).await, (status, words.to_owned()), "{arguments}");
    };
    use ToolStatus::{Error, Ok};
    check(r#"{"path":"a.txt"}"#, Ok, "     1\tone\n     2\ttwo\n     3\tthree\n").await;
    check(
        r#"{"filePath":"a.txt","limit":1}"#,
        Ok,
        "     1\tone\n\n(the file goes on; read it with offset 2)",
    )
    .await;
    check(r#"{"path":"a.txt","offset":3}"#, Ok, "     3\tthree\n").await;
    check(r#"{"path":"a.txt","offset":4}"#, Error, "a.txt has 3 lines, and offset is 4").await;
    check(r#"{"path":"a.txt","limit":0}"#, Error, "limit is 0 and must be at least 1").await;
    check(r#"{"path":"empty"}"#, Ok, "(empty is empty)").await;
    check(r#"{"path":"latin.txt"}"#, Ok, "     1\tcaf\u{fffd}\n").await;
    check(
        r#"{"path":"image.png"}"#,
        Error,
        "image.png is a binary file of 6 bytes; look at it with bash if you must",
    )
    .await;
    check(r#"{"path":"src"}"#, Error, "src is a folder; use list to see what is in it").await;
    check(r#"{"path":"src/config.tsx"}"#, Error, "src/config.tsx does not exist; there is src/Config.ts")
        .await;
    check(r#"{"path":"nothing/like/it"}"#, Error, "nothing/like/it does not exist").await;
    check(r#"{}"#, Error, "the arguments do not fit read: missing field `path`").await;
    check(
        r#"{"path":"a.txt","offset":"2"}"#,
        Error,
        r#"the arguments do not fit read: invalid type: string "2", expected u64"#,
    )
    .await;
    let cut = format!("     1\t{}… (cut)\n     2\tend\n", "ü".repeat(2000));
    check(r#"{"path":"long.txt"}"#, Ok, &cut).await;
    let (_, words) = stage.call("read", r#"{"path":"many.txt"}"#).await;
    assert!(words.ends_with("  1900\t1900\n\n(the file goes on; read it with offset 1901)"));
    // What was read is never saved a second time: it stays below the bounds by itself.
    let (_, words) = stage.call("read", r#"{"path":"wide.txt"}"#).await;
    assert!(
        words.len() < 50_000 && words.ends_with("(the file goes on; read it with offset 26)"),
        "{}",
        words.len()
    );
}

/// A pipe has no end, so opening one would wait for ever.
#[tokio::test]
async fn pipes_are_not_opened() {
    let stage = stage().await;
    let (status, _) = stage.call("bash", r#"{"command":"mkfifo p"}"#).await;
    assert_eq!(status, ToolStatus::Ok);
    for (tool, arguments) in [
        ("read", r#"{"path":"p"}"#),
        ("edit", r#"{"path":"p","old_string":"a","new_string":"b"}"#),
        ("write", r#"{"path":"p","content":"x"}"#),
    ] {
        let words = (ToolStatus::Error, "p is a device or a pipe, no file".to_owned());
        assert_eq!(stage.call(tool, arguments).await, words);
    }
    let (status, words) = stage.call("grep", r#"{"pattern":"x","path":"p"}"#).await;
    assert_eq!((status, words.as_str()), (ToolStatus::Error, "p is no folder and no file"));
    let (status, words) = stage.call("grep", r#"{"pattern":"x"}"#).await;
    assert_eq!((status, words.as_str()), (ToolStatus::Ok, "No matches found"));
}

#[tokio::test]
async fn writing_and_editing() {
    let stage = stage().await;
    let check = async |tool: &str, arguments: &str, status: ToolStatus, words: &str| {
        assert_eq!(stage.call(tool, arguments).await, (status, words.to_owned()), "{arguments}");
    };
    use ToolStatus::{Error, Ok};
    check("write", r#"{"path":"new/deep/f.sh","content":"echo ü\n"}"#, Ok, "Created new/deep/f.sh (8 bytes)")
        .await;
    std::fs::set_permissions(stage.at("new/deep/f.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    check(
        "write",
        r#"{"path":"new/deep/f.sh","content":"echo a a\n"}"#,
        Ok,
        "Replaced new/deep/f.sh (9 bytes)",
    )
    .await;
    let mode = stage.at("new/deep/f.sh").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    check("write", r#"{"path":"new","content":""}"#, Error, "new is a folder").await;
    let edit = r#"{"path":"new/deep/f.sh","old_string":"a","new_string":"b"}"#;
    check(
        "edit",
        edit,
        Error,
        "old_string stands 2 times in new/deep/f.sh (lines 1, 1); give more of the text around it, or set replace_all",
    )
    .await;
    let all = r#"{"path":"new/deep/f.sh","oldString":"a","newString":"b","replaceAll":true}"#;
    check("edit", all, Ok, "Edited new/deep/f.sh (2 places)").await;
    assert_eq!(std::fs::read_to_string(stage.at("new/deep/f.sh")).unwrap(), "echo b b\n");
    assert_eq!(stage.at("new/deep").read_dir().unwrap().count(), 1, "no temporary file stays");
    check(
        "edit",
        r#"{"path":"f","old_string":"","new_string":"x"}"#,
        Error,
        "old_string is empty; use write to make a file",
    )
    .await;
    check(
        "edit",
        r#"{"path":"f","old_string":"x","new_string":"x"}"#,
        Error,
        "old_string and new_string are the same",
    )
    .await;
    check("edit", r#"{"path":"f","old_string":"x","new_string":"y"}"#, Error, "f does not exist").await;
    stage.write("bin", b"\xff\xfe");
    check(
        "edit",
        r#"{"path":"bin","old_string":"x","new_string":"y"}"#,
        Error,
        "bin is no UTF-8 text; change it with bash",
    )
    .await;
    std::os::unix::fs::symlink(stage.at("new/deep/f.sh"), stage.at("link")).unwrap();
    check(
        "edit",
        r#"{"path":"link","old_string":"echo","new_string":"cat"}"#,
        Ok,
        "Edited new/deep/f.sh (1 place)",
    )
    .await;
    assert!(stage.at("link").is_symlink());
}

/// F8: edits of one message lose nothing.
#[tokio::test]
async fn parallel_edits() {
    let stage = stage().await;
    stage.write("f", (0..20).map(|n| format!("<{n}>\n")).collect::<String>());
    let edit =
        |n: usize| format!("edit {{\"path\":\"f\",\"old_string\":\"<{n}>\",\"new_string\":\"[{n}]\"}}");
    let calls: Vec<String> = (0..20).map(edit).collect();
    let lines = stage.turn("s1", &format!("CALL {}\nSAY ok", calls.join("\n+ "))).await;
    assert_eq!(lines.matches("end edit ok").count(), 20, "{lines}");
    let expected: String = (0..20).map(|n| format!("[{n}]\n")).collect();
    assert_eq!(std::fs::read_to_string(stage.at("f")).unwrap(), expected);
}

#[tokio::test]
async fn searching() {
    let stage = stage().await;
    for (path, text) in [
        ("src/a.ts", "let needle = 1;\r\nlet other = 2;\nneedle()\n"),
        ("src/deep/b.js", "needle\n"),
        (".github/ci.yml", "needle: x\n"),
        ("node_modules/x/i.js", "needle\n"),
        (".git/config", "needle\n"),
        (".gitignore", "node_modules\n"),
        ("bin.dat", "needle\0\n"),
    ] {
        stage.write(path, text);
    }
    stage.write("long.txt", format!("{}needle\n", "x".repeat(600)));
    std::os::unix::fs::symlink("/etc", stage.at("src/link")).unwrap();
    let check = async |tool: &str, arguments: &str, status: ToolStatus, words: &str| {
        assert_eq!(stage.call(tool, arguments).await, (status, words.to_owned()), "{arguments}");
    };
    use ToolStatus::{Error, Ok};
    check("list", "{}", Ok, ".git/\n.github/\n.gitignore\nbin.dat\nlong.txt\nnode_modules/\nsrc/").await;
    check("list", r#"{"path":"src"}"#, Ok, "a.ts\ndeep/\nlink/").await;
    check("list", r#"{"path":"gone"}"#, Error, "gone does not exist").await;
    check("list", r#"{"path":"bin.dat"}"#, Error, "bin.dat is no folder; use read").await;
    check("glob", r#"{"pattern":"*.{ts,js}"}"#, Ok, "src/a.ts\nsrc/deep/b.js").await;
    check("glob", r#"{"pattern":"src/*"}"#, Ok, "src/a.ts").await;
    check("glob", r#"{"pattern":"**","path":"src/deep"}"#, Ok, "src/deep/b.js").await;
    check("glob", r#"{"pattern":"*.rs"}"#, Ok, "No files found").await;
    check(
        "glob",
        r#"{"pattern":"a[","path":"src"}"#,
        Error,
        "the pattern does not read: unclosed character class; missing ']'",
    )
    .await;
    check(
        "grep",
        r#"{"pattern":"^needle"}"#,
        Ok,
        ".github/ci.yml:1: needle: x\nsrc/a.ts:3: needle()\nsrc/deep/b.js:1: needle",
    )
    .await;
    check(
        "grep",
        r#"{"pattern":"needle","path":"src","include":"*.ts"}"#,
        Ok,
        "src/a.ts:1: let needle = 1;\nsrc/a.ts:3: needle()",
    )
    .await;
    check("grep", r#"{"pattern":"other","path":"src/a.ts"}"#, Ok, "src/a.ts:2: let other = 2;").await;
    check("grep", r#"{"pattern":"root:"}"#, Ok, "No matches found").await;
    let cut = format!("long.txt:1: {}… (cut)", "x".repeat(500));
    check("grep", r#"{"pattern":"needle","include":"long.*"}"#, Ok, &cut).await;
    let (status, words) = stage.call("grep", r#"{"pattern":"("}"#).await;
    assert!(status == Error && words.starts_with("the pattern does not read: regex parse error"), "{words}");
    stage.write("many.txt", "x\n".repeat(1000));
    let (_, words) = stage.call("grep", r#"{"pattern":"^x$"}"#).await;
    assert_eq!(words.lines().count(), 301);
    assert!(words.ends_with("(there are more than 300; narrow the pattern, path or include)"));
}

#[tokio::test]
async fn todos() {
    let stage = stage().await;
    let list = r#"{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress","priority":"high"},{"content":"c","status":"pending"}]}"#;
    let words = (ToolStatus::Ok, "2 of 3 to do\n[x] a\n[>] b\n[ ] c".to_owned());
    assert_eq!(stage.call("todowrite", list).await, words);
    let (status, words) = stage.call("todowrite", r#"{"todos":[{"content":"a","status":"done"}]}"#).await;
    assert!(status == ToolStatus::Error && words.contains("unknown variant `done`"), "{words}");
}

//! The TypeScript side by its own tests and types, and both sides' numbers compared.

use std::path::Path;
use std::process::Command;

use beeuni_protocol::host::Kind;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn host_ts_passes_its_own_tests() {
    let Some(bun) = beeuni_testkit::bun() else { return eprintln!("skipped: no Bun") };
    run(Command::new(bun).args(["test", "host.test.ts"]).current_dir(folder().join("host")));
}

#[test]
fn host_ts_is_strict_typescript() {
    let compiler = folder().join("../../node_modules/.bin/tsc");
    if !compiler.exists() {
        return eprintln!("skipped: no TypeScript; run `npm ci` at the root");
    }
    run(Command::new(compiler).args(["-p", "host"]).current_dir(folder()));
}

#[test]
fn both_sides_have_the_same_numbers() {
    let source = include_str!("../../host/host.ts");
    for kind in Kind::ALL {
        let pair = format!(" {kind:?}: {},", kind as u8);
        assert!(source.contains(&pair), "{pair}");
    }
}

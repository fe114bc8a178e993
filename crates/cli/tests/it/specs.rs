//! The acceptance cases of `specs/`. `BEEUNI_UPDATE_SPECS=1` rewrites what differs.

use std::path::Path;

use beeuni_testkit::spec::{cases, run};

#[test]
fn every_case_reads_as_it_should() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs");
    let programs = Path::new(crate::BEEUNI).parent().unwrap();
    let update = std::env::var_os("BEEUNI_UPDATE_SPECS").is_some();
    let cases = cases(&root);
    assert!(!cases.is_empty(), "there are no cases in {}", root.display());
    let failures: Vec<String> =
        cases.iter().filter_map(|case| Some(run(case, programs, update).err()?.to_string())).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

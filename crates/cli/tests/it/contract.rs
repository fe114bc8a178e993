//! `docs/contract.md` names for each rule what proves it, and nothing that is not there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../../../../docs/contract.md");

/// Each section of the contract and how many rules it has.
const SECTIONS: [(&str, usize); 12] = [
    ("K", 3),
    ("L", 7),
    ("R", 4),
    ("S", 3),
    ("E", 7),
    ("V", 7),
    ("M", 8),
    ("A", 6),
    ("C", 2),
    ("H", 3),
    ("P", 3),
    ("W", 3),
];

/// The rows as `(rule, proof)`.
fn rows() -> Vec<(&'static str, &'static str)> {
    let rows = PAGE.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.splitn(3, " | ");
        Some((cells.next()?, cells.nth(1)?))
    });
    rows.skip(1).collect()
}

#[test]
fn every_rule_has_one_row() {
    let rules = SECTIONS.iter().flat_map(|(letter, count)| (1..=*count).map(move |n| format!("{letter}{n}")));
    let named: Vec<&str> = rows().into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(named, rules.collect::<Vec<_>>());
}

#[test]
fn every_named_proof_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (rule, proof) in rows() {
        let named: BTreeSet<&str> = proof.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty() || proof == "not built yet", "{rule}: {proof}");
        for name in named {
            let (file, test) = name.split_once("::").unwrap_or((name, ""));
            let text =
                fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{rule}: {file}: {error}"));
            if test.is_empty() {
                let covers =
                    text.lines().next().and_then(|line| line.strip_prefix("# covers: ")).unwrap_or("");
                assert!(
                    covers.split(' ').any(|id| id == rule),
                    "{rule}: {file} does not say that it covers it"
                );
            } else {
                let function = text.split_once(&format!("fn {test}("));
                let is_test = function.is_some_and(|(before, _)| {
                    before.rsplit("\n\n").next().is_some_and(|head| head.contains("test"))
                });
                assert!(is_test, "{rule}: {file} has no test {test}");
            }
        }
    }
}

//! Ejecting changes one line and nothing else.

use std::str::FromStr;

use beeuni_manifest::{BEEUNI_TOOLS, EJECTED_FROM, EditError, Ejection, Original, eject};
use proptest::prelude::*;

use crate::edit_corpus::CORPUS;

fn one(before: &str, name: &str, force: bool) -> Result<Ejection, EditError> {
    eject(&[Original { file: "beeuni.yaml", bytes: before.as_bytes() }], name, force)
}

/// The lines that differ, with what is not seen in them spelled out.
fn lines_changed(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let shown =
        |sign: &str, lines: &[&str]| lines.iter().map(|line| format!("{sign}{line}")).collect::<String>();
    let (gone, come) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let gone = shown("-", gone);
    let gap = if gone.is_empty() || gone.ends_with('\n') { "" } else { "\n" };
    format!("{gone}{gap}{}", shown("+", come))
}

fn outcome(before: &str, name: &str) -> String {
    match one(before, name, false) {
        Ok(ejection) => lines_changed(before, std::str::from_utf8(&ejection.bytes).unwrap()),
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn hand_made_files() {
    let wrong: Vec<String> = CORPUS
        .iter()
        .map(|(title, before, name, expected)| (title, outcome(before, name), expected))
        .filter(|(_, actual, expected)| actual != *expected)
        .map(|(title, actual, expected)| format!("{title}\n{actual:?}\n{expected:?}\n"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_file_that_lists_it_is_changed() {
    let check = |root: &str, imported: &str, file: &str| {
        let originals = [
            Original { file: "beeuni.yaml", bytes: root.as_bytes() },
            Original { file: "a.yaml", bytes: b"agents: {}\n" },
            Original { file: "b.yaml", bytes: imported.as_bytes() },
        ];
        let ejection = eject(&originals, "show", false).unwrap();
        assert_eq!((ejection.file.as_str(), ejection.module.as_str()), (file, "tools/show.ts"));
        ejection.listed
    };
    assert!(check("tools:\n  memory: beeuni:memory\n", "tools:\n  show: beeuni:show\n", "b.yaml").is_empty());
    assert!(check("tools:\n", "tools:\n  memory: beeuni:memory\n", "beeuni.yaml").is_empty());
    assert!(check("imports: [a.yaml, b.yaml]\n", "tools:\n  memory: beeuni:memory\n", "b.yaml").is_empty());
    let listed = check("imports: [a.yaml, b.yaml]\n", "agents: {}\n", "beeuni.yaml");
    assert_eq!(listed, ["web_search", "image_search", "scrape_webpage", "memory"]);
}

#[test]
fn a_fault_in_any_file_stops_it() {
    let originals = [
        Original { file: "beeuni.yaml", bytes: b"tools:\n  show: beeuni:show\n" },
        Original { file: "b.yaml", bytes: b"a: \xff\n" },
    ];
    let error = eject(&originals, "show", false).unwrap_err().to_string();
    assert_eq!(error, "b.yaml:1:4: here stands a byte that is not UTF-8. Correct it and eject again");
    assert_eq!(eject(&[], "show", false), Err(EditError::NoManifest));
}

#[test]
fn force_replaces_another_module() {
    let before = "tools:\n  show: lib/show.ts # ours\n";
    assert!(matches!(one(before, "show", false), Err(EditError::AnotherModule { .. })));
    let after = one(before, "show", true).unwrap().bytes;
    assert_eq!(after, b"tools:\n  show: tools/show.ts  # ejected from beeuni:show\n");
}

/// A manifest of the kind that people write, in any of the styles that they write it in.
fn manifest() -> impl Strategy<Value = String> {
    let entry =
        (0..5usize, 0..3usize, prop::sample::select(vec!["", "  # c", " # a: {b} 'c'", "\t# t", "  "]));
    let entries = prop::collection::vec(entry, 0..5);
    (entries, 1..5usize, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), 0..4usize).prop_map(
        |(entries, indent, crlf, flow, mark, newline, rest)| {
            let mut seen = Vec::new();
            let (mut block, mut inline) = (String::new(), Vec::new());
            for (tool, quote, comment) in entries {
                if seen.contains(&tool) {
                    continue;
                }
                seen.push(tool);
                let (name, quote) = (BEEUNI_TOOLS[tool], ["", "'", "\""][quote]);
                block.push_str(&format!(
                    "{}{name}:  {quote}beeuni:{name}{quote}{comment}\n",
                    " ".repeat(indent)
                ));
                inline.push(format!("{quote}{name}{quote}: {quote}beeuni:{name}{quote}"));
            }
            let tools = match flow {
                true => format!("tools: {{ {} }}  # inline\n", inline.join(" , ")),
                false => format!("tools:  # block\n{block}"),
            };
            let other = "# about agents\nagents:\n  beeuni: {tools: all}   # every\n\n";
            let text = "x-text: |\n  tools:\n    show: beeuni:show # decoy\n\n";
            let mut all = match rest {
                0 => format!("{other}{tools}{text}"),
                1 => format!("{tools}\n# last\n{other}"),
                2 => format!("{text}{other}"),
                _ => format!("---\n{other}{tools}...\n"),
            };
            if !newline {
                all.truncate(all.trim_end().len());
            }
            if crlf {
                all = all.replace('\n', "\r\n");
            }
            if mark { format!("\u{feff}{all}") } else { all }
        },
    )
}

/// The tools by another parser; `None` for what it does not read.
fn tools_by_oracle(text: &str) -> Option<Vec<(String, String)>> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let tools = yaml_edit::Document::from_str(&text).ok()?.as_mapping()?.get_mapping("tools")?;
    BEEUNI_TOOLS
        .iter()
        .filter_map(|name| tools.get(*name).map(|value| (*name, value)))
        .map(|(name, value)| Some((name.to_owned(), value.as_scalar()?.as_string())))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn one_line_changes_in_any_manifest(before in manifest(), tool in 0..5usize) {
        let name = BEEUNI_TOOLS[tool];
        let ejection = one(&before, name, false).unwrap();
        let after = String::from_utf8(ejection.bytes).unwrap();
        let ours = format!("{EJECTED_FROM}{name}");
        let old: Vec<&str> = before.lines().collect();
        let new: Vec<&str> = after.lines().collect();
        let changed = new.iter().position(|line| line.ends_with(&format!("  {ours}"))).unwrap();
        prop_assert_eq!(after.matches(&ours).count(), 1);
        for comment in ["# about agents", "# every", "# last", "# block", "    show: beeuni:show # decoy"] {
            prop_assert_eq!(before.contains(comment), after.contains(comment));
        }
        if ejection.listed.is_empty() {
            // Only the line itself, and above it the bare key that loses its `{}`.
            let replaced = new.len() == old.len();
            for (at, line) in old.iter().enumerate() {
                let now = new[if replaced || at < changed { at } else { at + 1 }];
                let shown = |line: &str| line.trim_start_matches('\u{feff}').to_owned();
                let emptied = shown(line).starts_with("tools: {  }") && shown(now).starts_with("tools:");
                prop_assert!(*line == now || emptied || (replaced && at == changed), "{line:?} became {now:?}");
            }
        } else {
            prop_assert_eq!(ejection.listed.len(), 4);
        }
        if before.contains('\r') {
            prop_assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
        }
        prop_assert_eq!(before.starts_with('\u{feff}'), after.starts_with('\u{feff}'));
        if let Some(tools) = tools_by_oracle(&after) {
            for (tool, value) in tools {
                let expected = if tool == name { ejection.module.clone() } else { format!("beeuni:{tool}") };
                prop_assert_eq!(value, expected);
            }
        }
        let again = one(&after, name, false).unwrap();
        prop_assert_eq!(String::from_utf8(again.bytes).unwrap(), after, "ejecting twice is ejecting once");
    }
}

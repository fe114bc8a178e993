//! Who may use which tool (A1–A6).

use beeuni_manifest::Harness::{Experimental, Standard};
use beeuni_manifest::{Harness, Verdict};

use super::judging::judge;

/// `tools` of the agent `sub` in a session of `lead`; each tool is expected on the standard, then the experimental harness.
#[track_caller]
fn check(lead: &str, own: &str, agent: &str, expected: &[(&str, bool, bool)]) {
    let judged = judge(&format!(
        "default_agent: lead\nagents:\n  lead: {{tools: {lead}}}\n  sub: {{tools: {own}}}\n  off: {{enabled: false}}\n"
    ));
    let may = |harness: Harness, tool: &str| {
        judged.manifest.may_use(harness, "lead", agent, tool) == Verdict::Visible
    };
    for (tool, standard, experimental) in expected {
        assert_eq!(
            (may(Standard, tool), may(Experimental, tool)),
            (*standard, *experimental),
            "{lead} {own} {agent} {tool}"
        );
    }
}

#[test]
fn every_form() {
    check("all", "all", "lead", &[("bash", true, true), ("task", true, true), ("__proto__", true, true)]);
    check("none", "all", "lead", &[("bash", false, false)]);
    check("[]", "all", "lead", &[("bash", false, false)]);
    check("['*', read]", "all", "lead", &[("lookup_order", true, true)]);
    check(
        "[edit]",
        "all",
        "lead",
        &[("edit", true, true), ("write", true, false), ("apply_patch", true, false)],
    );
    check(
        "{exclude: [write]}",
        "all",
        "lead",
        &[("write", false, false), ("edit", false, true), ("bash", true, true)],
    );
    check("{exclude: [bash]}", "all", "lead", &[("bash", false, false), ("pty_spawn", false, true)]);
    check("[bash]", "all", "lead", &[("pty_spawn", true, false), ("constructor", false, false)]);
    check("{task: false}", "all", "lead", &[("task", false, false), ("read", true, true)]);
    check("{task: true, '*': false}", "all", "lead", &[("task", true, true), ("read", false, false)]);
    check("all", "all", "off", &[("read", false, false)]);
    check("all", "all", "gone", &[("read", false, false)]);
}

#[test]
fn subagents() {
    let own = [
        ("lookup_order", true, true),
        ("crm_note", true, false),
        ("task", false, false),
        ("question", false, false),
    ];
    check("[task, read, lookup_order]", "[lookup_order, crm_note]", "sub", &own);
    check("all", "all", "sub", &[("task", false, false), ("question", true, false), ("read", true, true)]);
}

#[test]
fn connectors_are_granted_by_name() {
    let judged = judge(
        "connectors: {crm: {url: 'https://example.com'}}\ndefault_agent: one\nagents:\n  one: {connectors: [crm], tools: none}\n  \
         all: {connectors: all}\n  none: {}\n  off: {connectors: all, enabled: false}\n",
    );
    for (agent, connector, expected) in [
        ("one", "crm", true),
        ("all", "crm", true),
        ("all", "other", false),
        ("none", "crm", false),
        ("off", "crm", false),
        ("gone", "crm", false),
    ] {
        let verdict = judged.manifest.may_use_connector(agent, connector);
        assert_eq!(verdict == Verdict::Visible, expected, "{agent} {connector}");
    }
}

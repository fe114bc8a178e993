//! One manifest in, its findings out.

use beeuni_manifest::{Context, Judged, MemoryFiles, read};

pub fn files() -> MemoryFiles {
    let names = ["a", "b", "no", "web_search", "show", "lookup_order", "crm_note", "weather_now"];
    names
        .iter()
        .fold(MemoryFiles::new(), |files, name| files.with(&format!("tools/{name}.ts"), "export default {}"))
}

pub fn judge(yaml: &str) -> Judged {
    read(&files().with("beeuni.yaml", yaml), "beeuni.yaml", &Context::default())
}

pub fn lines(judged: &Judged) -> Vec<String> {
    let line = |f: &beeuni_manifest::Finding| {
        format!(
            "{} {}:{}:{} {}: {}",
            f.severity.as_str(),
            f.place.file,
            f.place.line,
            f.place.column,
            f.path,
            f.message
        )
    };
    judged.findings.iter().map(line).collect()
}

/// Each expected line is `severity line:column path: message`; a message may end in `…`.
#[track_caller]
fn check(yaml: &str, expected: &[&str]) {
    check_in(files(), yaml, expected);
}

#[track_caller]
fn check_in(files: MemoryFiles, yaml: &str, expected: &[&str]) {
    let judged = read(&files.with("beeuni.yaml", yaml), "beeuni.yaml", &Context::default());
    let found: Vec<String> = lines(&judged).iter().map(|line| line.replace("beeuni.yaml:", "")).collect();
    let fits = |(found, expected): (&String, &&str)| match expected.strip_suffix('…') {
        Some(start) => found.starts_with(start),
        None => found == expected,
    };
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(fits),
        "{yaml}\nfound    {found:#?}\nexpected {expected:#?}"
    );
}

const NONE: &str = "Sessions of this project get no Beeuni tool (web_search, image_search, scrape_webpage, memory, show). Add `<name>: beeuni:<name>` to keep one.";

#[test]
fn what_tools_may_say() {
    check(
        "tools:\n  web_search: beeuni:image_search\n",
        &[
            "error 2:15 tools.web_search: must be `beeuni:web_search` (the Beeuni tool) or a repo-relative path to a .ts or .js module (e.g. `tools/web_search.ts`) that replaces it.",
        ],
    );
    check(
        "tools: {show: beeuni:show, x: beeuni:show}",
        &[
            "error 1:31 tools.x: must be a repo-relative path to a .ts or .js module (e.g. `tools/x.ts`). `beeuni:<name>` names a Beeuni tool under its own name.",
        ],
    );
    let none = format!("warning 1:1 tools: {NONE}");
    check("tools:\n  a: tools/a.ts\n", &[&none]);
    check("tools: {}", &[&none]);
    check("tools:", &[&none]);
    check("tools: {web_search: tools/web_search.ts}", &[]);
    check("tools: {show: \"beeuni:show\", memory: !!str beeuni:memory}", &[]);
    check("tools: {no: tools/no.ts, show: beeuni:show}", &[]);
    check("tools: []", &[&none, "error 1:8 tools: must be a map, not a list"]);
    check("tools: text", &[&none, "error 1:8 tools: must be a map, not text"]);
    check(
        "tools:\n  show: beeuni:show\n  x: tools/gone.ts",
        &["error 3:6 tools.x: \"tools/gone.ts\" does not exist in the project files."],
    );
    for value in ["{path: tools/x.ts}", "", "[a]", "3", "'beeuni:'", "beeuni:x"] {
        let judged = judge(&format!("tools:\n  show: beeuni:show\n  lookup: {value}\n"));
        assert!(lines(&judged)[0].contains(" tools.lookup: must be a repo-relative path"), "{value}");
    }
    for (path, reason) in [
        ("/abs.ts", "starts with `/`"),
        ("../x.ts", "`..` segment"),
        ("tools/../../x.ts", "`..` segment"),
        ("'tools\\x.ts'", "backslash"),
        ("'C:\\x.ts'", "backslash"),
        ("C:/x.ts", "character"),
        ("file:///x.ts", "address"),
        ("https://h/x.ts", "address"),
        ("./tools/x.ts", "`./`"),
        ("tools//x.ts", "empty segment"),
        ("tools/x.tsx", "must end in"),
        ("tools/x.json", "must end in"),
        ("tools/x.TS", "lower case"),
        ("tools/x.d.ts", "declarations"),
        ("'tools/a.ts '", "must end in"),
        ("'-x.ts'", "option"),
        ("'a b#1?x.ts'", "character"),
    ] {
        let judged = judge(&format!("tools:\n  show: beeuni:show\n  x: {path}"));
        let found = lines(&judged);
        assert!(
            found.len() == 1
                && found[0].starts_with("error beeuni.yaml:3:6 tools.x")
                && found[0].contains(reason),
            "{path} {found:?}"
        );
    }
}

#[test]
fn what_tools_may_be_called() {
    for name in beeuni_manifest::HARNESS_TOOLS.into_iter().chain(["pty_spawn"]) {
        check(
            &format!("tools:\n  show: beeuni:show\n  {name}: tools/a.ts"),
            &[&format!(
                "error 3:3 tools.{name}: \"{name}\" is the name of a harness tool; choose another one"
            )],
        );
    }
    let long = "a".repeat(65);
    for name in ["Read", "a-b", "_a", "1a", "ä", long.as_str(), "__proto__"] {
        let judged = judge(&format!("tools:\n  show: beeuni:show\n  {name}: tools/a.ts"));
        assert_eq!(judged.findings.len(), 1, "{name}");
        assert!(judged.findings[0].message.starts_with("a tool's name is snake_case"), "{name}");
    }
    check(
        "tools:\n  show: beeuni:show\n  true: tools/a.ts\n  42: tools/b.ts\n  null: x.ts",
        &[
            "error 3:3 tools.true: a key must be text, and this is true or false: put quotes around it",
            "error 4:3 tools.42: a key must be text, and this is a number: put quotes around it",
            "error 5:3 tools.null: a key must be text, and this is nothing: put quotes around it",
        ],
    );
}

#[test]
fn what_agents_may_list() {
    let unknown = "is no harness tool, Beeuni tool or tool of this project, so it changes nothing here.";
    check(
        "agents: {beeuni: {tools: {exclude: [bahs]}}}",
        &[&format!("warning 1:37 agents.beeuni.tools: \"bahs\" {unknown} Did you mean `bash`?")],
    );
    check(
        "tools: {show: beeuni:show, lookup_order: tools/lookup_order.ts}\nagents:\n  beeuni:\n    tools: [Read, lookup_ordr]",
        &[
            &format!("warning 4:13 agents.beeuni.tools: \"Read\" {unknown} Did you mean `read`?"),
            &format!(
                "warning 4:19 agents.beeuni.tools: \"lookup_ordr\" {unknown} Did you mean `lookup_order`?"
            ),
        ],
    );
    check(
        "agents: {beeuni: {tools: {bsh: false}}}",
        &[&format!("warning 1:27 agents.beeuni.tools: \"bsh\" {unknown} Did you mean `bash`?")],
    );
    check(
        "tools: {memory: beeuni:memory}\nagents: {beeuni: {tools: [show]}}",
        &[
            "warning 2:27 agents.beeuni.tools: \"show\" is a Beeuni tool this project does not load: add `show: beeuni:show` under the top-level `tools`, or remove it here.",
        ],
    );
    check(
        "agents: {beeuni: {tools: [no, 1.0]}}",
        &[
            &format!("warning 1:27 agents.beeuni.tools: \"no\" {unknown}…"),
            "error 1:31 agents.beeuni.tools: must be text, not a number: put quotes around it",
        ],
    );
    check(
        "agents: {beeuni: {tools: {bash: no}}}",
        &["error 1:33 agents.beeuni.tools: \"bash\" must be true or false, not \"no\""],
    );
    check(
        "agents: {beeuni: {tools: {bash: 'false'}}}",
        &["error 1:33 agents.beeuni.tools: \"bash\" must be true or false, not \"false\""],
    );
    let folder = files().with("harnesses/opencode/tools/old.ts", "");
    check_in(folder, "agents: {beeuni: {tools: [old, old_part, pty_x, '*']}}", &[]);
}

#[test]
fn keys_and_values_elsewhere() {
    check("", &[]);
    check("# nothing\n", &[]);
    check("beeuni_version: 2\r\nproject: {name: x}\r\n", &[]);
    check("\u{feff}harness: standard", &[]);
    check(
        "beeuni_version: 3\nfuture: 1",
        &["error 1:17 beeuni_version: this program reads versions 1 and 2…"],
    );
    check(
        "tolls: {}",
        &["warning 1:1 tolls: unknown key \"tolls\": it changes nothing. Did you mean `tools`?"],
    );
    check(
        "agents: {beeuni: {secret: all}}",
        &[
            "warning 1:19 agents.beeuni.secret: unknown key \"secret\": it changes nothing. Did you mean `secrets`?",
        ],
    );
    check(
        "harness: standart",
        &[
            "error 1:10 harness: must be one of `standard`, `experimental`, not \"standart\". Did you mean `standard`?",
        ],
    );
    check("agents: {a: {}, b: {}}", &["error 1:1 default_agent: there is more than one agent…"]);
    check("agents: {a: {}}", &[]);
    check("default_agent: x\nagents: {a: {}}", &["error 1:16 default_agent: no agent \"x\" is declared."]);
    check(
        "default_agent: a\nagents: {a: {enabled: false}}",
        &["error 1:16 default_agent: the agent \"a\" is switched off"],
    );
    check(
        "env: {required: [lower, BEEUNI_X]}",
        &[
            "error 1:18 env.required: \"lower\" is no name of…",
            "error 1:25 env.required: BEEUNI_X: names that start with BEEUNI_ are Beeuni's own",
        ],
    );
    check(
        "limits: {memory: 512, call_time: 30, idle: 5m, processes: 0}",
        &[
            "error 1:18 limits.memory: must be a size with its unit, as `512MiB` or `2GiB`, not 512",
            "error 1:59 limits.processes: must be a whole number of at least 1, not 0",
        ],
    );
    check(
        "models: {default: x, mine: {api: openai}}",
        &[
            "error 1:19 models.default: \"x\" must be `provider/model`…",
            "error 1:22 models.mine: `base_url` is missing…",
        ],
    );
    check(
        "agents: {beeuni: {file: a.md}}",
        &["error 1:25 agents.beeuni.file: \"a.md\" does not exist in the project files."],
    );
    let md = files().with("agents/beeuni.md", "---\ntools: [bash]\nmode: boss\npermission: {bahs: deny, edit: ask, doom_loop: ask}\n---\nBe kind.\n");
    check_in(
        md,
        "",
        &[
            "error agents/beeuni.md:2:1 agents.beeuni.tools: an agent's tools are listed in beeuni.yaml, under `agents.beeuni.tools`; take them out here",
            "error agents/beeuni.md:3:7 agents.beeuni.mode: must be one of…",
            "warning agents/beeuni.md:4:14 agents.beeuni.permission.bahs: \"bahs\" is no tool and no capability, so this rule decides nothing. Did you mean `bash`?",
        ],
    );
    let set = Context { environment: Some(["A".to_owned()].into()) };
    let judged = read(&files().with("beeuni.yaml", "env: {required: [A, B]}"), "beeuni.yaml", &set);
    assert_eq!(
        lines(&judged),
        [
            "warning beeuni.yaml:1:21 env.required: B is required and not set; sessions will not start without it"
        ]
    );
}

#[test]
fn values_are_understood() {
    let files = files().with(
        "agents/beeuni.md",
        "---\nmodel: a/b/c\npermission:\n  bash: {'git *': ask}\n---\n\nBe kind.\n",
    );
    let yaml = "limits: {memory: 512MiB, idle: 5m, tools: {show: {network: false}}}\nagents: {beeuni: {secrets: all}}";
    let judged = read(&files.with("beeuni.yaml", yaml), "beeuni.yaml", &Context::default());
    assert!(judged.findings.is_empty(), "{:?}", lines(&judged));
    let manifest = &judged.manifest;
    assert_eq!((manifest.limits.all.memory, manifest.limits.all.idle), (Some(512 << 20), Some(300)));
    assert_eq!(manifest.limits.of("show").network, Some(false));
    let agent = &manifest.agents["beeuni"].value;
    assert_eq!((agent.prompt.as_str(), agent.model.as_deref()), ("Be kind.", Some("a/b/c")));
    assert_eq!(manifest.default_agent, "beeuni");
    let names = |judged: &Judged| {
        judged
            .manifest
            .session_tools()
            .iter()
            .map(|t| format!("{} {} {}", t.name, t.kind, t.source_text()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&judged).len(), 5);
    let some = judge(
        "tools:\n  lookup_order: tools/lookup_order.ts\n  show: beeuni:show\n  web_search: tools/web_search.ts\n",
    );
    assert_eq!(
        names(&some),
        [
            "web_search beeuni (overridden) tools/web_search.ts",
            "show beeuni beeuni:show",
            "lookup_order project tools/lookup_order.ts",
        ]
    );
    assert_eq!(some.manifest.removed(), ["image_search", "scrape_webpage", "memory"]);
}

#[test]
fn broken_yaml_is_one_finding_with_its_place() {
    check("tools:\n\tshow: beeuni:show\n", &["error 2:1 : a tab stands…"]);
    check("tools:\n  show: \"beeuni\n", &["error 2:9 : a quote is opened…"]);
    check("tools:\n  show: beeuni: show\n", &["error 2:15 : a `: ` stands inside…"]);
    check("a: 1\n---\nb: 2\n", &["error 2:1 : a second document starts here; write one document per file"]);
    check("a: 1\rb: 2\r", &["error 1:5 : a line end is CR alone…"]);
    check("- a", &["error 1:1 : a manifest is a map of keys at its top, and this is a list"]);
    check(
        "tools: {show: beeuni:show}\ntools: {}",
        &["error 2:1 tools: the key \"tools\" stands twice in one map; the first is at 1:1"],
    );
    check(
        "x-base: &b {show: beeuni:show}\ntools: {<<: *b, memory: beeuni:memory}",
        &["warning 1:1 x-base: unknown key…", "error 2:9 tools.<<: `<<` (a merge key) is not read…"],
    );
    check("x-base: &b {show: beeuni:show}\ntools: *b", &["warning 1:1 x-base: unknown key…"]);
    let bytes = read(
        &MemoryFiles::new().with("beeuni.yaml", b"a: 1\nb: \xff\n".to_vec()),
        "beeuni.yaml",
        &Context::default(),
    );
    assert_eq!(
        lines(&bytes),
        ["error beeuni.yaml:2:4 : here stands a byte that is not UTF-8; save the file as UTF-8"]
    );
    let missing = read(&MemoryFiles::new(), "beeuni.yaml", &Context::default());
    assert!(!missing.readable && missing.has_errors());
}

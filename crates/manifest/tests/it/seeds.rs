//! The examples of the tools page are valid files by themselves.

use beeuni_manifest::{Context, Severity, read};

use super::judging::files;

const EXAMPLES: [&str; 6] = [
    "tools:\n  web_search: beeuni:web_search      # maintained by Beeuni, updated automatically\n  image_search: beeuni:image_search\n  scrape_webpage: beeuni:scrape_webpage\n  memory: beeuni:memory\n  show: beeuni:show\n  # lookup_order: tools/lookup_order.ts   # your own tool: a module in your repo\n",
    "tools:\n  web_search: integrations/search/web_search.ts\n",
    "# beeuni.yaml\ntools:\n  web_search: beeuni:web_search\n  # … the other Beeuni tools you keep\n  lookup_order: tools/lookup_order.ts\n",
    "tools:\n  # … the Beeuni tools you keep\n  weather_now: tools/weather_now.ts\n",
    "tools:\n  web_search: beeuni:web_search\n  memory: beeuni:memory\n  lookup_order: tools/lookup_order.ts\n  crm_note: integrations/crm/note.ts\n",
    "agents:\n  beeuni:\n    tools: all                                    # every tool (the default)\n  researcher:\n    tools: [read, grep, web_search, lookup_order] # only these\n  support:\n    tools:\n      exclude: [bash, write, edit]                # every tool but these\n  greeter:\n    tools: none                                    # no tool\n",
];

#[test]
fn examples_have_warnings_at_most() {
    for yaml in EXAMPLES {
        let files =
            files().with("integrations/search/web_search.ts", "").with("integrations/crm/note.ts", "");
        let judged = read(&files.with("beeuni.yaml", yaml), "beeuni.yaml", &Context::default());
        for finding in &judged.findings {
            assert_eq!(finding.severity, Severity::Warning, "{finding:?}");
            assert!(finding.path == "tools" || finding.path == "agents.researcher.tools", "{finding:?}");
        }
    }
}

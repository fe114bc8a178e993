//! The five Beeuni tools, as TypeScript modules.
//!
//! Each is one file that imports only `node:*` and takes everything else from `context`, so that the bytes which a
//! session runs are the same ones that `beeuni tools eject` writes (E2). How they behave is tested with Bun, in `test/`.

/// A Beeuni tool: the code that runs for `beeuni:<name>` (L7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Its name, as in `beeuni:<name>`.
    pub name: &'static str,
    /// The module: a TypeScript file, byte for byte.
    pub source: &'static str,
}

/// All five, in the order in which they are listed (S1).
pub const ALL: [Builtin; 5] = [
    Builtin { name: "web_search", source: include_str!("../tools/web_search.ts") },
    Builtin { name: "image_search", source: include_str!("../tools/image_search.ts") },
    Builtin { name: "scrape_webpage", source: include_str!("../tools/scrape_webpage.ts") },
    Builtin { name: "memory", source: include_str!("../tools/memory.ts") },
    Builtin { name: "show", source: include_str!("../tools/show.ts") },
];

/// The Beeuni tool of that name, if there is one.
pub fn get(name: &str) -> Option<&'static Builtin> {
    ALL.iter().find(|builtin| builtin.name == name)
}

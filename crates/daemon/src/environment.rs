//! Which variables and secrets reach a tool, a shell command and a tool's process. The shell's other variables reach
//! nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use beeuni_manifest::{EnvNames, Selection};

/// What a tool's process has in `process.env`, beside [`NETWORK`].
const BASIC: [&str; 5] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR"];

/// Proxy and certificate variables: a tool behind a company's proxy must work on the first try.
const NETWORK: [&str; 10] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
];

/// What only `context.env` has: the way to the router, and the providers' keys for use without one.
const SERVICES: [&str; 5] =
    ["BEEUNI_API_URL", "BEEUNI_TOKEN", "TAVILY_API_KEY", "SERPER_API_KEY", "FIRECRAWL_API_KEY"];

/// Of [`SERVICES`], those whose values must never be seen.
const SECRET_SERVICES: [&str; 4] = ["BEEUNI_TOKEN", "TAVILY_API_KEY", "SERPER_API_KEY", "FIRECRAWL_API_KEY"];

/// Where PATH is missing from the shell, programs are still found.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Whether a variable that the project declares holds a secret, by its name: a region or an address must not become
/// `[secret]` wherever it is written.
fn sounds_secret(name: &str) -> bool {
    ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH"].iter().any(|word| name.contains(word))
}

/// A box's variables and secrets.
#[derive(Clone, Debug)]
pub struct Environment {
    shell: BTreeMap<String, String>,
    services: BTreeMap<String, String>,
    secrets: BTreeMap<String, String>,
    private: Vec<String>,
    temp: String,
}

impl Environment {
    /// Takes from the shell what may reach a tool. `secrets` are granted per agent; `temp` is the box's temporary
    /// folder, which is also the home of tool processes: the sandbox hides the user's own, and programs that find an
    /// unreadable home fail in odd ways.
    pub fn new(
        shell: &BTreeMap<String, String>,
        declared: &EnvNames,
        secrets: BTreeMap<String, String>,
        temp: &str,
    ) -> Environment {
        let pick = |names: &mut dyn Iterator<Item = &str>| -> BTreeMap<String, String> {
            names.filter_map(|name| Some((name.to_owned(), shell.get(name)?.clone()))).collect()
        };
        let mut basic = pick(&mut BASIC.into_iter().chain(NETWORK));
        basic.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_PATH.to_owned());
        let declared: Vec<&str> =
            declared.required.iter().chain(&declared.optional).map(String::as_str).collect();
        let services = pick(&mut SERVICES.into_iter().chain(declared.iter().copied()));
        let private = SECRET_SERVICES
            .into_iter()
            .chain(declared.into_iter().filter(|name| sounds_secret(name)))
            .filter_map(|name| services.get(name).cloned())
            .chain(secrets.values().cloned())
            .collect();
        Environment { shell: basic, services, secrets, private, temp: temp.to_owned() }
    }

    /// `process.env` of a tool's process: never a secret (M4).
    pub fn process(&self) -> BTreeMap<String, String> {
        let mut vars = self.shell.clone();
        vars.insert("HOME".to_owned(), self.temp.clone());
        vars.insert("TMPDIR".to_owned(), self.temp.clone());
        vars
    }

    /// `context.env` of a call by an agent with these grants (M4).
    pub fn context(&self, grants: &Selection, session: &str) -> Arc<BTreeMap<String, String>> {
        let mut vars = self.process();
        self.add_granted(&mut vars, grants, session);
        Arc::new(vars)
    }

    /// The environment of a shell command of an agent with these grants; its home is the user's own.
    pub fn shell(&self, grants: &Selection, session: &str) -> BTreeMap<String, String> {
        let mut vars = self.shell.clone();
        vars.insert("TMPDIR".to_owned(), self.temp.clone());
        self.add_granted(&mut vars, grants, session);
        vars
    }

    fn add_granted(&self, vars: &mut BTreeMap<String, String>, grants: &Selection, session: &str) {
        vars.extend(self.services.clone());
        vars.insert("BEEUNI_SESSION_ID".to_owned(), session.to_owned());
        let granted = self.secrets.iter().filter(|(name, _)| grants.contains(name));
        vars.extend(granted.map(|(name, value)| (name.clone(), value.clone())));
    }

    /// Every value that must reach no log and no event.
    pub fn private_values(&self) -> &[String] {
        &self.private
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn environment() -> Environment {
        let shell = map(&[
            ("PATH", "/bin"),
            ("HOME", "/home/u"),
            ("LANG", "C"),
            ("HTTPS_PROXY", "http://p"),
            ("OPENAI_API_KEY", "sk-model"),
            ("AWS_SECRET", "x"),
            ("TAVILY_API_KEY", "tvly"),
            ("REGION", "europe"),
            ("CRM_PASSWORD", "hunter2"),
        ]);
        let declared = EnvNames {
            required: vec!["REGION".into(), "CRM_PASSWORD".into()],
            optional: vec!["ABSENT".into()],
        };
        let secrets = map(&[("A_KEY", "secret-a"), ("B_KEY", "secret-b")]);
        Environment::new(&shell, &declared, secrets, "/tmp/box")
    }

    #[test]
    fn each_reader_gets_its_share() {
        let environment = environment();
        let process = map(&[
            ("PATH", "/bin"),
            ("HOME", "/tmp/box"),
            ("LANG", "C"),
            ("TMPDIR", "/tmp/box"),
            ("HTTPS_PROXY", "http://p"),
        ]);
        assert_eq!(environment.process(), process);

        let services = map(&[
            ("TAVILY_API_KEY", "tvly"),
            ("REGION", "europe"),
            ("CRM_PASSWORD", "hunter2"),
            ("BEEUNI_SESSION_ID", "s1"),
        ]);
        let check = |grants: Selection, secrets: &[(&str, &str)]| {
            let mut expected = process.clone();
            expected.extend(services.clone());
            expected.extend(map(secrets));
            assert_eq!(*environment.context(&grants, "s1"), expected, "{grants:?}");
            expected.insert("HOME".into(), "/home/u".into());
            assert_eq!(environment.shell(&grants, "s1"), expected, "{grants:?}");
        };
        check(Selection::None, &[]);
        check(Selection::All, &[("A_KEY", "secret-a"), ("B_KEY", "secret-b")]);
        check(Selection::Only(vec!["B_KEY".into(), "NOT_THERE".into()]), &[("B_KEY", "secret-b")]);
    }

    #[test]
    fn private_values_are_known() {
        let mut values = environment().private_values().to_vec();
        values.sort();
        assert_eq!(values, ["hunter2", "secret-a", "secret-b", "tvly"]);
    }
}

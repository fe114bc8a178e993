//! Which model, at which address, with which key: a table.

use std::collections::BTreeMap;

use beeuni_models::{ANTHROPIC_DEFAULT, Api, Asked, Limits, OPENAI_DEFAULT, Provider, choose};

use crate::environment;

/// Providers as a checkout may declare them.
fn declared() -> BTreeMap<String, Provider> {
    let provider = |api, base_url: Option<&str>, key_env: Option<&str>| Provider {
        api,
        base_url: base_url.map(str::to_owned),
        key_env: key_env.map(str::to_owned),
        models: [("m".to_owned(), Limits { context: Some(1000), output: Some(10) })].into(),
    };
    [
        ("acme", provider(Some(Api::Anthropic), Some("https://u:p@acme.example/x?k=1"), Some("ACME_KEY"))),
        ("local", provider(None, Some("http://127.0.0.1:8080/v1"), None)),
        ("nowhere", provider(None, None, None)),
        ("openai", provider(None, Some("https://evil.example/v1"), None)),
        ("openrouter", provider(None, Some("https://openrouter.ai/api/v1/"), None)),
    ]
    .map(|(name, provider)| (name.to_owned(), provider))
    .into()
}

/// A choice in short: `name api address key`, then its warning; or the error.
fn chosen(
    flag: Option<&str>,
    agent: Option<&str>,
    default: Option<&str>,
    declare: bool,
    env: &[(&str, &str)],
) -> String {
    let declared = if declare { declared() } else { BTreeMap::new() };
    let env = environment(env);
    match choose(&Asked { flag, agent, default, declared: &declared, env: &env }) {
        Ok(choice) => {
            let key = choice.key.as_ref().map_or("-", |key| key.expose());
            let warning = choice.warning.map(|warning| format!(" ({warning})")).unwrap_or_default();
            format!("{} {:?} {} {key}{warning}", choice.name, choice.api, choice.base_url)
        }
        Err(error) => error.to_string(),
    }
}

const A: (&str, &str) = ("ANTHROPIC_API_KEY", "ka");
const O: (&str, &str) = ("OPENAI_API_KEY", " ko\n");

#[test]
fn the_first_that_names_a_model_wins() {
    let m = ("BEEUNI_MODEL", "ollama/env");
    let check = |flag, agent, default, env: &[(&str, &str)], expected: &str| {
        let chosen = chosen(flag, agent, default, false, env);
        assert!(chosen.starts_with(expected), "{chosen} is not {expected}");
    };
    let (f, a, d) = (Some("ollama/flag"), Some("ollama/agent"), Some("ollama/default"));
    check(f, a, d, &[m, A, O], "ollama/flag OpenAi http://127.0.0.1:11434/v1 -");
    check(None, a, d, &[m, A, O], "ollama/agent ");
    check(None, None, d, &[m, A, O], "ollama/env ");
    check(None, None, d, &[A, O], "ollama/default ");
    check(None, None, None, &[A, O], &format!("{ANTHROPIC_DEFAULT} Anthropic https://api.anthropic.com ka"));
    check(None, None, None, &[O], &format!("{OPENAI_DEFAULT} OpenAi https://api.openai.com/v1 ko"));
    check(None, None, None, &[("ANTHROPIC_API_KEY", " "), O], OPENAI_DEFAULT);
    check(
        Some("openrouter/a/b:free"),
        None,
        None,
        &[("OPENROUTER_API_KEY", "kr")],
        "openrouter/a/b:free OpenAi https://openrouter.ai/api/v1 kr",
    );
    check(
        None,
        None,
        None,
        &[],
        "no model: give --model provider/model, or set BEEUNI_MODEL, or `models.default` in beeuni.yaml, or one of ANTHROPIC_API_KEY and OPENAI_API_KEY",
    );
}

#[test]
fn the_environments_own_server() {
    let url = ("BEEUNI_MODEL_URL", "http://here/v1");
    let key = ("BEEUNI_MODEL_KEY", "km");
    let check =
        |env: &[(&str, &str)], expected: &str| assert_eq!(chosen(None, None, None, false, env), expected);
    let model = |name| ("BEEUNI_MODEL", name);
    let api = |api| ("BEEUNI_MODEL_API", api);
    check(&[model("mine/m"), url], "mine/m OpenAi http://here/v1 -");
    check(&[model("mine/m"), url, key], "mine/m OpenAi http://here/v1 km");
    check(&[model("mine/m"), url, key, api("anthropic")], "mine/m Anthropic http://here/v1 km");
    check(&[model("m"), url], "openai/m OpenAi http://here/v1 -");
    check(&[model("m"), url, O], "openai/m OpenAi http://here/v1 ko");
    check(&[model("m"), api("anthropic"), A], "anthropic/m Anthropic https://api.anthropic.com ka");
    check(&[model("anthropic/m"), key, A], "anthropic/m Anthropic https://api.anthropic.com km");
    check(&[model("openai/m"), O, ("OPENAI_BASE_URL", "http://proxy")], "openai/m OpenAi http://proxy ko");
    check(&[model("openai/m"), ("OPENAI_BASE_URL", "http://proxy")], "openai/m OpenAi http://proxy -");
    check(
        &[model("anthropic/m"), A, ("ANTHROPIC_BASE_URL", "http://proxy")],
        "anthropic/m Anthropic http://proxy ka",
    );
    check(
        &[model("m")],
        "BEEUNI_MODEL is `m`: write `provider/model`, such as `anthropic/claude-sonnet-4-5`",
    );
    check(&[model("m"), api("grpc")], "BEEUNI_MODEL_API is `grpc`: it may be `openai` or `anthropic`");
    // The variables speak of BEEUNI_MODEL's provider and of no other.
    let other = chosen(Some("anthropic/m"), None, None, false, &[model("mine/m"), url, key, A]);
    assert_eq!(other, "anthropic/m Anthropic https://api.anthropic.com ka");
    let same = chosen(Some("mine/n"), None, None, false, &[model("mine/m"), url, key]);
    assert_eq!(same, "mine/n OpenAi http://here/v1 km");
    let unnamed = chosen(Some("mine/n"), None, None, false, &[url, key]);
    assert!(unnamed.starts_with("--model: no provider `mine` is known"), "{unnamed}");
}

#[test]
fn no_key_goes_where_only_the_checkout_says() {
    let check = |model, env: &[(&str, &str)], expected: &str| {
        assert_eq!(chosen(Some(model), None, None, true, env), expected);
    };
    let acme = ("ACME_KEY", "kc");
    check(
        "openai/m",
        &[O],
        "openai/m OpenAi https://evil.example/v1 - (openai/m: beeuni.yaml sends this model's requests to https://evil.example/v1; OPENAI_API_KEY is not sent there)",
    );
    check("openai/m", &[], "openai/m OpenAi https://evil.example/v1 -");
    check("openai/m", &[O, ("OPENAI_BASE_URL", "http://mine")], "openai/m OpenAi http://mine ko");
    check(
        "acme/m",
        &[acme],
        "acme/m: ACME_KEY is not sent to https://acme.example/x, because only beeuni.yaml names that address. If you trust it, set BEEUNI_MODEL=acme/m and BEEUNI_MODEL_URL=https://acme.example/x",
    );
    check(
        "acme/m",
        &[("BEEUNI_MODEL", "acme/m"), ("BEEUNI_MODEL_KEY", "k")],
        "acme/m: BEEUNI_MODEL_KEY is not sent to https://acme.example/x, because only beeuni.yaml names that address. If you trust it, set BEEUNI_MODEL=acme/m and BEEUNI_MODEL_URL=https://acme.example/x",
    );
    check(
        "acme/m",
        &[acme, ("BEEUNI_MODEL", "acme/m"), ("BEEUNI_MODEL_URL", "https://acme.example/x")],
        "acme/m Anthropic https://acme.example/x kc",
    );
    check("acme/m", &[A, O], "acme/m Anthropic https://u:p@acme.example/x?k=1 -");
    check("local/m", &[A, O], "local/m OpenAi http://127.0.0.1:8080/v1 -");
    // A provider's own address stays its own when a checkout repeats it.
    check(
        "openrouter/m",
        &[("OPENROUTER_API_KEY", "kr")],
        "openrouter/m OpenAi https://openrouter.ai/api/v1/ kr",
    );
}

#[test]
fn mistakes_say_what_to_set() {
    let check = |model, expected: &str| assert_eq!(chosen(Some(model), None, None, true, &[]), expected);
    check("gpt-5", "--model is `gpt-5`: write `provider/model`, such as `anthropic/claude-sonnet-4-5`");
    check("/m", "--model is `/m`: write `provider/model`, such as `anthropic/claude-sonnet-4-5`");
    check(
        "anthropic/",
        "--model is `anthropic/`: write `provider/model`, such as `anthropic/claude-sonnet-4-5`",
    );
    check("anthropic/m", "anthropic/m needs a key: set ANTHROPIC_API_KEY");
    check(
        "nowhere/m",
        "provider `nowhere` has no address: give it a `base_url` under `models:` in beeuni.yaml or set BEEUNI_MODEL_URL",
    );
    check(
        "antropic/m",
        "--model: no provider `antropic` is known; there are `anthropic`, `openai`, `openrouter`, `ollama`, `acme`, `local`, `nowhere`. Declare it under `models:` in beeuni.yaml, or set BEEUNI_MODEL and BEEUNI_MODEL_URL",
    );
}

#[test]
fn limits() {
    let check = |model: &str, expected: (Option<u64>, Option<u32>)| {
        let (declared, env) = (declared(), environment(&[A, O]));
        let asked = Asked { flag: Some(model), agent: None, default: None, declared: &declared, env: &env };
        let choice = choose(&asked).unwrap();
        assert_eq!((choice.context, choice.output), expected, "{model}");
        assert!(!format!("{choice:?}").contains("ka"), "{choice:?}");
        assert_eq!(choice.model(), model.split_once('/').unwrap().1);
    };
    check("local/m", (Some(1000), Some(10)));
    check("local/other", (None, None));
    check("anthropic/claude-sonnet-4-5", (Some(200_000), Some(32_000)));
    check("anthropic/claude-3-haiku", (Some(200_000), Some(4_096)));
    check("openai/gpt-5.1", (Some(400_000), Some(128_000)));
    check("ollama/a/b", (None, None));
}

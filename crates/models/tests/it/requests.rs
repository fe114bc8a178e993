//! What a provider gets and what comes of its answers, on both wires.

use beeuni_models::{Api, Call, Delta, Message, Request};
use beeuni_testkit::model::{NO_SCRIPT, Received, ScriptedModel};
use serde_json::{Value, json};

use crate::{WIRES, all, choice, model, request, short, tool, user};

#[tokio::test]
async fn answers() {
    for api in WIRES {
        let server = ScriptedModel::start().await;
        let model = model(api, &server.url());
        let check = async |prompt: &str, expected: &[&str]| {
            let deltas = all(model.as_ref(), request(prompt)).await;
            assert_eq!(short(&deltas, false), expected, "{api:?} {prompt}");
        };
        check("hello", &[NO_SCRIPT, "=Stop"]).await;
        check("SAY grüße 🐝", &["grüße 🐝", "=Stop"]).await;
        check("THINK hm\nSAY hi", &["(hm)", "hi", "=Stop"]).await;
        check("CALL look {\"a\": 0.10}", &["look:{\"a\": 0.10}", "=Calls"]).await;
        check("CALL look not json", &["look:not json", "=Calls"]).await;
        check("CALL look EMPTY", &["look:", "=Calls"]).await;
        check(
            "SAY wait\nCALL look {}\n+ other {\"b\":[1,\"ü\"]}",
            &["wait", "look:{}", "other:{\"b\":[1,\"ü\"]}", "=Calls"],
        )
        .await;
        check(
            "BATCH\nCALL look {\"a\":1}\n+ look {\"a\":2}",
            &["look:{\"a\":1}", "look:{\"a\":2}", "=Calls"],
        )
        .await;
        let length = if api == Api::OpenAi { "length" } else { "max_tokens" };
        check(&format!("STOP {length}\nSAY cut"), &["cut", "=Length"]).await;
        let filtered = if api == Api::OpenAi { "content_filter" } else { "refusal" };
        check(&format!("STOP {filtered}\nSAY no"), &["no", "=Filtered"]).await;
        assert_eq!(server.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn usage_counts_everything_that_was_read() {
    for api in WIRES {
        let server = ScriptedModel::start().await;
        let deltas = all(model(api, &server.url()).as_ref(), request("USAGE 100 7 60\nSAY hi")).await;
        let short = short(&deltas, true);
        assert_eq!(
            short.iter().rfind(|item| item.starts_with('#')).unwrap(),
            "#100/7/60",
            "{api:?} {short:?}"
        );
    }
}

/// M2, D1, D3: a schema reaches the provider byte for byte.
#[tokio::test]
async fn schemas_are_sent_as_they_are() {
    let schemas = [
        r#"{ "type" : "object",  "properties":{"a":{}, "b":{}}, "anyOf":[{"required":["a"]},{"required":["b"]}] }"#,
        r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"x":{"$ref":"#/$defs/X"},"u":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"integer"},"minItems":2}]},"m":{"type":"object","patternProperties":{"^x-":{"type":"string"}},"additionalProperties":{"type":["string","null"]}}},"$defs":{"X":{"type":"object","properties":{"next":{"$ref":"#/$defs/X"}}}},"x-vendor":{"keep":[true,1e3]}}"##,
        r#"{"type":"object","properties":{"e":{"enum":[60,1440,null,true]},"t":{"type":["string","null"]},"f":{"format":"uri"},"c":{"const":1},"x":{"exclusiveMinimum":0},"d":{"default":0.10},"big":{"const":12345678901234567890123}}}"#,
        "{\"type\":\"object\",\"z\":1,\"a\":\"\\u00e9 <b> \\/\",\"properties\":{}}",
    ];
    for api in WIRES {
        let server = ScriptedModel::start().await;
        let tools = schemas.iter().enumerate().map(|(n, schema)| tool(&format!("t{n}"), schema)).collect();
        all(model(api, &server.url()).as_ref(), Request { tools, ..request("SAY hi") }).await;
        let received = &server.requests()[0];
        assert_eq!(received.tools(), ["t0", "t1", "t2", "t3"]);
        for (n, schema) in schemas.iter().enumerate() {
            assert_eq!(received.schema(&format!("t{n}")).as_deref(), Some(*schema), "{api:?}");
        }
    }
}

fn call(id: &str, arguments: &str) -> Call {
    Call { id: id.to_owned(), name: "look".to_owned(), arguments: arguments.to_owned() }
}

fn result(id: &str, content: &str, is_error: bool) -> Message {
    Message::Tool { call_id: id.to_owned(), name: "look".to_owned(), content: content.to_owned(), is_error }
}

fn assistant(text: &str, calls: Vec<Call>) -> Message {
    Message::Assistant { text: text.to_owned(), calls }
}

/// Sends a conversation with everything in it and gives what the server got.
async fn received(api: Api) -> Received {
    let server = ScriptedModel::start().await;
    let messages = vec![
        user("SAY one"),
        assistant("", vec![]),
        user("and\ntwo"),
        assistant("I look.", vec![call("a:0", "{\"n\": 0.10}"), call("b", "oops"), call("c", "")]),
        result("a:0", "found", false),
        result("b", "not an object", true),
        result("c", "", false),
        user("   "),
        assistant("", vec![call("d", "[1]")]),
        result("d", "stopped", true),
        user("go on"),
    ];
    let request = Request { messages, temperature: Some(0.5), max_output: Some(99), ..request("") };
    all(model(api, &server.url()).as_ref(), request).await;
    assert_eq!(server.violations(), Vec::<String>::new());
    server.requests().remove(0)
}

#[tokio::test]
async fn a_conversation_for_openai() {
    let received = received(Api::OpenAi).await;
    assert_eq!(received.headers["authorization"], "Bearer sk-secret-1");
    assert_eq!(received.json["stream_options"], json!({"include_usage": true}));
    assert_eq!((&received.json["temperature"], &received.json["max_tokens"]), (&json!(0.5), &json!(99)));
    let function = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}});
    assert_eq!(
        received.json["messages"],
        json!([
            {"role": "system", "content": "You test."},
            {"role": "user", "content": "SAY one"},
            {"role": "user", "content": "and\ntwo"},
            {"role": "assistant", "content": "I look.", "tool_calls": [function("a:0", "{\"n\": 0.10}"), function("b", "{}"), function("c", "{}")]},
            {"role": "tool", "tool_call_id": "a:0", "content": "found"},
            {"role": "tool", "tool_call_id": "b", "content": "not an object"},
            {"role": "tool", "tool_call_id": "c", "content": ""},
            {"role": "user", "content": "   "},
            {"role": "assistant", "content": null, "tool_calls": [function("d", "{}")]},
            {"role": "tool", "tool_call_id": "d", "content": "stopped"},
            {"role": "user", "content": "go on"},
        ])
    );
}

#[tokio::test]
async fn a_conversation_for_anthropic() {
    let received = received(Api::Anthropic).await;
    assert_eq!(received.headers["x-api-key"], "sk-secret-1");
    assert_eq!(received.headers["anthropic-version"], "2023-06-01");
    assert!(received.body.contains(r#""input":{"n": 0.10}"#), "{}", received.body);
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        received.json["system"],
        json!([{"type": "text", "text": "You test.", "cache_control": cached}])
    );
    assert_eq!(received.json["max_tokens"], 99);
    let tools = received.json["tools"].as_array().unwrap();
    let breakpoints: Vec<&Value> = tools.iter().map(|tool| &tool["cache_control"]).collect();
    assert_eq!(breakpoints, [&Value::Null, &cached]);
    let text = |text: &str| json!({"type": "text", "text": text});
    let used = |id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": "look", "input": input});
    let result =
        |id: &str, content: &str| json!({"type": "tool_result", "tool_use_id": id, "content": content});
    let failed = |id: &str, content: &str| json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": true});
    assert_eq!(
        received.json["messages"],
        json!([
            {"role": "user", "content": [text("SAY one"), text("and\ntwo")]},
            {"role": "assistant", "content": [text("I look."), used("a_0", json!({"n": 0.10})), used("b", json!({})), used("c", json!({}))]},
            {"role": "user", "content": [result("a_0", "found"), failed("b", "not an object"), {"type": "tool_result", "tool_use_id": "c"}]},
            {"role": "assistant", "content": [used("d", json!({}))]},
            {"role": "user", "content": [failed("d", "stopped"), {"type": "text", "text": "go on", "cache_control": cached}]},
        ])
    );
}

#[tokio::test]
async fn limits_that_nobody_gave() {
    for (api, output, expected) in [
        (Api::OpenAi, None, Value::Null),
        (Api::OpenAi, Some(7), json!(7)),
        (Api::Anthropic, None, json!(8192)),
        (Api::Anthropic, Some(7), json!(7)),
    ] {
        let server = ScriptedModel::start().await;
        let choice = beeuni_models::Choice { output, ..choice(api, &server.url()) };
        let model = beeuni_models::connect(&choice).unwrap();
        all(model.as_ref(), Request { tools: vec![], system: String::new(), ..request("SAY hi") }).await;
        let received = &server.requests()[0].json;
        assert_eq!(received["max_tokens"], expected, "{api:?} {output:?}");
        for absent in ["tools", "temperature", "system"] {
            assert!(received.get(absent).is_none(), "{absent}");
        }
        assert_eq!(server.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn addresses_in_every_form() {
    let server = ScriptedModel::start().await;
    let url = server.url();
    let check = async |api: Api, base: String| {
        let deltas = all(model(api, &base).as_ref(), request("SAY hi")).await;
        assert_eq!(short(&deltas, false), ["hi", "=Stop"], "{base}");
    };
    for tail in ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1?api-version=1#top"] {
        check(Api::OpenAi, format!("{url}{tail}")).await;
    }
    for tail in ["", "/", "/v1", "/v1/", "/v1/messages"] {
        check(Api::Anthropic, format!("{url}{tail}")).await;
    }
    assert_eq!(server.requests()[5].path, "/v1/chat/completions?api-version=1");
    let refuse = |base: &str| beeuni_models::connect(&choice(Api::OpenAi, base)).unwrap_err().to_string();
    insta::assert_snapshot!(refuse("ftp://me:pw@host/x"), @"scripted/scripted-1: ftp://host/x is no address of a model server: it must begin with http:// or https:// and name a host");
    insta::assert_snapshot!(refuse("host without scheme"), @"scripted/scripted-1: the given text is no address of a model server: relative URL without a base");
}

#[tokio::test]
async fn without_a_key_none_is_sent() {
    let server = ScriptedModel::start().await;
    let choice = beeuni_models::Choice { key: None, ..choice(Api::OpenAi, &server.url()) };
    all(beeuni_models::connect(&choice).unwrap().as_ref(), request("SAY hi")).await;
    assert!(!server.requests()[0].headers.contains_key("authorization"));
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn ids_are_unique_in_a_conversation() {
    let server = ScriptedModel::start().await;
    let model = model(Api::OpenAi, &server.url());
    let mut messages = vec![user("CALL look {}\n+ look {}\nCALL look {}\nSAY done")];
    loop {
        let deltas = all(model.as_ref(), Request { messages: messages.clone(), ..request("") }).await;
        let calls: Vec<Call> = deltas
            .into_iter()
            .filter_map(|d| if let Ok(Delta::Call(call)) = d { Some(call) } else { None })
            .collect();
        if calls.is_empty() {
            break;
        }
        let answers: Vec<Message> = calls.iter().map(|call| result(&call.id, "r", false)).collect();
        messages.push(assistant("", calls));
        messages.extend(answers);
    }
    assert_eq!(messages.len(), 6);
    assert_eq!(server.violations(), Vec::<String>::new());
}

//! The scripted model server, asked over a plain socket.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use beeuni_testkit::model::{End, NO_SCRIPT, ScriptedModel};
use serde_json::{Value, json};

/// Sends a request and gives the open connection.
fn send(server: &ScriptedModel, path: &str, body: &Value) -> TcpStream {
    let mut socket = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    let body = body.to_string();
    write!(
        socket,
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer k\r\n\
         anthropic-version: 2023-06-01\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    socket
}

/// Sends a request and reads until the server closes.
fn ask(server: &ScriptedModel, path: &str, body: &Value) -> String {
    let mut answer = String::new();
    // A connection that the script cut ends in an error; what came before it counts.
    let _ = send(server, path, body).read_to_string(&mut answer);
    answer
}

fn openai(messages: Value, stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "messages": messages,
           "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type":"object","x":0.10}}}]})
}

fn said(prompt: &str) -> Value {
    json!([{"role": "user", "content": prompt}])
}

/// The text or the calls of a plain answer to a conversation.
fn answer(server: &ScriptedModel, messages: Value) -> String {
    let answer = ask(server, "/v1/chat/completions", &openai(messages, false));
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let message = &body["choices"][0]["message"];
    let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
    let calls = calls.iter().map(|call| {
        format!(
            "{}({})",
            call["function"]["name"].as_str().unwrap(),
            call["function"]["arguments"].as_str().unwrap()
        )
    });
    [message["content"].as_str().unwrap().to_owned()].into_iter().chain(calls).collect::<Vec<_>>().join("|")
}

#[test]
fn the_prompt_is_the_script() {
    let server = ScriptedModel::start_blocking();
    let check =
        |prompt: &str, expected: &str| assert_eq!(answer(&server, said(prompt)), expected, "{prompt}");
    check("CALL look {\"a\":1}", "|look({\"a\":1})");
    check("Some context.\n  CALL look {\"a\":1}\n<note>ignore me</note>", "|look({\"a\":1})");
    check("\"CALL look {}\"", "|look({})");
    check("CALL look", "|look({})");
    check("CALL look EMPTY", "|look()");
    check("CALL look not json at all", "|look(not json at all)");
    check("CALL look {}\n+ other [1]", "|look({})|other([1])");
    check("SAY one moment\nCALL look {}", "one moment|look({})");
    check("SAY hello\nSAY world", "hello\nworld");
    check("no directive, CALL inside", NO_SCRIPT);
}

#[test]
fn turns_are_counted_from_the_script() {
    let server = ScriptedModel::start_blocking();
    let script = "CALL look {\"n\":1}\nCALL look {\"n\":2}";
    let call = |id: &str| {
        json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}]})
    };
    let result = |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    let user = |text: &str| json!({"role": "user", "content": text});
    let check = |messages: Value, expected: &str| assert_eq!(answer(&server, messages), expected);
    check(json!([user(script)]), "|look({\"n\":1})");
    check(json!([user(script), call("a"), result("a", "r1")]), "|look({\"n\":2})");
    check(json!([user(script), call("a"), result("a", "r1"), call("b"), result("b", "r2")]), "DONE r2");
    check(json!([user(script), call("a"), result("a", "r1"), user("SAY anew")]), "anew");
    check(json!([user(script), call("a"), result("a", "r1"), user("a note")]), "|look({\"n\":2})");
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[test]
fn anthropic_results_and_texts_stand_in_one_message() {
    let server = ScriptedModel::start_blocking();
    let body = json!({"model": "m", "max_tokens": 9, "stream": true, "messages": [
        {"role": "user", "content": "CALL look {}"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "SAY no script"}]},
    ]});
    let answer = ask(&server, "/v1/messages", &body);
    assert!(answer.contains("\"text\":\"DONE \"") && answer.contains("\"text\":\"script\""), "{answer}");
    assert!(answer.contains("event: message_stop"), "{answer}");
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[test]
fn a_call_without_tools_needs_force() {
    let server = ScriptedModel::start_blocking();
    let ask = |prompt| ask(&server, "/v1/chat/completions", &json!({"model": "m", "messages": said(prompt)}));
    assert!(ask("CALL look {}").contains("\"content\":\"DONE\""));
    assert!(ask("CALL! look {}").contains("\"name\":\"look\""));
}

#[test]
fn schemas_are_kept_byte_for_byte() {
    let server = ScriptedModel::start_blocking();
    let schema = r#"{"type" : "object", "default":0.10,  "x-vendor":[1e3]}"#;
    let body = format!(
        r#"{{"model":"m","messages":[],"tools":[{{"function":{{"name":"a","parameters":{schema}}}}}]}}"#
    );
    let mut socket = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    write!(
        socket,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    socket.read_to_end(&mut Vec::new()).unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].tools(), ["a"]);
    assert_eq!(requests[0].schema("a").as_deref(), Some(schema));
}

#[test]
fn faults_happen_as_often_as_they_should() {
    let server = ScriptedModel::start_blocking();
    let check = |prompt: &str, expected: &[&str]| {
        for expected in expected {
            let answer = ask(&server, "/v1/chat/completions", &openai(said(prompt), true));
            assert!(answer.contains(expected), "{prompt}: {answer}");
        }
    };
    check("FAIL 429 2 7\nSAY well", &["HTTP/1.1 429", "retry-after: 7", "\"content\":\"well\""]);
    check("FAIL 503", &["HTTP/1.1 503", "HTTP/1.1 503"]);
    check("FULL 1", &["context_length_exceeded", "DONE"]);
    check("GARBAGE", &["<html>"]);
    check("GARBAGE sse", &["{not json"]);
    check("DROP 1 1\nSAY aa bb", &["\"content\":\"aa \"", "[DONE]"]);
    check("STOP length", &["\"finish_reason\":\"length\""]);
    check("THINK hm", &["\"reasoning_content\":\"hm\""]);
    check("BATCH\nCALL look {\"a\":\"bcd\"}", &[r#""arguments":"{\"a\":\"bcd\"}""#]);
    let dropped = ask(&server, "/v1/chat/completions", &openai(said("DROP 1\nSAY cc dd"), true));
    assert!(dropped.contains("cc ") && !dropped.contains("dd") && !dropped.contains("[DONE]"), "{dropped}");
    assert_eq!(server.requests().last().unwrap().end, End::Cut);
}

#[tokio::test]
async fn a_client_that_leaves_is_seen() {
    let server = ScriptedModel::start().await;
    for (n, prompt) in ["HANG", "HANG 1\nSAY a b", "SLOW 600\nSAY a b"].into_iter().enumerate() {
        let socket = send(&server, "/v1/chat/completions", &openai(said(prompt), true));
        let open = server.wait_for(|requests| requests.len() == n + 1).await;
        assert_eq!(open[n].end, End::Open, "{prompt}");
        drop(socket);
        server.wait_for(|requests| requests[n].end == End::Disconnected).await;
    }
}

#[test]
fn broken_rules_are_named() {
    let check = |path: &str, body: Value, expected: &str| {
        let server = ScriptedModel::start_blocking();
        ask(&server, path, &body);
        let violations = server.violations();
        assert!(violations.iter().any(|what| what.contains(expected)), "{expected} is not in {violations:?}");
    };
    let call = json!({"role": "assistant", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]});
    let user = json!({"role": "user", "content": "hi"});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "r"});
    let chat = |messages: Value| json!({"model": "m", "messages": messages});
    let path = "/v1/chat/completions";
    check(path, chat(json!([user, call])), "call a has no answer before message 2");
    check(path, chat(json!([user, call, user])), "call a has no answer before message 2");
    check(path, chat(json!([user, result])), "answers \"a\", which is no open call");
    check(path, chat(json!([user, call, result, result])), "answers \"a\", which is no open call");
    check(path, chat(json!([user, {"role": "assistant", "content": null}])), "says nothing");
    check(path, json!({"messages": [user]}), "`model` is missing");
    check(path, json!({"model": "m", "messages": []}), "holds no message");
    check(path, json!({"model": "m", "messages": [user], "tools": []}), "`tools` is empty");
    let tool = json!({"function": {"name": "look", "parameters": {"type": "object"}}});
    check(path, json!({"model": "m", "messages": [user], "tools": [tool, tool]}), "look is offered twice");
    let tool = json!({"function": {"name": "look", "parameters": {"anyOf": []}}});
    check(path, json!({"model": "m", "messages": [user], "tools": [tool]}), "no schema of type object");

    let chat = |messages: Value| json!({"model": "m", "max_tokens": 1, "messages": messages});
    let path = "/v1/messages";
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]});
    let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "r"});
    let text = json!({"type": "text", "text": "t"});
    check(path, json!({"model": "m", "messages": [user]}), "`max_tokens` is missing");
    check(path, chat(json!([user, user])), "role \"user\" after \"user\"");
    check(path, chat(json!([user, call])), "the last message is the model's own");
    check(path, chat(json!([user, call, user])), "call a has no answer");
    check(
        path,
        chat(json!([user, call, {"role": "user", "content": [text, result]}])),
        "does not stand first",
    );
    check(path, chat(json!([{"role": "user", "content": [{"type": "text", "text": " "}]}])), "an empty text");
    check(path, chat(json!([{"role": "user", "content": ""}])), "message 0 is empty");
}

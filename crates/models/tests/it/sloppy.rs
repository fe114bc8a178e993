//! Streams that no decent server would send, and that some do.

use beeuni_models::{Api, Delta};
use beeuni_testkit::wire::Canned;

use crate::{all, model, request, short};

/// Reads a stream of these pieces, then the same bytes one by one.
async fn check(api: Api, pieces: &[&[u8]], expected: &[&str]) {
    let bytes = pieces.concat();
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    let whole = [bytes.as_slice()];
    for pieces in [pieces, &whole, &single] {
        let server = Canned::start(vec![Canned::events(pieces)]);
        let deltas = all(model(api, &server.url()).as_ref(), request("hi")).await;
        assert_eq!(short(&deltas, true), expected, "{}", String::from_utf8_lossy(&bytes));
    }
}

async fn openai(chunks: &[&str], expected: &[&str]) {
    let events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let pieces: Vec<&[u8]> = events.iter().map(|event| event.as_bytes()).collect();
    check(Api::OpenAi, &pieces, expected).await;
}

const DONE: &str = "[DONE]";
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

#[tokio::test]
async fn parallel_calls_whose_pieces_alternate() {
    openai(
        &[
            r#"{"choices":[{"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"other","arguments":"{"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"n\":"}},{"index":1,"function":{"arguments":"\"m\":2"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
            DONE,
        ],
        &["#9/3/0", "look:{\"n\":1}", "other:{\"m\":2}", "=Calls"],
    )
    .await;
}

#[tokio::test]
async fn whole_calls_of_other_servers() {
    // Ollama and Gemini: whole calls, index 0 for each, `stop`; with ids, without, with an object.
    let whole = |id: &str, index: &str, arguments: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"","tool_calls":[{{{id}{index}"type":"function","function":{{"name":"look","arguments":{arguments}}}}}]}}}}]}}"#
        )
    };
    let expected = ["look:{\"n\":1}", "look:{\"n\":2}", "=Calls"];
    let (one, two) = (r#""{\"n\":1}""#, r#""{\"n\":2}""#);
    for (ids, index) in [
        ([r#""id":"a","#, r#""id":"b","#], r#""index":0,"#),
        (["", ""], r#""index":0,"#),
        ([r#""id":"","#, r#""id":"","#], r#""index":0,"#),
        ([r#""id":"a","#, r#""id":"b","#], ""),
        (["", ""], ""),
        ([r#""id":null,"#, r#""id":null,"#], r#""index":null,"#),
    ] {
        openai(&[&whole(ids[0], index, one), &whole(ids[1], index, two), STOP], &expected).await;
        openai(
            &[&whole(ids[0], index, r#"{"n":1}"#), &whole(ids[1], index, r#"{"n":2}"#), STOP, DONE],
            &expected,
        )
        .await;
    }
    openai(&[&whole("", "", "null"), STOP], &["look:", "=Calls"]).await;
    openai(&[&whole("", "", "{\"n\": 0.10}"), STOP], &["look:{\"n\": 0.10}", "=Calls"]).await;
}

#[tokio::test]
async fn ids_and_names_in_every_piece() {
    let piece = |arguments: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"look","arguments":"{arguments}"}}}}]}}}}]}}"#
        )
    };
    openai(&[&piece(""), &piece("{"), &piece("}"), STOP], &["look:{}", "=Calls"]).await;
    let later = r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]}}]}"#;
    openai(&[&piece(""), later, STOP], &["look:{}", "=Calls"]).await;
}

#[tokio::test]
async fn missing_ids_are_made_and_doubled_ones_changed() {
    let call = |id: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"id":"{id}","function":{{"name":"look","arguments":"{{}}"}}}}]}}}}]}}"#
        )
    };
    let events: String = ["", "a", ""].iter().map(|id| format!("data: {}\n\n", call(id))).collect();
    let server =
        Canned::start(vec![Canned::events(&[events.as_bytes(), format!("data: {STOP}\n\n").as_bytes()])]);
    let mut ids: Vec<String> = Vec::new();
    for delta in all(model(Api::OpenAi, &server.url()).as_ref(), request("hi")).await {
        if let Ok(Delta::Call(call)) = delta {
            ids.push(call.id);
        }
    }
    assert_eq!(ids.len(), 3);
    ids.sort();
    ids.dedup();
    assert!(ids.len() == 3 && ids.iter().all(|id| !id.is_empty()), "{ids:?}");
}

#[tokio::test]
async fn texts_in_other_places() {
    openai(&[r#"{"choices":[{"delta":{"content":[{"type":"text","text":"hi"}]}}]}"#, STOP], &["hi", "=Stop"])
        .await;
    openai(&[r#"{"choices":[{"delta":{"content":null,"reasoning":"hm"}}]}"#, STOP], &["(hm)", "=Stop"]).await;
    openai(
        &[r#"{"choices":[{"delta":{"content":null,"refusal":"I cannot"}}]}"#, STOP],
        &["I cannot", "=Stop"],
    )
    .await;
    openai(
        &[r#"{"choices":[{"delta":{"content":"hi"}}],"usage":null,"error":null}"#, DONE],
        &["hi", "=Stop"],
    )
    .await;
    openai(&[r#"{"choices":null}"#, "{}", STOP], &["=Stop"]).await;
    let usage = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":1,"prompt_cache_hit_tokens":2}}"#;
    openai(&[usage], &["#4/1/2", "a", "=Stop"]).await;
}

#[tokio::test]
async fn line_ends_comments_and_split_letters() {
    let body = r#"{"choices":[{"delta":{"content":"grüße 🐝"},"finish_reason":"stop"}]}"#;
    for (begin, end) in [
        ("", "\n\n"),
        (": OPENROUTER PROCESSING\n\n", "\r\n\r\n"),
        ("\u{feff}:\r\r", "\r\r"),
        ("event: x\nid: 1\n", "\n\n"),
        ("", ""),
    ] {
        check(
            Api::OpenAi,
            &[begin.as_bytes(), b"data:", body.as_bytes(), end.as_bytes()],
            &["grüße 🐝", "=Stop"],
        )
        .await;
    }
}

#[tokio::test]
async fn a_long_line() {
    let text = "ü".repeat(500_000);
    let event = format!(r#"data: {{"choices":[{{"delta":{{"content":"{text}"}},"finish_reason":"stop"}}]}}"#);
    let pieces: Vec<&[u8]> = event.as_bytes().chunks(1001).chain([&b"\n\n"[..]]).collect();
    let server = Canned::start(vec![Canned::events(&pieces)]);
    let deltas = all(model(Api::OpenAi, &server.url()).as_ref(), request("hi")).await;
    assert!(short(&deltas, false) == [text.as_str(), "=Stop"]);

    let block = vec![b'x'; 1 << 20];
    let endless: Vec<&[u8]> =
        [&b"data: "[..]].into_iter().chain(std::iter::repeat_n(block.as_slice(), 40)).collect();
    let server = Canned::start(vec![Canned::events(&endless)]);
    let deltas = all(model(Api::OpenAi, &server.url()).as_ref(), request("hi")).await;
    assert_eq!(
        short(&deltas, false),
        [
            "!scripted/scripted-1: the provider's answer does not follow its protocol: an event of the stream is larger than 32 MiB"
        ]
    );
}

#[tokio::test]
async fn a_server_that_does_not_stream() {
    let body = r#"{"choices":[{"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let server = Canned::start(vec![Canned::status(200, "content-type: application/json\r\n", body)]);
    let deltas = all(model(Api::OpenAi, &server.url()).as_ref(), request("hi")).await;
    assert_eq!(short(&deltas, true), ["#1/2/0", "hi", "look:{}", "=Calls"]);

    let body = r#"{"error":{"message":"bad request","code":400}}"#;
    let server = Canned::start(vec![Canned::status(200, "content-type: application/json\r\n", body)]);
    let deltas = all(model(Api::OpenAi, &server.url()).as_ref(), request("hi")).await;
    assert_eq!(short(&deltas, true), ["!scripted/scripted-1: the provider answered 400: bad request"]);
}

#[tokio::test]
async fn a_stream_that_ends_too_early() {
    let cut = |text: &str| format!("!scripted/scripted-1: the connection broke {text}: it ended too early");
    let run = async |events: &str| {
        let server = Canned::start(vec![Canned::events(&[events.as_bytes()])]);
        let deltas = all(model(Api::OpenAi, &server.url()).as_ref(), request("hi")).await;
        let last = short(&deltas, false).pop().unwrap();
        last.split(" (http").next().unwrap().to_owned()
    };
    assert_eq!(
        run("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n").await,
        cut("in the middle of the answer")
    );
    assert_eq!(run("data: {\"choices\":[{\"delta\":{\"conte").await, cut("before the answer"));
    assert_eq!(run("").await, cut("before the answer"));
}

#[tokio::test]
async fn anthropic_as_others_speak_it() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"look","input":{"n": 0.10}}}"#;
    let events = [
        r#"{"type":"ping"}"#,
        r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":1}}}"#,
        start,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"some_new_event","index":0,"delta":{"type":"some_new_delta"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":8}}"#,
    ];
    let events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let pieces: Vec<&[u8]> = events.iter().map(|event| event.as_bytes()).collect();
    check(Api::Anthropic, &pieces, &["#10/1/3", "#10/8/3", "look:{\"n\": 0.10}", "=Calls"]).await;
}

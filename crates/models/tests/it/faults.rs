//! What goes wrong: retries, cuts, stops, full windows, refused keys, servers that are none.

use std::time::Duration;

use beeuni_models::{Api, Choice, ModelError, Policy, connect_with};
use beeuni_testkit::model::{End, ScriptedModel};
use beeuni_testkit::wire::Canned;
use futures::StreamExt as _;

use crate::{POLICY, WIRES, all, choice, model, request, short};

#[tokio::test]
async fn retries() {
    for api in WIRES {
        let server = ScriptedModel::start().await;
        let model = model(api, &server.url());
        let check = async |prompt: &str, expected: &[&str]| {
            let before = server.requests().len();
            let deltas = all(model.as_ref(), request(prompt)).await;
            let short: Vec<String> =
                short(&deltas, false).into_iter().map(|s| s.replace(&server.url(), "URL")).collect();
            assert_eq!(short, expected, "{api:?} {prompt}");
            server.requests().len() - before
        };
        assert_eq!(check("FAIL 429 1\nSAY well", &["~1 2", "well", "=Stop"]).await, 2);
        assert_eq!(check("FAIL 529 2\nSAY well", &["~1 2", "~2 4", "well", "=Stop"]).await, 3);
        assert_eq!(check("FAIL 503 1 9\nSAY well", &["~1 50", "well", "=Stop"]).await, 2);
        assert_eq!(check("DROP 0 1\nSAY well", &["~1 2", "well", "=Stop"]).await, 2);
        // Nothing of a call is given before it is whole, so a cut within its arguments is mended too.
        assert_eq!(check("DROP 2 1\nCALL look {\"a\":1}", &["~1 2", "look:{\"a\":1}", "=Calls"]).await, 2);
        let refused = "!scripted/scripted-1: the provider answered 500: scripted failure 500";
        assert_eq!(check("FAIL 500", &["~1 2", "~2 4", refused]).await, 3);
        let refused = "!scripted/scripted-1: the provider answered 400: scripted failure 400";
        assert_eq!(check("FAIL 400", &[refused]).await, 1);
        let path = if api == Api::OpenAi { "chat/completions" } else { "messages" };
        let deltas = all(model.as_ref(), request("DROP 1\nSAY half a sentence")).await;
        let short = short(&deltas, false);
        assert_eq!((short.len(), short[0].as_str()), (2, "half "), "{short:?}");
        let said = "!scripted/scripted-1: the connection broke in the middle of the answer: ";
        assert!(
            short[1].starts_with(said) && short[1].ends_with(&format!("({}/v1/{path})", server.url())),
            "{short:?}"
        );
    }
}

#[tokio::test]
async fn a_full_window() {
    for api in WIRES {
        let server = ScriptedModel::start().await;
        let deltas = all(model(api, &server.url()).as_ref(), request("FULL")).await;
        assert_eq!(server.requests().len(), 1);
        assert!(matches!(deltas.as_slice(), [Err(ModelError::ContextFull { .. })]), "{deltas:?}");
        if api == Api::Anthropic {
            let text = deltas[0].as_ref().unwrap_err().to_string();
            insta::assert_snapshot!(text, @"scripted/scripted-1: the conversation no longer fits into the model's context window (prompt is too long: 250000 tokens > 200000 maximum); start a new session or use a model with a larger window");
        }
    }
}

#[tokio::test]
async fn a_refused_key() {
    for api in WIRES {
        for status in [401, 403] {
            let body = r#"{"error":{"message":"Incorrect API key provided: sk-secret-1."}}"#;
            let server =
                Canned::start(vec![Canned::status(status, "content-type: application/json\r\n", body)]);
            let short = short(&all(model(api, &server.url()).as_ref(), request("hi")).await, false);
            let expected = format!(
                "!scripted/scripted-1: the provider refused the key ({status}: Incorrect API key provided: [key].); check SCRIPTED_KEY"
            );
            assert_eq!(short, [expected]);
            assert_eq!(server.served(), 1);
        }
    }
}

#[tokio::test]
async fn errors_inside_a_stream() {
    let check = async |api: Api, event: &str, expected: &[&str]| {
        let server = Canned::start(vec![Canned::events(&[event.as_bytes(), b"\n\n"])]);
        let short = short(&all(model(api, &server.url()).as_ref(), request("hi")).await, false);
        assert_eq!(short, expected, "{event}");
    };
    let busy = r#"event: error
data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    check(
        Api::Anthropic,
        busy,
        &["~1 2", "~2 4", "!scripted/scripted-1: the provider answered 529: Overloaded"],
    )
    .await;
    let full = r#"data: {"error":{"code":400,"message":"This endpoint's maximum context length is 9"}}"#;
    check(Api::OpenAi, full, &["!scripted/scripted-1: the conversation no longer fits into the model's context window (This endpoint's maximum context length is 9); start a new session or use a model with a larger window"]).await;
    let key = r#"data: {"error":{"type":"authentication_error","message":"no"}}"#;
    check(
        Api::OpenAi,
        key,
        &["!scripted/scripted-1: the provider refused the key (401: no); check SCRIPTED_KEY"],
    )
    .await;
}

#[tokio::test]
async fn servers_that_are_none() {
    for api in WIRES {
        let server = ScriptedModel::start().await;
        let model = model(api, &server.url());
        let deltas = all(model.as_ref(), request("GARBAGE")).await;
        assert_eq!(
            short(&deltas, false),
            [
                "!scripted/scripted-1: the provider's answer does not follow its protocol: it is text/html, not an event stream: <html><body>It works!</body></html>"
            ]
        );
        let deltas = all(model.as_ref(), request("GARBAGE sse")).await;
        assert!(matches!(deltas.as_slice(), [Err(ModelError::Protocol { .. })]), "{deltas:?}");
        let redirect = Canned::start(vec![Canned::status(302, "location: http://evil.example/\r\n", "")]);
        let deltas = all(crate::model(api, &redirect.url()).as_ref(), request("hi")).await;
        assert_eq!(
            short(&deltas, false),
            [
                "!scripted/scripted-1: the provider answered 302: it redirects to another address; give that one as the provider's address"
            ]
        );
    }
}

#[tokio::test]
async fn nobody_there() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://user:pass-word@127.0.0.1:{port}/v1?token=hush");
    for key in [None, choice(Api::OpenAi, "").key] {
        let choice = Choice { key, ..choice(Api::OpenAi, &url) };
        let model = connect_with(&choice, POLICY).unwrap();
        let shown = format!("{model:?}");
        let deltas = all(model.as_ref(), request("hi")).await;
        let text = format!("{deltas:?} {shown}").replace(&port.to_string(), "PORT");
        for secret in ["pass-word", "hush", "sk-secret"] {
            assert!(!text.contains(secret), "{text}");
        }
        let text =
            deltas.last().unwrap().as_ref().unwrap_err().to_string().replace(&port.to_string(), "PORT");
        insta::allow_duplicates! {
            insta::assert_snapshot!(text, @"scripted/scripted-1: no answer: Connection refused (os error 111) (http://127.0.0.1:PORT/v1/chat/completions)");
        }
        assert_eq!(deltas.len(), 3);
    }
}

#[tokio::test]
async fn a_silent_server_is_not_waited_for_for_ever() {
    for api in WIRES {
        let server = ScriptedModel::start().await;
        let policy = Policy { attempts: 1, idle: Duration::from_secs(1), ..POLICY };
        let model = connect_with(&choice(api, &server.url()), policy).unwrap();
        let check = async |prompt: &str, expected: &str| {
            let deltas = all(model.as_ref(), request(prompt)).await;
            let error = deltas.last().unwrap().as_ref().unwrap_err().to_string();
            assert!(error.contains(expected), "{prompt}: {error}");
        };
        futures::join!(
            check("HANG", "nothing came for 1 s"),
            check("HANG 0\nSAY a", "the connection broke before the answer: nothing came for 1 s"),
            check(
                "HANG 1\nSAY a b",
                "the connection broke in the middle of the answer: nothing came for 1 s"
            ),
        );
        server.wait_for(|requests| requests.iter().all(|request| request.end == End::Disconnected)).await;
    }
}

/// Dropping the stream closes the connection, whatever it waits for.
#[tokio::test]
async fn a_stop_reaches_the_provider() {
    for api in WIRES {
        let server = ScriptedModel::start().await;
        let model = model(api, &server.url());
        for (n, prompt) in ["HANG", "HANG 1\nSAY a b", "SLOW 600\nSAY a b"].into_iter().enumerate() {
            let mut stream = model.stream(request(prompt));
            let read = async { while stream.next().await.is_some() {} };
            tokio::select! {
                () = read => panic!("{prompt} ended"),
                _ = server.wait_for(|requests| requests.len() > n) => {}
            }
            drop(stream);
            server.wait_for(|requests| requests[n].end == End::Disconnected).await;
        }
    }
}

#[tokio::test]
async fn a_pause_can_be_stopped() {
    let server = ScriptedModel::start().await;
    let policy = Policy { base: Duration::from_secs(3600), longest: Duration::from_secs(3600), ..POLICY };
    let model = connect_with(&choice(Api::OpenAi, &server.url()), policy).unwrap();
    let mut stream = model.stream(request("FAIL 500"));
    let first = stream.next().await;
    assert!(
        matches!(first, Some(Ok(beeuni_models::Delta::Retrying { delay_ms: 3_600_000, .. }))),
        "{first:?}"
    );
    drop(stream);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn many_answers_at_once() {
    let server = ScriptedModel::start().await;
    let model = model(Api::OpenAi, &server.url());
    let answers = (0..64).map(|n| {
        let model = model.clone();
        async move { (n, short(&all(model.as_ref(), request(&format!("SAY {n}"))).await, false)) }
    });
    for (n, answer) in futures::future::join_all(answers).await {
        assert_eq!(answer, [n.to_string(), "=Stop".to_owned()]);
    }
}

//! Models that do what no wire lets a scripted server do.

use std::sync::{Arc, Mutex};

use beeuni_models::{Call, Delta, FinishReason, Model, ModelError, ModelStream, Request};
use futures::StreamExt as _;

use crate::stage::{Plan, Stage};

/// Gives the same deltas first, then a plain answer to every later request.
#[derive(Debug)]
struct Odd {
    first: Mutex<Option<Vec<Result<Delta, ModelError>>>>,
    requests: Mutex<Vec<Request>>,
}

impl Model for Odd {
    fn name(&self) -> &str {
        "odd/1"
    }

    fn stream(&self, request: Request) -> ModelStream {
        self.requests.lock().unwrap().push(request);
        let plain = || vec![Ok(Delta::Text("fine".into())), Ok(Delta::Finish(FinishReason::Stop))];
        futures::stream::iter(self.first.lock().unwrap().take().unwrap_or_else(plain)).boxed()
    }
}

async fn check(first: Vec<Delta>, expected: &[&str]) -> Vec<Request> {
    let odd = Arc::new(Odd {
        first: Mutex::new(Some(first.into_iter().map(Ok).collect())),
        requests: Mutex::default(),
    });
    let own_model = Some(Arc::clone(&odd) as Arc<dyn Model>);
    let stage = Stage::with(Plan { own_model, ..Plan::default() }).await;
    let lines = stage.turn("s1", "hello").await;
    for part in expected {
        assert!(lines.contains(part), "{part} is not in\n{}", &lines[..lines.len().min(2000)]);
    }
    let lines = stage.turn("s1", "again").await;
    assert!(lines.ends_with("turn 2 stop\n"), "{lines}");
    std::mem::take(&mut odd.requests.lock().unwrap())
}

fn call(id: &str, arguments: &str) -> Delta {
    Delta::Call(Call { id: id.into(), name: "echo".into(), arguments: arguments.into() })
}

#[tokio::test]
async fn answers_that_are_none() {
    let stop = || Delta::Finish(FinishReason::Stop);
    check(
        vec![Delta::Text("half".into())],
        &["say half", "turn 1 error: odd/1: the provider's answer does not follow"],
    )
    .await;
    check(vec![], &["turn 1 error: odd/1: ", "the stream ended before the answer did"]).await;
    check(vec![stop()], &["turn 1 stop"]).await;
    check(vec![Delta::Text(" \n".into()), stop()], &["turn 1 stop"]).await;
    check(vec![Delta::Text("x".repeat(5 << 20)), stop()], &["the answer never ends"]).await;
    let many = (0..300).map(|n| call(&n.to_string(), "{}")).collect();
    check(many, &["the calls never end"]).await;
    let filtered = vec![Delta::Finish(FinishReason::Filtered)];
    check(filtered, &["turn 1 error: odd/1: the provider's filter"]).await;
}

#[tokio::test]
async fn calls_that_say_stop_or_share_an_id() {
    let first = vec![
        call("", "{\"n\":1}"),
        call("x", "{\"n\":2}"),
        call("x", "{\"n\":3}"),
        Delta::Finish(FinishReason::Stop),
    ];
    let requests = check(
        first,
        &["end echo ok: {\"n\":1}", "end echo ok: {\"n\":2}", "end echo ok: {\"n\":3}", "say fine"],
    )
    .await;
    let mut ids = Vec::new();
    let mut answers = Vec::new();
    for message in &requests[1].messages {
        match message {
            beeuni_models::Message::Assistant { calls, .. } => {
                ids.extend(calls.iter().map(|call| call.id.clone()))
            }
            beeuni_models::Message::Tool { call_id, content, .. } => {
                answers.push((call_id.clone(), content.clone()))
            }
            beeuni_models::Message::User { .. } => {}
        }
    }
    assert_eq!(ids, ["call_0", "x", "call_2"]);
    let expected = [("call_0", "{\"n\":1}"), ("x", "{\"n\":2}"), ("call_2", "{\"n\":3}")];
    assert_eq!(answers, expected.map(|(id, content)| (id.to_owned(), content.to_owned())));
}

/// A cut-off answer whose last call is half: the call is answered, and the model goes on.
#[tokio::test]
async fn a_call_that_was_cut_off() {
    let first = vec![call("1", "{\"n\":"), Delta::Finish(FinishReason::Length)];
    check(first, &["end echo error: arguments are not a JSON object: EOF", "say fine", "turn 1 stop"]).await;
}

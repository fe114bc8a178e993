//! `webfetch` against a server of the test's own.

use axum::Router;
use axum::http::StatusCode;
use axum::response::{Html, Redirect};
use axum::routing::get;
use beeuni_harness::Harness;
use beeuni_manifest::{Action, Agent};
use beeuni_protocol::event::ToolStatus;

use crate::stage::{Plan, Stage, agent, rules};

const PAGE: &str = "<html><head><title>Tides</title></head><body><article><h1>Tides</h1><p>The sea rises and falls \
twice a day, and the moon is to blame for most of it, as anyone on a beach can tell.</p></article></body></html>";

/// A server of this machine; gives `http://127.0.0.1:<port>`.
async fn server() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let silent = || async { std::future::pending::<String>().await };
    let router = Router::new()
        .route("/page", get(|| async { Html(PAGE) }))
        .route("/plain", get(|| async { "just text" }))
        .route("/gone", get(|| async { (StatusCode::NOT_FOUND, "no such page") }))
        .route("/away", get(|| async { Redirect::to("/plain") }))
        .route("/silent", get(silent));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

#[tokio::test]
async fn pages() {
    let url = server().await;
    let permission = rules(&[("webfetch", "*/plain", Action::Deny)]);
    let agents = vec![("lead", Agent { permission, ..agent() })];
    let reachable = vec!["127.0.0.1".parse().unwrap()];
    let stage = Stage::with(Plan { agents, reachable, unattended: true, ..Plan::default() }).await;
    let fetch = async |path: &str| stage.call("webfetch", &format!(r#"{{"url":"{url}{path}"}}"#)).await;
    let (status, words) = fetch("/page").await;
    assert_eq!(status, ToolStatus::Ok, "{words}");
    assert!(words.starts_with(&format!("{url}/page\nTides\n\n")) && words.contains("twice a day"), "{words}");
    assert!(!words.contains('<'), "{words}");
    let gone = format!("the server answered 404: {url}/gone\n\nno such page");
    assert_eq!(fetch("/gone").await, (ToolStatus::Error, gone));
    // Neither another spelling nor a redirect leads past a rule.
    let denied =
        (ToolStatus::Denied, format!("a permission rule of agent lead forbids webfetch ({url}/plain)"));
    for path in ["/plain", "/x/../plain", "/away"] {
        assert_eq!(fetch(path).await, denied, "{path}");
    }
    let (status, words) = stage.call("webfetch", r#"{"url":"file:///etc/passwd"}"#).await;
    assert_eq!(status, ToolStatus::Error, "{words}");

    let from = stage.log.len();
    stage.prompt("s1", &format!("CALL webfetch {{\"url\":\"{url}/silent\"}}\nSAY ok")).await;
    stage.log.started(from, "webfetch").await;
    stage.native.stop("s1").await;
    assert!(stage.log.lines(from).contains("end webfetch aborted"));
}

/// What is not public is refused, by the fetcher itself.
#[tokio::test]
async fn private_addresses() {
    let url = server().await;
    let stage = Stage::new().await;
    let (status, words) = stage.call("webfetch", &format!(r#"{{"url":"{url}/page"}}"#)).await;
    assert_eq!(status, ToolStatus::Error);
    assert!(words.contains("is not public"), "{words}");
}

//! Sizes, times, and answers that are made to hurt.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::routing::get;
use beeuni_fetch::{FetchError, Format, Options};

use crate::{PATIENT, answer, fetch, fetch_with, options, page_of, said, serve};

#[tokio::test]
async fn a_long_page_is_cut_between_characters() {
    let site = page_of("text/plain; charset=utf-8", "ä".repeat(100)).await;
    for (max_bytes, expected, truncated) in
        [(201, 100, false), (200, 100, false), (199, 99, true), (0, 0, true)]
    {
        let page = fetch_with(Options { max_bytes, ..options() }, &site.url, Format::Text).await.unwrap();
        assert_eq!((page.content, page.truncated), ("ä".repeat(expected), truncated), "{max_bytes}");
    }
}

#[tokio::test]
async fn a_gzip_bomb_is_bounded_by_what_it_unpacks_to() {
    let packed = gzip(&vec![b'a'; 64 * 1024 * 1024]);
    assert!(packed.len() < 1024 * 1024);
    let site = answer(([(CONTENT_TYPE, "text/plain"), (CONTENT_ENCODING, "gzip")], packed)).await;
    let page = fetch_with(Options { max_bytes: 1000, ..options() }, &site.url, Format::Text).await.unwrap();
    assert_eq!((page.content.len(), page.truncated), (1000, true));
}

/// Packs with the system's gzip, as no crate of ours packs.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut file = std::env::temp_dir();
    file.push(format!("beeuni-fetch-{}", std::process::id()));
    std::fs::File::create(&file).unwrap().write_all(bytes).unwrap();
    let packed = std::process::Command::new("gzip").arg("-c").arg(&file).output().unwrap().stdout;
    std::fs::remove_file(&file).unwrap();
    packed
}

#[tokio::test]
async fn an_answer_that_never_ends_is_cut_or_times_out() {
    let router = Router::new()
        .route(
            "/endless",
            get(|| async {
                let pieces = futures::stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(1000)));
                ([(CONTENT_TYPE, "text/plain")], Body::from_stream(pieces))
            }),
        )
        .route(
            "/silent",
            get(|| async { Body::from_stream(futures::stream::pending::<std::io::Result<String>>()) }),
        )
        .route("/deaf", get(std::future::pending::<String>));
    let site = serve(router).await;
    let page = fetch(&format!("{}/endless", site.url), Format::Text).await.unwrap();
    assert_eq!((page.content.len(), page.truncated), (5 * 1024 * 1024, true));
    for path in ["silent", "deaf"] {
        let short = Options { timeout: Duration::from_millis(100), ..options() };
        let error = fetch_with(short, &format!("{}/{path}", site.url), Format::Text).await.unwrap_err();
        assert_eq!(said(&error, &site), format!("<site>/{path} was not read within 0.1 s"));
    }
}

#[tokio::test]
async fn dropping_the_future_ends_the_request() {
    let (asked, mut was_asked) = tokio::sync::mpsc::channel::<tokio::sync::oneshot::Receiver<()>>(1);
    let router = Router::new().fallback(move || {
        let asked = asked.clone();
        async move {
            let (alive, ended) = tokio::sync::oneshot::channel::<()>();
            asked.send(ended).await.unwrap();
            std::future::pending::<()>().await;
            drop(alive);
        }
    });
    let site = serve(router).await;
    let url = site.url.clone();
    let call = tokio::spawn(async move { fetch(&url, Format::Text).await });
    let ended = was_asked.recv().await.unwrap();
    call.abort();
    // The server's side of the request is dropped when the connection closes.
    assert!(tokio::time::timeout(PATIENT, ended).await.unwrap().is_err());
}

#[tokio::test]
async fn connections_that_fail_say_why() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let half = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nhalf";
            stream.write_all(half.as_bytes()).unwrap();
        }
    });
    for url in [format!("http://{address}/half"), format!("https://{address}/no-tls")] {
        let error = fetch(&url, Format::Text).await.unwrap_err();
        assert!(matches!(&error, FetchError::Unreachable { reason, .. } if !reason.is_empty()), "{error}");
    }
    let error = fetch("http://127.0.0.1:1/", Format::Text).await.unwrap_err();
    assert_eq!(error.to_string(), "http://127.0.0.1:1/ could not be read: Connection refused (os error 111)");
}

#[tokio::test]
async fn html_that_is_made_to_explode() {
    let deep = "<div>".repeat(200_000);
    let formatting = (0..200).map(|n| format!("<b id={n}>")).collect::<String>();
    let formatting = format!("<p>{formatting}{}", "<p>x".repeat(100_000));
    let foreign = format!("<svg>{}", "<td>".repeat(200_000));
    let tables = "<table><td>".repeat(100_000);
    let options =
        format!("<select><button><selectedcontent></button>{}", "<option selected><b>".repeat(10_000));
    let too_deep = "its HTML is nested more than 256 levels deep";
    let too_many = "its HTML makes more than 200000 elements";
    let table = [
        (deep, Some(too_deep)),
        (formatting, Some(too_many)),
        (foreign, Some(too_deep)),
        (tables, Some(too_deep)),
        ("<b>".repeat(200_000), Some(too_deep)),
        ("<p>a".repeat(250_000), Some(too_many)),
        (format!("{}hi", "<div>".repeat(250)), None),
        (options, Some(too_deep)),
    ];
    for (html, expected) in table {
        let start: String = html.chars().take(20).collect();
        let site = page_of("text/html", html).await;
        match (fetch(&site.url, Format::Markdown).await, expected) {
            (Err(error), Some(reason)) => {
                assert_eq!(
                    said(&error, &site),
                    format!("<site>/ cannot be made readable: {reason}"),
                    "{start}"
                );
            }
            (Ok(page), None) => assert_eq!(page.content, "hi", "{start}"),
            (other, _) => panic!("{start}: {other:?}"),
        }
    }
    let deep = "<div>".repeat(1000);
    let site = page_of("text/html", deep.clone()).await;
    assert_eq!(fetch(&site.url, Format::Html).await.unwrap().content, deep);
}

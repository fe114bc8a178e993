//! The fetcher against servers of its own.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod addresses;
mod bounds;
mod pages;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use axum::Router;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use beeuni_fetch::{FetchError, Fetcher, Format, Options, Page};

/// A server that ends with the test.
struct Site {
    url: String,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(router: Router) -> Site {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Site { url, task }
}

/// A server with one answer for every path.
async fn answer(response: impl IntoResponse + Clone + Send + Sync + 'static) -> Site {
    serve(Router::new().fallback(any(move || std::future::ready(response.clone())))).await
}

async fn page_of(content_type: &'static str, body: impl Into<Vec<u8>>) -> Site {
    let body = body.into();
    answer(([(CONTENT_TYPE, content_type)], body)).await
}

fn options() -> Options {
    Options { allow: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)], ..Options::default() }
}

async fn fetch_with(options: Options, url: &str, format: Format) -> Result<Page, FetchError> {
    Fetcher::new(options).unwrap().fetch(url, format).await
}

async fn fetch(url: &str, format: Format) -> Result<Page, FetchError> {
    fetch_with(options(), url, format).await
}

fn redirect(to: &str) -> Response {
    let headers: [(HeaderName, String); 1] = [(LOCATION, to.to_owned())];
    (StatusCode::FOUND, headers).into_response()
}

/// What an error says, without the port that differs from run to run.
fn said(error: &FetchError, site: &Site) -> String {
    error.to_string().replace(&site.url, "<site>")
}

const PATIENT: Duration = Duration::from_secs(60);

//! A small order service on loopback, for the demo: the kind of HTTP API that a team's tool talks to.

use std::net::SocketAddr;

use anyhow::Result;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The key that the service asks for; the demo hands it to the tool as a secret.
pub const KEY: &str = "orders-demo-key-7f3a";

/// Starts the service on a free port; it ends with the runtime.
pub async fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/v1/orders/{id}", get(order));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

async fn order(headers: HeaderMap, Path(id): Path<String>) -> (StatusCode, Json<Value>) {
    let wanted = format!("Bearer {KEY}");
    if headers.get(AUTHORIZATION).is_none_or(|given| given.as_bytes() != wanted.as_bytes()) {
        return (StatusCode::UNAUTHORIZED, Json(json!({ "error": "a valid key is needed" })));
    }
    match id.as_str() {
        "A-1042" => (
            StatusCode::OK,
            Json(json!({ "id": id, "status": "shipped", "carrier": "Alpine Parcel", "items": 3 })),
        ),
        _ => (StatusCode::NOT_FOUND, Json(json!({ "error": format!("no order {id}") }))),
    }
}

//! A model server whose answers are scripted by the prompt that it gets.
//!
//! It speaks the OpenAI-compatible chat API and the Anthropic messages API, streaming and plain, on 127.0.0.1. The
//! last user message that holds a script decides; other text around it is ignored. One directive a line:
//!
//! | line | effect |
//! |---|---|
//! | `CALL <tool> <text>` | a turn that calls the tool; the text goes out untouched, no text is `{}`, `EMPTY` is no text at all |
//! | `CALL! <tool> <text>` | the same, even when the request offers no tools |
//! | `+ <tool> <text>` | joins the `CALL` before it as a parallel call |
//! | `SAY <text>` | says this; several lines are joined |
//! | `THINK <text>` | thinks this first |
//! | `SLOW <seconds>` | trickles the text, with some `tick`s at its end |
//! | `FAIL <status> [times] [retry-after]` | that HTTP status, for the first `times` requests only |
//! | `FULL [times]` | the provider's own error for a context window that overflows |
//! | `DROP <n> [times]` | cuts the connection after `n` deltas |
//! | `HANG [n]` | never answers, or falls silent after `n` deltas |
//! | `GARBAGE [sse]` | a page that is no model's answer, or an event stream that is none |
//! | `BATCH` | the whole answer at once, each call in one piece, as some servers do |
//! | `STOP <reason>` | this finish reason, in the wire's own word |
//! | `USAGE <input> <output> [cached]` | these token counts instead of 10, 5 and 0 |
//!
//! A directive belongs to the turn in which it stands: a turn ends with its `CALL` (and `+` lines), the last turn is
//! the final answer. Without `SAY` the final answer is `DONE <last tool result>`. `times` counts per script and turn.
//! A request without a script is answered with [`NO_SCRIPT`].

mod answer;
mod received;
mod rules;
mod script;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use futures::stream;
use tokio::sync::{Notify, oneshot};

use answer::Piece;
pub use received::{End, Received, Wire};
use script::{Fault, Turn};

/// The answer to a request in which no script was found.
pub const NO_SCRIPT: &str = "no script in the prompt";

/// The largest request that is read, in bytes.
const MAX_BODY: usize = 256 << 20;

/// How long [`ScriptedModel::wait_for`] waits before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server. Ends when dropped. It runs on a thread of its own, so a test may block.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    requests: Mutex<Vec<Received>>,
    failures: Mutex<HashMap<(String, usize), u32>>,
    ids: AtomicU64,
    changed: Notify,
}

impl ScriptedModel {
    /// Starts a server on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// When the machine gives no port or no thread.
    pub async fn start() -> Self {
        Self::start_blocking()
    }

    /// The same for a test without an async runtime.
    ///
    /// # Panics
    /// When the machine gives no port or no thread.
    #[allow(clippy::expect_used, reason = "a test cannot go on without its server")]
    #[must_use]
    pub fn start_blocking() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("no free port on 127.0.0.1");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("the address of a bound listener");
        let shared = Arc::new(Shared::default());
        let router = router(Arc::clone(&shared));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime for the server");
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener for tokio");
                tokio::select! {
                    _ = stopped => {}
                    served = axum::serve(listener, router).into_future() => served.expect("the server runs"),
                }
            });
        });
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// `http://127.0.0.1:<port>`, the base address as Anthropic's clients want it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `http://127.0.0.1:<port>/v1`, the base address as OpenAI's clients want it.
    #[must_use]
    pub fn openai_url(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// What was asked so far, oldest first. `/v1/models` is not counted.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        self.shared.requests().clone()
    }

    /// Waits until the requests fulfil a condition and gives them.
    ///
    /// # Panics
    /// After a minute, with what has been asked by then.
    pub async fn wait_for(&self, condition: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let fulfilled = async {
            loop {
                let changed = self.shared.changed.notified();
                tokio::pin!(changed);
                // Enabled before the look, so that a change right after it is not missed.
                changed.as_mut().enable();
                let requests = self.requests();
                if condition(&requests) {
                    return requests;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(PATIENCE, fulfilled).await {
            Ok(requests) => requests,
            Err(_) => panic!("waited {PATIENCE:?} in vain; requests so far: {:#?}", self.requests()),
        }
    }

    /// What the requests did that a real provider would refuse; tests assert that it is empty.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        let requests = self.shared.requests();
        let each = requests.iter().enumerate();
        each.flat_map(|(n, request)| {
            rules::broken(request).into_iter().map(move |what| format!("request {n}: {what}"))
        })
        .collect()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server's thread was printed by it already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn requests(&self) -> MutexGuard<'_, Vec<Received>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True while a fault that holds for `times` requests has not happened that often.
    fn still_fails(&self, script: &str, turn: usize, times: Option<u32>) -> bool {
        let Some(times) = times else { return true };
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry((script.to_owned(), turn)).or_default();
        *count += 1;
        *count <= times
    }

    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }
}

/// Notes how the answer to one request ended; one that is dropped unfinished was given up by the client.
struct Ending {
    shared: Arc<Shared>,
    index: usize,
    end: End,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(request) = self.shared.requests().get_mut(self.index) {
            request.end = self.end;
        }
        self.shared.changed.notify_waiters();
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/models", get(async || json(StatusCode::OK, answer::models())))
        .route("/v1/chat/completions", post(answer_openai))
        .route("/v1/messages", post(answer_anthropic))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(shared)
}

async fn answer_openai(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    respond(shared, Received::new(Wire::OpenAi, &method, &uri, &headers, &body)).await
}

async fn answer_anthropic(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    respond(shared, Received::new(Wire::Anthropic, &method, &uri, &headers, &body)).await
}

async fn respond(shared: Arc<Shared>, request: Received) -> Response {
    let wire = request.wire;
    let plan = script::plan(&request);
    let streams = request.json["stream"] == true;
    let with_usage = wire == Wire::Anthropic || request.json["stream_options"]["include_usage"] == true;
    let index = {
        let mut requests = shared.requests();
        requests.push(request);
        requests.len() - 1
    };
    shared.changed.notify_waiters();
    let mut ending = Ending { shared: Arc::clone(&shared), index, end: End::Disconnected };

    let Turn { fault, .. } = &plan.turn;
    let fault = fault.filter(|fault| shared.still_fails(&plan.script, plan.number, fault.times()));
    let mut cut = usize::MAX;
    match fault {
        Some(Fault::Fail { status, retry_after, .. }) => {
            ending.end = End::Answered;
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = json(status, answer::failure(wire, status.as_u16()));
            if let Some(seconds) = retry_after {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            return response;
        }
        Some(Fault::Full { .. }) => {
            ending.end = End::Answered;
            return json(StatusCode::BAD_REQUEST, answer::full(wire));
        }
        Some(Fault::Garbage { sse: false }) => {
            ending.end = End::Answered;
            return ([(header::CONTENT_TYPE, "text/html")], answer::PAGE).into_response();
        }
        Some(Fault::Garbage { sse: true }) => {
            ending.end = End::Answered;
            return ([(header::CONTENT_TYPE, "text/event-stream")], answer::BROKEN_STREAM).into_response();
        }
        Some(Fault::Hang { after: None }) => {
            // The client alone can end this: its leaving drops this future and with it `ending`.
            let _ending = ending;
            return pending().await;
        }
        Some(Fault::Hang { after: Some(n) } | Fault::Drop { after: n, .. }) => cut = n,
        None => {}
    }

    let first_id = shared.next_id() * 100;
    if !streams {
        ending.end = End::Answered;
        return json(StatusCode::OK, answer::whole(wire, &plan.turn, first_id));
    }
    let mut pieces = answer::pieces(wire, &plan.turn, first_id, with_usage);
    let pause =
        plan.turn.slow / u32::try_from(pieces.iter().filter(|piece| piece.delta).count().max(1)).unwrap_or(1);
    if plan.turn.batch {
        pieces = vec![Piece { delta: true, text: pieces.into_iter().map(|piece| piece.text).collect() }];
    }
    let hangs = matches!(fault, Some(Fault::Hang { .. }));
    let body = Body::from_stream(event_stream(pieces, pause, cut, hangs, ending));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Sends the pieces one by one. After `cut` deltas it falls silent, or breaks the connection.
fn event_stream(
    pieces: Vec<Piece>,
    pause: Duration,
    cut: usize,
    hangs: bool,
    ending: Ending,
) -> impl futures::Stream<Item = Result<Bytes, std::io::Error>> {
    let state = (pieces.into_iter().peekable(), 0_usize, ending);
    stream::unfold(state, move |(mut pieces, mut deltas, mut ending)| async move {
        // Waiting makes the server write what it has: without it a cut could overtake the pieces before it.
        tokio::task::yield_now().await;
        let piece = pieces.peek()?;
        if piece.delta && deltas >= cut {
            if hangs {
                pending::<Infallible>().await;
            }
            ending.end = End::Cut;
            let broken = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "scripted cut");
            return Some((Err(broken), (Vec::new().into_iter().peekable(), deltas, ending)));
        }
        let piece = pieces.next()?;
        if piece.delta {
            deltas += 1;
            tokio::time::sleep(pause).await;
        }
        if pieces.peek().is_none() {
            ending.end = End::Answered;
        }
        Some((Ok(Bytes::from(piece.text)), (pieces, deltas, ending)))
    })
}

fn json(status: StatusCode, value: serde_json::Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

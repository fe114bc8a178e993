//! One connection per request: send, read the answer, send again where that may help.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc::{self, Sender};
use futures::{SinkExt as _, StreamExt as _, stream};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use tokio::time::timeout;

use crate::address::{self, ConnectError, root_cause};
use crate::choose::{Api, Choice, Key};
use crate::fault::{self, Kind};
use crate::model::{Delta, Model, ModelError, ModelStream, Request};
use crate::policy::Policy;
use crate::sse;
use crate::wire::{Broken, Decoder, Progress};
use crate::{anthropic, openai};

/// How long an answer that lacks nothing is read on for its usage.
const GRACE: Duration = Duration::from_secs(5);

/// How long an error's body is read, and the most bytes of it.
const ERROR_TIME: Duration = Duration::from_secs(10);
const ERROR_BYTES: usize = 64 << 10;

/// The most bytes of an answer that comes in one piece instead of a stream.
const WHOLE_BYTES: usize = 32 << 20;

/// The provider that wants a newer name for the limit of the output than all who copy its API.
const OPENAI_HOST: &str = "api.openai.com";

/// Makes a choice a model, with the usual patience. Nothing is sent yet.
///
/// # Errors
/// When the address is none, or the machine has no certificates for a secure one.
pub fn connect(choice: &Choice) -> Result<Arc<dyn Model>, ConnectError> {
    connect_with(choice, Policy::default())
}

/// The same with another patience.
///
/// # Errors
/// As [`connect`].
pub fn connect_with(choice: &Choice, policy: Policy) -> Result<Arc<dyn Model>, ConnectError> {
    let url = address::endpoint(choice)?;
    let client = address::client(&choice.name, &url)?;
    Ok(Arc::new(Connected {
        inner: Arc::new(Inner {
            name: choice.name.clone(),
            model: choice.model().to_owned(),
            api: choice.api,
            shown: address::shown(&url),
            url,
            key: choice.key.clone(),
            key_env: choice.key_env.clone(),
            output: choice.output,
            client,
            policy,
        }),
    }))
}

struct Inner {
    name: String,
    model: String,
    api: Api,
    url: Url,
    shown: String,
    key: Option<Key>,
    key_env: Option<String>,
    output: Option<u32>,
    client: Client,
    policy: Policy,
}

#[derive(Clone)]
struct Connected {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Connected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connected")
            .field("name", &self.inner.name)
            .field("url", &self.inner.shown)
            .finish_non_exhaustive()
    }
}

impl Model for Connected {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn stream(&self, request: Request) -> ModelStream {
        let (sender, receiver) = mpsc::channel(16);
        let inner = Arc::clone(&self.inner);
        // The work runs only while the stream is read, and ends with it: whoever drops the stream drops the connection.
        let work =
            stream::once(async move { inner.answer(&request, sender).await }).filter_map(async |()| None);
        stream::select(receiver, work).boxed()
    }
}

/// Where an answer's pieces go.
struct Outlet {
    sender: Sender<Result<Delta, ModelError>>,
    /// True once the user may have seen something of this answer.
    given: bool,
}

impl Outlet {
    async fn give(&mut self, delta: Delta) {
        self.given |= matches!(delta, Delta::Text(_) | Delta::Reasoning(_) | Delta::Call(_));
        // The reader owns the sender's other end and this very future: while one lives, so does the other.
        let _ = self.sender.send(Ok(delta)).await;
    }
}

/// Why an attempt failed.
struct Failure {
    error: ModelError,
    /// True when another try may help, if nothing was given yet.
    passing: bool,
    /// The pause for which the provider asks.
    pause: Option<Duration>,
}

impl Failure {
    fn lasting(error: ModelError) -> Self {
        Self { error, passing: false, pause: None }
    }

    fn passing(error: ModelError) -> Self {
        Self { error, passing: true, pause: None }
    }
}

impl Inner {
    async fn answer(&self, request: &Request, sender: Sender<Result<Delta, ModelError>>) {
        let mut outlet = Outlet { sender, given: false };
        let mut attempt = 1;
        let error = loop {
            let failure = match self.attempt(request, &mut outlet).await {
                Ok(()) => return,
                Err(failure) => failure,
            };
            if !failure.passing || outlet.given || attempt >= self.policy.attempts {
                break failure.error;
            }
            let pause = self.policy.pause(attempt, failure.pause);
            let delay_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            outlet.give(Delta::Retrying { attempt, message: failure.error.to_string(), delay_ms }).await;
            tokio::time::sleep(pause).await;
            attempt += 1;
        };
        let _ = outlet.sender.send(Err(error)).await;
    }

    async fn attempt(&self, request: &Request, outlet: &mut Outlet) -> Result<(), Failure> {
        let written = match self.api {
            Api::OpenAi => {
                openai::body(&self.model, request, self.output, self.url.host_str() == Some(OPENAI_HOST))
            }
            Api::Anthropic => anthropic::body(&self.model, request, self.output),
        };
        let body =
            written.map_err(|error| Failure::lasting(self.protocol(format!("cannot write: {error}"))))?;
        let response = self.send(body).await?;
        let mut decoder: Box<dyn Decoder> = match self.api {
            Api::OpenAi => Box::new(openai::Chunks::new(request)),
            Api::Anthropic => Box::new(anthropic::Events::new(request)),
        };
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.contains("json") {
            self.read_whole(response, decoder.as_mut(), outlet).await?;
        } else if kind.is_empty() || kind.starts_with("text/event-stream") || kind.starts_with("text/plain") {
            self.read_stream(response, decoder.as_mut(), outlet).await?;
        } else {
            let kind = kind.to_owned();
            let start = fault::words(200, &error_body(response).await, self.secret());
            let start: String = start.chars().take(200).collect();
            return Err(Failure::lasting(
                self.protocol(format!("it is {kind}, not an event stream: {start}")),
            ));
        }
        let mut last = Vec::new();
        decoder.finish(&mut last);
        for delta in last {
            outlet.give(delta).await;
        }
        Ok(())
    }

    /// Sends the request and gives the answer when it is one.
    async fn send(&self, body: Vec<u8>) -> Result<Response, Failure> {
        let mut post = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body);
        if self.api == Api::Anthropic {
            post = post.header("anthropic-version", anthropic::VERSION);
        }
        if let Some(key) = self.secret() {
            post = match self.api {
                Api::OpenAi => post.bearer_auth(key),
                Api::Anthropic => post.header("x-api-key", key),
            };
        }
        let response = match timeout(self.policy.idle, post.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_builder() => {
                let message = "the request could not be built; is the key one line of plain letters?";
                return Err(Failure::lasting(self.unreachable(message.to_owned())));
            }
            Ok(Err(error)) => {
                return Err(Failure::passing(self.unreachable(format!("no answer: {}", root_cause(&error)))));
            }
            Err(_) => return Err(Failure::passing(self.unreachable(self.silent()))),
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let message =
                "it redirects to another address; give that one as the provider's address".to_owned();
            return Err(Failure::lasting(self.refused(status.as_u16(), message)));
        }
        let pause = retry_after(response.headers());
        let body = error_body(response).await;
        Err(Failure { pause, ..self.judged(status.as_u16(), &body) })
    }

    async fn read_stream(
        &self,
        mut response: Response,
        decoder: &mut dyn Decoder,
        outlet: &mut Outlet,
    ) -> Result<(), Failure> {
        let mut events = sse::Events::default();
        while decoder.progress() != Progress::Done {
            let enough = decoder.progress() == Progress::Enough;
            let wait = if enough { GRACE.min(self.policy.idle) } else { self.policy.idle };
            let bytes = match timeout(wait, response.chunk()).await {
                Ok(Ok(Some(bytes))) => bytes,
                Ok(Ok(None)) => break,
                // What follows a complete answer may get lost.
                _ if enough => return Ok(()),
                Ok(Err(error)) => return Err(self.cut(&root_cause(&error), outlet)),
                Err(_) => return Err(self.cut(&self.silent(), outlet)),
            };
            let mut data = Vec::new();
            events
                .push(&bytes, &mut data)
                .map_err(|error| Failure::lasting(self.protocol(error.to_string())))?;
            for data in data {
                self.decode(&data, decoder, outlet).await?;
            }
        }
        if decoder.progress() == Progress::Open {
            // The last event may lack its end. If it is cut itself, the answer is not complete, and we say that.
            let rest = events.finish().filter(|data| data.trim() == "[DONE]" || is_json(data));
            if let Some(data) = rest {
                self.decode(&data, decoder, outlet).await?;
            }
        }
        match decoder.progress() {
            Progress::Open => Err(self.cut("it ended too early", outlet)),
            Progress::Enough | Progress::Done => Ok(()),
        }
    }

    /// Reads the answer of a server that does not stream although it was asked to.
    async fn read_whole(
        &self,
        response: Response,
        decoder: &mut dyn Decoder,
        outlet: &mut Outlet,
    ) -> Result<(), Failure> {
        let bytes = match timeout(self.policy.idle, collect(response, WHOLE_BYTES)).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return Err(self.cut(&root_cause(&error), outlet)),
            Err(_) => return Err(self.cut(&self.silent(), outlet)),
        };
        self.decode(&String::from_utf8_lossy(&bytes), decoder, outlet).await?;
        match decoder.progress() {
            Progress::Open => {
                Err(Failure::lasting(self.protocol("the answer holds no choice with a finish".to_owned())))
            }
            Progress::Enough | Progress::Done => Ok(()),
        }
    }

    async fn decode(
        &self,
        data: &str,
        decoder: &mut dyn Decoder,
        outlet: &mut Outlet,
    ) -> Result<(), Failure> {
        let mut deltas = Vec::new();
        let decoded = decoder.event(data, &mut deltas);
        for delta in deltas {
            outlet.give(delta).await;
        }
        decoded.map_err(|broken| match broken {
            Broken::Protocol(message) => {
                let start: String = fault::hide(data, self.secret()).chars().take(200).collect();
                Failure::lasting(self.protocol(format!("{message} in {start:?}")))
            }
            Broken::Reported { status, error } => {
                self.judged(status, &serde_json::json!({ "error": error }).to_string())
            }
        })
    }

    /// The error for a provider's own error.
    fn judged(&self, status: u16, body: &str) -> Failure {
        let message = fault::words(status, body, self.secret());
        let model = self.name.clone();
        match fault::kind(status, body) {
            Kind::ContextFull => Failure::lasting(ModelError::ContextFull { model, message }),
            Kind::Unauthorized => {
                let key_env = self.key_env.clone().unwrap_or_else(|| "the provider's key".to_owned());
                Failure::lasting(ModelError::Unauthorized { model, status, message, key_env })
            }
            Kind::Passing => Failure::passing(self.refused(status, message)),
            Kind::Lasting => Failure::lasting(self.refused(status, message)),
        }
    }

    /// The error for a stream that ended before the answer was complete.
    fn cut(&self, why: &str, outlet: &Outlet) -> Failure {
        let message = if outlet.given {
            format!("the connection broke in the middle of the answer: {why}")
        } else {
            format!("the connection broke before the answer: {why}")
        };
        Failure::passing(self.unreachable(message))
    }

    fn silent(&self) -> String {
        format!("nothing came for {} s", self.policy.idle.as_secs_f64())
    }

    fn secret(&self) -> Option<&str> {
        self.key.as_ref().map(Key::expose)
    }

    fn refused(&self, status: u16, message: String) -> ModelError {
        ModelError::Refused { model: self.name.clone(), status, message }
    }

    fn unreachable(&self, message: String) -> ModelError {
        let message = fault::hide(&message, self.secret());
        ModelError::Unreachable { model: self.name.clone(), url: self.shown.clone(), message }
    }

    fn protocol(&self, message: String) -> ModelError {
        ModelError::Protocol { model: self.name.clone(), message }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The pause for which a provider asks, in either of the two forms that providers use.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number(RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// An error's body, as far as it comes in time.
async fn error_body(response: Response) -> String {
    match timeout(ERROR_TIME, collect(response, ERROR_BYTES)).await {
        Ok(Ok(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => String::new(),
    }
}

/// A body's beginning, at most `most` bytes.
async fn collect(mut response: Response, most: usize) -> reqwest::Result<Bytes> {
    let mut all = Vec::new();
    while let Some(bytes) = response.chunk().await? {
        let left = most - all.len();
        all.extend_from_slice(&bytes[..bytes.len().min(left)]);
        if all.len() == most {
            break;
        }
    }
    Ok(all.into())
}

//! Addresses of model servers, and the HTTP client for one.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect;
use reqwest::{Client, Url};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use thiserror::Error;

use crate::choose::{Api, Choice};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(20);

/// Why a choice cannot be connected.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The address is none.
    #[error("{model}: {url} is no address of a model server: {message}")]
    Address {
        /// `provider/model`.
        model: String,
        /// What was given, without user, password and query.
        url: String,
        /// Why.
        message: String,
    },
    /// The machine's certificates or the client could not be set up.
    #[error("{model}: no secure connection can be made on this machine: {message}")]
    Secure {
        /// `provider/model`.
        model: String,
        /// Why.
        message: String,
    },
}

/// The client for an address. It follows no redirect: one could take the key to somebody else.
pub(crate) fn client(model: &str, url: &Url) -> Result<Client, ConnectError> {
    let secure = |message: String| ConnectError::Secure { model: model.to_owned(), message };
    let builder = Client::builder()
        .tls_backend_preconfigured(tls(url).map_err(|error| secure(error.to_string()))?)
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("beeuni/", env!("CARGO_PKG_VERSION")));
    // A proxy cannot reach what is on this machine.
    let builder = if is_local(url) { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| secure(root_cause(&error)))
}

/// The address to which requests go: what users give ends in nothing, in `/v1`, or in the whole path.
pub(crate) fn endpoint(choice: &Choice) -> Result<Url, ConnectError> {
    let refuse = |message: &str| ConnectError::Address {
        model: choice.name.clone(),
        url: Url::parse(&choice.base_url).map_or_else(|_| "the given text".to_owned(), |url| shown(&url)),
        message: message.to_owned(),
    };
    let mut url = Url::parse(&choice.base_url).map_err(|error| refuse(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(refuse("it must begin with http:// or https:// and name a host"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    let path = match choice.api {
        Api::OpenAi if path.is_empty() => "/v1/chat/completions".to_owned(),
        Api::OpenAi if path.ends_with("/chat/completions") => path,
        Api::OpenAi => path + "/chat/completions",
        Api::Anthropic if path.ends_with("/messages") => path,
        Api::Anthropic if path.ends_with("/v1") => path + "/messages",
        Api::Anthropic => path + "/v1/messages",
    };
    url.set_path(&path);
    url.set_fragment(None);
    if choice.key.is_some() {
        // Both would end up in one header. An address with a host always takes this.
        let _ = (url.set_username(""), url.set_password(None));
    }
    Ok(url)
}

fn tls(url: &Url) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    if url.scheme() == "http" {
        // Nothing is checked then, and a machine without certificates must still reach its own model server.
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let verifier = Arc::new(Verifier::new(provider)?);
    let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// An address without user, password and query.
pub(crate) fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}{}", url.scheme(), url.path())
}

/// The innermost reason of an error, which says the most and holds no address.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else {
        return error.to_string().split(" for url").next().unwrap_or_default().to_owned();
    };
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

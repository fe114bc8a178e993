//! Fetches a web page safely and makes it readable.
//!
//! "Safely" means: whoever names an address cannot reach our own network with it. Addresses are judged after the name
//! is resolved, by the same resolver that the connection uses, at each redirect again; nothing else is ever dialled.
//! Size, time, redirects and the HTML's depth are bounded.

mod address;
mod body;
mod readable;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use thiserror::Error;

use crate::address::{NotPublic, PublicOnly};
pub use crate::address::{is_public, private_range};

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 10;

/// What a [`Fetcher`] may do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses that are dialled although they are not public. Empty in production, unless an operator names one.
    pub allow: Vec<IpAddr>,
    /// Bytes of a page that are read, after decompression; the rest is cut off.
    pub max_bytes: usize,
    /// From the first name's look-up to the last byte, over all redirects.
    pub timeout: Duration,
    /// How the fetcher names itself to servers.
    pub user_agent: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            max_bytes: 5 * 1024 * 1024,
            timeout: Duration::from_secs(30),
            user_agent: format!("beeuni/{}", env!("CARGO_PKG_VERSION")),
        }
    }
}

/// What a page becomes. Pages that are not HTML are passed on as they are, whatever the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The main content as Markdown, with absolute links.
    Markdown,
    /// The main content's text alone.
    Text,
    /// The HTML as it was sent.
    Html,
}

/// A page that was read. Its status may be any: a 404's page is a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where it was found, after redirects.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// The HTML's title; empty where there is none.
    pub title: String,
    /// The `Content-Type` as sent, in lower case and without parameters; empty where there was none.
    pub content_type: String,
    /// The content, in the format that was asked for.
    pub content: String,
    /// The page was longer than [`Options::max_bytes`]; what follows is missing.
    pub truncated: bool,
}

/// Why there is no page.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FetchError {
    /// Not an address that is fetched at all.
    #[error("{url} is not an address to fetch: {reason}")]
    Address {
        /// As given, or as a redirect gave it.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The address leads into a network that is not public.
    #[error("{url} is refused: {host} is at {address}, which is not public ({range})")]
    Private {
        /// The address.
        url: String,
        /// Its host.
        host: String,
        /// Where the host is.
        address: IpAddr,
        /// Which kind of network that is.
        range: &'static str,
    },
    /// No connection, or one that broke.
    #[error("{url} could not be read: {reason}")]
    Unreachable {
        /// The address.
        url: String,
        /// Why.
        reason: String,
    },
    /// It took too long.
    #[error("{url} was not read within {} s", .after.as_secs_f32())]
    Timeout {
        /// The address that was asked for.
        url: String,
        /// The limit.
        after: Duration,
    },
    /// Redirects without end.
    #[error("{url} redirects more than {MAX_REDIRECTS} times")]
    Redirects {
        /// The address that was asked for.
        url: String,
    },
    /// Nothing that a model could read.
    #[error("{url} is not text but {content_type}; it cannot be read as a page")]
    Binary {
        /// The address.
        url: String,
        /// What the server says that it is.
        content_type: String,
    },
    /// HTML that is too deep, or grows too large, to be taken apart.
    #[error("{url} cannot be made readable: {reason}")]
    Tangled {
        /// The address.
        url: String,
        /// What is too much.
        reason: String,
    },
}

/// Why no fetcher could be made.
#[derive(Debug, Error)]
#[error("the HTTP client could not be made: {0}")]
pub struct SetupError(String);

/// Fetches pages. Cheap to clone; made once, used by many.
#[derive(Clone)]
pub struct Fetcher {
    client: Client,
    options: Arc<Options>,
}

impl Fetcher {
    /// Makes a fetcher. Certificates are the system's (`SSL_CERT_FILE` and `SSL_CERT_DIR` are heard); with none,
    /// https addresses fail and http ones work. Proxies are not used, as a proxy would resolve names for us.
    pub fn new(options: Options) -> Result<Self, SetupError> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls().map_err(|error| SetupError(error.to_string()))?)
            .dns_resolver(Arc::new(PublicOnly::new(options.allow.clone())))
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .user_agent(&options.user_agent)
            .build()
            .map_err(|error| SetupError(address::reason(&error)))?;
        Ok(Self { client, options: Arc::new(options) })
    }

    /// Fetches one page. Dropping the future ends the request; there is nothing else to cancel.
    pub async fn fetch(&self, url: &str, format: Format) -> Result<Page, FetchError> {
        let after = self.options.timeout;
        match tokio::time::timeout(after, self.read(url, format)).await {
            Ok(result) => result,
            Err(_) => Err(FetchError::Timeout { url: url.to_owned(), after }),
        }
    }

    async fn read(&self, asked: &str, format: Format) -> Result<Page, FetchError> {
        let (url, response) = self.follow(asked).await?;
        let status = response.status().as_u16();
        let content_type = body::ContentType::of(header(response.headers(), CONTENT_TYPE.as_str()));
        if content_type.is_binary() {
            return Err(FetchError::Binary { url: url.into(), content_type: content_type.name });
        }
        let (bytes, truncated) = body::read(response, self.options.max_bytes).await.map_err(|error| {
            FetchError::Unreachable { url: url.to_string(), reason: address::reason(&error) }
        })?;
        let Some((text, is_html)) = body::decode(&content_type, &bytes, truncated) else {
            let content_type = match content_type.name {
                name if name.is_empty() => "binary data".to_owned(),
                name => format!("binary data sent as {name}"),
            };
            return Err(FetchError::Binary { url: url.into(), content_type });
        };
        let page = |title, content| Page {
            url: url.to_string(),
            status,
            title,
            content_type: content_type.name.clone(),
            content,
            truncated,
        };
        if !is_html {
            return Ok(page(String::new(), text));
        }
        let base = url.to_string();
        // Taking a large page apart takes long enough to hold up others.
        let read = tokio::task::spawn_blocking(move || readable::read(text, &base, format)).await;
        match read {
            Ok(Ok((title, content))) => Ok(page(title, content)),
            Ok(Err(reason)) => Err(FetchError::Tangled { url: url.into(), reason }),
            Err(_) => {
                Err(FetchError::Tangled { url: url.into(), reason: "its HTML broke the reader".to_owned() })
            }
        }
    }

    /// Sends the request and those that redirects ask for; every address on the way is judged.
    async fn follow(&self, asked: &str) -> Result<(Url, Response), FetchError> {
        let mut url = parse(asked)?;
        for _ in 0..=MAX_REDIRECTS {
            self.judge(&url)?;
            let response = self
                .client
                .get(url.clone())
                .header(ACCEPT, "text/html, application/xhtml+xml, text/*;q=0.9, */*;q=0.5")
                .send()
                .await
                .map_err(|error| unreachable(&url, &error))?;
            let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            let Some(location) = header(response.headers(), LOCATION.as_str()).filter(|_| is_redirect) else {
                return Ok((url, response));
            };
            let next = url.join(location).map_err(|error| FetchError::Address {
                url: location.to_owned(),
                reason: format!("{url} redirects there, and {error}"),
            })?;
            url = parse(next.as_str())?;
        }
        Err(FetchError::Redirects { url: asked.to_owned() })
    }

    /// Judges an address written in digits; names are judged by the resolver.
    fn judge(&self, url: &Url) -> Result<(), FetchError> {
        let host = url.host_str().unwrap_or_default();
        let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() else { return Ok(()) };
        match private_range(address) {
            Some(range) if !self.options.allow.contains(&address) => {
                Err(FetchError::Private { url: url.to_string(), host: host.to_owned(), address, range })
            }
            _ => Ok(()),
        }
    }
}

fn parse(text: &str) -> Result<Url, FetchError> {
    let refused = |reason: &str| FetchError::Address { url: text.to_owned(), reason: reason.to_owned() };
    let url = Url::parse(text.trim()).map_err(|error| refused(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("only http and https are fetched"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(FetchError::Address {
            url: format!("{}://…@{}", url.scheme(), url.host_str().unwrap_or_default()),
            reason: "it holds a user name or password".to_owned(),
        });
    }
    Ok(url)
}

fn unreachable(url: &Url, error: &reqwest::Error) -> FetchError {
    match address::find::<NotPublic>(error) {
        Some(NotPublic { host, address, range }) => {
            FetchError::Private { url: url.to_string(), host: host.clone(), address: *address, range }
        }
        None => FetchError::Unreachable { url: url.to_string(), reason: address::reason(error) },
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// TLS with ring and the system's certificates, chosen here so that no other crate's default decides.
fn tls() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let mut config = match Verifier::new(provider) {
        Ok(verifier) => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)),
        Err(_) => builder.with_root_certificates(RootCertStore::empty()),
    }
    .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

//! The HTTP client for Restate and for other workers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder};
use rustls::RootCertStore;
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde::de::DeserializeOwned;
use url::Url;

/// Timeout of connecting.
const CONNECTED_WITHIN: Duration = Duration::from_secs(1);
/// Idle connections kept open for the next calls. More are made while more turns run at once.
const IDLE_MAX: usize = 64;
/// Size limit of an answer in bytes; those of Restate are far smaller.
const ANSWER_MAX: usize = 1024 * 1024;

/// The kind of server that a client connects to.
pub(crate) enum Peer {
    /// Restate's ingress and admin API, over HTTP/1.1, with their bearer token.
    Restate(Option<HeaderValue>),
    /// A worker, as Restate connects to it: HTTP/2 with prior knowledge, without a token.
    Worker,
}

/// An HTTP client with a pool of connections, which its clones share.
#[derive(Debug, Clone)]
pub(crate) struct Client(reqwest::Client);

/// The answer to a request.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Client {
    /// Creates a client without proxy, redirects and answer timeout; callers set the latter.
    /// Without `tls`, the system needs no root certificates.
    ///
    /// # Errors
    /// The message of the TLS library, such as that there are no root certificates.
    pub(crate) fn new(peer: Peer, tls: bool) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = if tls {
            config
                .with_platform_verifier()
                .map_err(|error| error.to_string())?
        } else {
            config.with_root_certificates(RootCertStore::empty())
        };
        let mut config = config.with_no_client_auth();
        // A call lasts as long as a turn: over HTTP/2 those beyond what one connection may have
        // would wait for others to end.
        let is_http2 = matches!(peer, Peer::Worker);
        config.alpn_protocols = vec![if is_http2 {
            b"h2".to_vec()
        } else {
            b"http/1.1".to_vec()
        }];
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(config)
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(CONNECTED_WITHIN)
            .pool_max_idle_per_host(IDLE_MAX);
        match peer {
            Peer::Restate(token) => {
                let headers = token.map(|token| (AUTHORIZATION, token));
                builder = builder
                    .http1_only()
                    .default_headers(headers.into_iter().collect());
            }
            Peer::Worker => builder = builder.http2_prior_knowledge(),
        }
        builder.build().map(Self).map_err(causes)
    }

    /// Builds a request, to be sent with [`answer`].
    pub(crate) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.0.request(method, url)
    }
}

/// Sends a request and reads its answer, without a timeout.
///
/// # Errors
/// The message of the connection's error, with its causes.
pub(crate) async fn answer(request: RequestBuilder) -> Result<Answer, String> {
    let mut response = request.send().await.map_err(causes)?;
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(causes)? {
        if body.len() + piece.len() > ANSWER_MAX {
            return Err("its answer is longer than 1 MiB".to_owned());
        }
        body.extend_from_slice(&piece);
    }
    Ok(Answer {
        status,
        headers,
        body,
    })
}

/// Parses the JSON of a successful answer.
///
/// # Errors
/// A message with the status and the body, or the parse error.
pub(crate) fn parse_json<T: DeserializeOwned>(answer: &Answer) -> Result<T, String> {
    if !answer.status.is_success() {
        return Err(format!(
            "it answered {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        ));
    }
    serde_json::from_slice(&answer.body)
        .map_err(|error| format!("it gave an answer we cannot read: {error}"))
}

/// Reads a bearer token from a file. Returns the header value, which is redacted in debug output.
///
/// # Errors
/// A message that does not contain the token.
pub(crate) fn bearer(path: &Path) -> Result<HeaderValue, String> {
    let token = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let token = token.trim();
    if token.is_empty() {
        return Err("it is empty".to_owned());
    }
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.map_err(|_| "a token is one line of visible characters".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the messages of an error and its causes: reqwest's own message names only the outermost.
/// Without the URL, which contains a user's name.
fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        message = format!("{message}: {inner}");
        cause = inner.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_token_is_read_without_its_line_end_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, " key_secret\n").unwrap();
        let header = bearer(&path).unwrap();
        assert_eq!(header.to_str().unwrap(), "Bearer key_secret");
        let client = Client::new(Peer::Restate(Some(header.clone())), false).unwrap();
        assert!(!format!("{header:?} {client:?}").contains("secret"));
        for wrong in ["", " \n", "secret\u{7f}"] {
            fs::write(&path, wrong).unwrap();
            assert!(!bearer(&path).unwrap_err().contains("secret"));
        }
        assert!(bearer(&folder.path().join("none")).is_err());
    }

    #[tokio::test]
    async fn a_client_with_tls_can_be_made() {
        Client::new(Peer::Restate(None), true).unwrap();
        Client::new(Peer::Worker, true).unwrap();
    }

    /// Answers every request of one connection with this.
    async fn answering(answer: String) -> (Url, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let asked = tokio::spawn(async move {
            let (mut connection, _) = listener.accept().await.unwrap();
            let (mut said, mut piece) = (Vec::new(), [0; 4096]);
            while let Ok(read @ 1..) = connection.read(&mut piece).await {
                said.extend_from_slice(&piece[..read]);
                if said.ends_with(b"\r\n\r\n")
                    && connection.write_all(answer.as_bytes()).await.is_err()
                {
                    break;
                }
            }
            String::from_utf8(said).unwrap()
        });
        (url, asked)
    }

    #[tokio::test]
    async fn two_requests_share_a_connection_and_bring_the_token() {
        let (url, asked) =
            answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nyo".to_owned()).await;
        let client = Client::new(
            Peer::Restate(Some(HeaderValue::from_static("Bearer key"))),
            false,
        )
        .unwrap();
        for _ in 0..2 {
            let answer = answer(client.request(Method::GET, url.clone()))
                .await
                .unwrap();
            assert_eq!(
                (answer.status, answer.body.as_slice()),
                (StatusCode::OK, b"yo".as_slice())
            );
        }
        drop(client);
        let asked = asked.await.unwrap();
        assert_eq!(asked.matches("GET / HTTP/1.1").count(), 2, "{asked}");
        assert_eq!(
            asked.matches("authorization: Bearer key").count(),
            2,
            "{asked}"
        );
    }

    #[tokio::test]
    async fn an_answer_is_bounded_and_a_redirect_is_one() {
        let client = Client::new(Peer::Restate(None), false).unwrap();
        let long = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n{}",
            "x".repeat(1_048_577)
        );
        let (url, _asked) = answering(long).await;
        let error = answer(client.request(Method::GET, url))
            .await
            .err()
            .unwrap();
        assert_eq!(error, "its answer is longer than 1 MiB");
        let moved =
            "HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
        let (url, _asked) = answering(moved.to_owned()).await;
        let answer = answer(client.request(Method::GET, url)).await.unwrap();
        assert_eq!(answer.status, StatusCode::TEMPORARY_REDIRECT);
    }

    #[tokio::test]
    async fn a_refused_connection_is_reported_without_the_url() {
        let client = Client::new(Peer::Restate(None), false).unwrap();
        let url = "http://127.0.0.1:1/Conversation/of-ann".parse().unwrap();
        let error = answer(client.request(Method::GET, url))
            .await
            .err()
            .unwrap();
        assert!(
            error.contains("refused") && !error.contains("ann"),
            "{error}"
        );
    }
}

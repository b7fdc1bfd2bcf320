use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// No answer of Restate that we read is longer, in bytes.
const ANSWER_MAX: usize = 1024 * 1024;

/// What was answered.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// Posts JSON, or nothing, over a connection of its own, for as long as it takes. A private network's plain HTTP, so neither
/// TLS nor a proxy comes into it.
///
/// # Errors
/// In words: nobody is there, or what came is no answer.
pub(crate) async fn post(
    authority: &str,
    path: &str,
    headers: &[(&str, &str)],
    json: Option<String>,
) -> Result<Answer, String> {
    let mut request = Request::builder().method(Method::POST).uri(path).header(HOST, authority);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if json.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let request = request.body(Full::new(Bytes::from(json.unwrap_or_default())));
    let request = request.map_err(|error| format!("cannot be sent: {error}"))?;

    let stream = TcpStream::connect(authority).await;
    let stream = stream.map_err(|error| format!("{authority} does not take connections: {error}"))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // Ends when the answer is there, or nobody waits for it any more.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    Ok(Answer { status, body })
}

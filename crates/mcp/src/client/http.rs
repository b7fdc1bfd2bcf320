//! HTTP for remote servers. An HTTP status of 400 or above answers the request that was posted,
//! whatever id its JSON-RPC error has, and a lost session is made anew once.
//!
//! The library matches answers by their ids alone, so that a refusal without an id, or with that of
//! another request, would leave its caller waiting; and it takes only 404 for a lost session.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use futures::stream::{BoxStream, Stream, StreamExt as _};
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use serde_json::Value;
use sse_stream::{Sse, SseStream};

use super::definition::one_line;
use super::server_message::keep_execution;
use super::throttle::Throttle;
use crate::lock::lock;

const SESSION_ID: &str = "mcp-session-id";
const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
/// Most characters of the words of a refusal that is no JSON-RPC error.
const WORDS_MAX: usize = 300;
/// Most characters of the time after which a server wants to be asked again.
const WAIT_MAX: usize = 40;
/// Most requests whose sessions are being made anew.
const RENEWALS_MAX: usize = 1_024;

/// Headers that belong to the protocol.
pub(super) const RESERVED_HEADERS: [&str; 3] = ["accept", SESSION_ID, "last-event-id"];

type HttpError = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// An HTTP client for one server.
#[derive(Debug, Clone)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    /// Requests that were refused because their session is lost, and are sent once more.
    renewals: Arc<Mutex<HashSet<RequestId>>>,
    throttle: Arc<Throttle>,
}

impl HttpClient {
    pub(super) fn new(client: reqwest::Client) -> Self {
        Self {
            client,
            renewals: Arc::default(),
            throttle: Arc::default(),
        }
    }

    /// Returns the answer to a message that was refused with this status.
    ///
    /// # Errors
    /// [`StreamableHttpError::SessionExpired`] if the session is lost, for the first time of this
    /// request; an error of the transport if the message awaits no answer, if the server wants to
    /// know who asks, or if only a gateway has answered.
    async fn refused(
        &self,
        response: Response,
        posted: Posted,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let status = response.status();
        let challenge = challenge(response.headers());
        if status == StatusCode::UNAUTHORIZED {
            let challenge = challenge.unwrap_or_default();
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
                challenge,
            )));
        }
        if let (StatusCode::FORBIDDEN, Some(challenge)) = (status, challenge) {
            return Err(StreamableHttpError::InsufficientScope(
                InsufficientScopeError::new(challenge, None),
            ));
        }
        let retry_after = text(response.headers(), RETRY_AFTER);
        let content_type = text(response.headers(), CONTENT_TYPE);
        let limit = if is_media_type(content_type.as_deref(), JSON) {
            limits.max_json_response_size
        } else {
            limits.max_error_response_size
        };
        // A refusal whose body breaks off is still a refusal.
        let body = read(response, limit).await.unwrap_or_default();
        let error = json_rpc_error(&body);
        let is_lost = match status {
            StatusCode::NOT_FOUND => true,
            StatusCode::BAD_REQUEST => !error.as_ref().is_some_and(|(id, error)| {
                // Such an error is about the call, not about its session.
                *id == posted.id
                    && matches!(
                        error.code,
                        ErrorCode::INVALID_PARAMS | ErrorCode::METHOD_NOT_FOUND
                    )
            }),
            _ => false,
        };
        if posted.in_session && is_lost && self.begin_renewal(&posted) {
            return Err(StreamableHttpError::SessionExpired);
        }
        let is_json_rpc = error.is_some();
        let error = error.map_or_else(
            || {
                let words = words(status, content_type.as_deref(), &body, retry_after);
                ErrorData::new(ErrorCode::INVALID_REQUEST, words, None)
            },
            |(_, error)| error,
        );
        match posted.id {
            Some(id) if is_json_rpc || !is_of_gateway(status) => {
                Ok(StreamableHttpPostResponse::Json(
                    ServerJsonRpcMessage::error(error, Some(id)),
                    None,
                ))
            }
            Some(_) | None => Err(StreamableHttpError::UnexpectedServerResponse(error.message)),
        }
    }

    /// Returns true if the message is to be sent once more, in a new session.
    fn begin_renewal(&self, posted: &Posted) -> bool {
        if posted.is_repeated {
            return false;
        }
        if let Some(id) = &posted.id {
            let mut renewals = lock(&self.renewals);
            // Those of sessions that could not be made anew stay; they are never sent again.
            if renewals.len() >= RENEWALS_MAX {
                renewals.clear();
            }
            renewals.insert(id.clone());
        }
        true
    }
}

/// A message on its way.
struct Posted {
    /// The id of a request. `None`: it awaits no answer.
    id: Option<RequestId>,
    in_session: bool,
    /// True if it was refused once, and its session was made anew.
    is_repeated: bool,
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, token, headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let id = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let is_repeated = id
            .as_ref()
            .is_some_and(|id| lock(&self.renewals).remove(id));
        let posted = Posted {
            id,
            in_session: session.is_some(),
            is_repeated,
        };
        let request = self
            .client
            .post(uri.as_ref())
            .header(ACCEPT, format!("{EVENT_STREAM}, {JSON}"))
            .header(CONTENT_TYPE, JSON);
        let mut request = with_access(request, token.as_deref(), headers);
        if let Some(session) = session {
            request = request.header(SESSION_ID, session.as_ref());
        }
        let response = request.body(serde_json::to_vec(&message)?).send().await?;
        let status = response.status();
        if !status.is_success() {
            return self.refused(response, posted, limits).await;
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = text(response.headers(), HeaderName::from_static(SESSION_ID));
        let content_type = text(response.headers(), CONTENT_TYPE);
        if is_media_type(content_type.as_deref(), EVENT_STREAM) {
            let events = events(response, limits.max_sse_event_size, posted.id);
            let events = throttled(events, self.throttle.clone());
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let Some(id) = posted.id else {
            // Words beyond the status need no reading.
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if !is_media_type(content_type.as_deref(), JSON) {
            return Err(StreamableHttpError::UnexpectedContentType(content_type));
        }
        let body = read(response, limits.max_json_response_size).await?;
        let body = keep_execution(&body);
        let mut answer: ServerJsonRpcMessage = serde_json::from_slice(&body).map_err(|error| {
            let begins = excerpt(&String::from_utf8_lossy(&body), WORDS_MAX);
            StreamableHttpError::UnexpectedServerResponse(
                format!("an answer that is not one of JSON-RPC ({error}): {begins}").into(),
            )
        })?;
        address(&mut answer, id);
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, HttpError> {
        let bytes_max = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, bytes_max)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        bytes_max: usize,
    ) -> Result<Events, HttpError> {
        let events = self
            .client
            .get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, bytes_max)
            .await?;
        Ok(throttled(events, self.throttle.clone()))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        self.client
            .delete_session(uri, session, token, headers)
            .await
    }
}

/// Returns true if a gateway says that it got no answer from the server, which may have carried the
/// request out.
fn is_of_gateway(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT
    ) || (520..=530).contains(&status.as_u16())
}

/// Returns the JSON-RPC error in a body, and its id.
fn json_rpc_error(body: &[u8]) -> Option<(Option<RequestId>, ErrorData)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error")?;
    // Without the version it may be a gateway's own JSON.
    body.get("jsonrpc")?;
    let error = serde_json::from_value(error.clone()).ok()?;
    let id = body.get("id").cloned().unwrap_or_default();
    Some((serde_json::from_value(id).ok(), error))
}

/// Describes a refusal that is no JSON-RPC error.
fn words(
    status: StatusCode,
    content_type: Option<&str>,
    body: &[u8],
    retry_after: Option<String>,
) -> String {
    let mut said = format!("HTTP {status}");
    let body = String::from_utf8_lossy(body);
    let own = match serde_json::from_str::<Value>(&body) {
        Ok(value) => ["message", "detail", "error_description", "error"]
            .iter()
            .find_map(|key| value.get(key)?.as_str().map(str::to_owned))
            .unwrap_or_else(|| body.into_owned()),
        // A page for a browser explains nothing.
        Err(_) if is_media_type(content_type, "text/html") || body.starts_with('<') => {
            String::new()
        }
        Err(_) => body.into_owned(),
    };
    let own = excerpt(&own, WORDS_MAX);
    if !own.is_empty() {
        said.push_str(&format!(": {own}"));
    }
    if let Some(wait) = retry_after {
        said.push_str(&format!(" (retry after: {})", excerpt(&wait, WAIT_MAX)));
    }
    said
}

/// Gives an answer the id of the request that was posted, if it has another one or none.
fn address(answer: &mut ServerJsonRpcMessage, posted: RequestId) {
    match answer {
        JsonRpcMessage::Response(response) => response.id = posted,
        JsonRpcMessage::Error(error) => error.id = Some(posted),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
    }
}

/// Returns the events of an answer, each of at most `bytes_max` bytes. An error in them answers the
/// request that was posted.
fn events(response: Response, bytes_max: usize, posted: Option<RequestId>) -> Events {
    let bytes = bounded(response.bytes_stream(), bytes_max);
    let events = SseStream::from_bytes_stream(bytes);
    events
        .map(move |event| {
            let mut event = event?;
            if let Some(data) = &event.data
                && let Cow::Owned(kept) = keep_execution(data.as_bytes())
            {
                // It was text, and its JSON is.
                event.data = String::from_utf8(kept).ok().or(event.data);
            }
            if let (Some(posted), Some(data)) = (&posted, &event.data)
                && data.contains("\"error\"")
                && let Ok(mut message) = serde_json::from_str::<ServerJsonRpcMessage>(data)
                && let JsonRpcMessage::Error(_) = &message
            {
                address(&mut message, posted.clone());
                // A value that was read can be written.
                event.data = serde_json::to_string(&message).ok().or(event.data);
            }
            Ok(event)
        })
        .boxed()
}

/// Returns events no faster than a server may send requests.
fn throttled(events: Events, throttle: Arc<Throttle>) -> Events {
    let admitted = move |event: Result<Sse, SseError>| {
        let throttle = throttle.clone();
        async move {
            if let Ok(Sse {
                data: Some(data), ..
            }) = &event
            {
                throttle.admit(data.as_bytes()).await;
            }
            event
        }
    };
    events.then(admitted).boxed()
}

/// The error for an event that is larger than allowed, or whose stream broke.
#[derive(Debug, thiserror::Error)]
enum BrokenEvents {
    #[error("an event of more than {0} bytes")]
    TooLarge(usize),
    #[error(transparent)]
    Source(#[from] reqwest::Error),
}

/// Ends a stream at an event, or at a comment, of more than `bytes_max` bytes: the parser keeps the
/// whole of it.
fn bounded<B: AsRef<[u8]>>(
    bytes: impl Stream<Item = Result<B, reqwest::Error>>,
    bytes_max: usize,
) -> impl Stream<Item = Result<B, BrokenEvents>> {
    let mut size = 0_usize;
    let mut in_line = false;
    let mut is_broken = false;
    let bytes = bytes.map(move |chunk| {
        let chunk = chunk?;
        for byte in chunk.as_ref() {
            match byte {
                b'\n' | b'\r' if !in_line => size = 0,
                b'\n' | b'\r' => in_line = false,
                _ => in_line = true,
            }
            size += 1;
            if size > bytes_max {
                return Err(BrokenEvents::TooLarge(bytes_max));
            }
        }
        Ok(chunk)
    });
    bytes.take_while(move |chunk| {
        let goes_on = !is_broken;
        is_broken = chunk.is_err();
        std::future::ready(goes_on)
    })
}

/// Reads a body of at most `bytes_max` bytes.
async fn read(response: Response, bytes_max: usize) -> Result<Vec<u8>, HttpError> {
    let too_large = || StreamableHttpError::ResponseBodyTooLarge {
        max_size: bytes_max,
    };
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        if chunk.len() > bytes_max - body.len() {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns true if a server of the older HTTP+SSE answers at this address: there a GET opens the
/// stream of events, and messages are posted elsewhere.
pub(super) async fn speaks_old_sse(
    client: &reqwest::Client,
    uri: &str,
    token: Option<&str>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> bool {
    let request = client.get(uri).header(ACCEPT, EVENT_STREAM);
    match with_access(request, token, headers).send().await {
        Ok(response) if response.status().is_success() => {
            let content_type = text(response.headers(), CONTENT_TYPE);
            is_media_type(content_type.as_deref(), EVENT_STREAM)
        }
        Ok(_) | Err(_) => false,
    }
}

/// Adds the token and the configured headers.
fn with_access(
    request: RequestBuilder,
    token: Option<&str>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> RequestBuilder {
    let request = request.headers(headers.into_iter().collect());
    match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    }
}

/// Returns the beginning of a text as one line.
fn excerpt(text: &str, chars_max: usize) -> String {
    one_line(text).chars().take(chars_max).collect()
}

fn challenge(headers: &HeaderMap) -> Option<String> {
    text(headers, WWW_AUTHENTICATE)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Returns true if a `Content-Type` is of this type, whatever its parameters.
fn is_media_type(content_type: Option<&str>, wanted: &str) -> bool {
    let essence = content_type.and_then(|content_type| content_type.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(wanted))
}

//! What a failed request means: in words, and for whether the server has got it.

use std::error::Error;

use rmcp::service::ServiceError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

type HttpError = StreamableHttpError<reqwest::Error>;

/// Why a request failed, without addresses: what follows `?` in one may be a key.
pub(super) fn words(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => transport_words(error),
        ServiceError::McpError(error) => error.message.to_string(),
        other => other.to_string(),
    }
}

/// The same of the transport beneath.
pub(super) fn transport_words(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<HttpError>() {
        Some(error) => http_words(error),
        None => error.error.to_string(),
    }
}

fn http_words(error: &HttpError) -> String {
    match error {
        StreamableHttpError::Client(error) => {
            let what = if error.is_connect() {
                "cannot connect"
            } else {
                "the connection broke"
            };
            match deepest(error) {
                Some(cause) => format!("{what}: {cause}"),
                None => what.to_owned(),
            }
        }
        StreamableHttpError::AuthRequired(_) => {
            "HTTP 401: it wants to know who asks, or does not accept the token".to_owned()
        }
        StreamableHttpError::InsufficientScope(_) => {
            "HTTP 403: the token does not allow it".to_owned()
        }
        other => other.to_string(),
    }
}

/// What is behind an error, without its own words: those of the HTTP library hold the address.
fn deepest(error: &reqwest::Error) -> Option<String> {
    let mut last = None;
    let mut next = error.source();
    while let Some(cause) = next {
        last = Some(cause.to_string());
        next = cause.source();
    }
    last
}

/// Whether the server certainly has not got the request, or has refused it unread.
pub(super) fn certainly_not_sent(error: &DynamicTransportError) -> bool {
    match error.error.downcast_ref::<HttpError>() {
        Some(StreamableHttpError::Client(error)) => error.is_connect() || error.is_builder(),
        Some(StreamableHttpError::HttpStatus(status)) => status.status == 429,
        Some(
            StreamableHttpError::AuthRequired(_)
            | StreamableHttpError::InsufficientScope(_)
            | StreamableHttpError::SessionExpired
            | StreamableHttpError::ReinitializationFailed(_)
            | StreamableHttpError::ReservedHeaderConflict(_),
        ) => true,
        Some(_) | None => false,
    }
}

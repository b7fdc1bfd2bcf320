//! Classification of failed requests: a description, and whether the request certainly was not
//! sent.

use std::error::Error;

use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::ServiceError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

type HttpError = StreamableHttpError<reqwest::Error>;

/// Describes a failed request. URLs are left out, because a query may contain a key.
pub(super) fn message(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => transport_message(error),
        ServiceError::McpError(error) => error.message.to_string(),
        other => other.to_string(),
    }
}

/// Describes an error of the transport.
pub(super) fn transport_message(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<HttpError>() {
        Some(error) => http_message(error),
        None => error.error.to_string(),
    }
}

fn http_message(error: &HttpError) -> String {
    match error {
        StreamableHttpError::Client(error) => {
            let what = if error.is_connect() {
                "cannot connect"
            } else {
                "the connection broke"
            };
            match root_cause(error) {
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
        StreamableHttpError::UnexpectedServerResponse(words) => words.to_string(),
        other => other.to_string(),
    }
}

/// Returns true for the error that the library gives to a request whose answer was on its way when
/// the session was made anew. A server that says the same is in doubt, too.
pub(super) fn is_lost_with_session(error: &ErrorData) -> bool {
    error.code == ErrorCode::INTERNAL_ERROR
        && error.message == "streamable HTTP session was re-initialized before the response arrived"
}

/// Returns the innermost cause. The outer messages of the HTTP library contain the URL.
fn root_cause(error: &reqwest::Error) -> Option<String> {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.last().map(ToString::to_string)
}

/// Returns true if the server certainly has not received the request, or has rejected it unread.
pub(super) fn is_certainly_unsent(error: &DynamicTransportError) -> bool {
    match error.error.downcast_ref::<HttpError>() {
        Some(StreamableHttpError::Client(error)) => error.is_connect() || error.is_builder(),
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

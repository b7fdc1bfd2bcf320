//! The common parts of every call of a client: the request it came with, its name, and how it may
//! fail.

use adjutant_core::InputId;
use adjutant_core::port::StoreError;
use adjutant_runtime::{RunContext, RunError};
use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::CallToolResult;
use rmcp::service::RequestContext;
use tracing::Span;

use super::result::failed;

/// The member of a request's `_meta` with which a client names it.
const IDEMPOTENCY_KEY: &str = "idempotencyKey";
/// A client's own name for a request may be this long, in bytes.
const IDEMPOTENCY_KEY_MAX: usize = 200;

/// Returns the span of the HTTP request that a client's request came with, which the service left
/// in it.
pub(super) fn span_of(context: &RequestContext<RoleServer>) -> Option<Span> {
    context.extensions.get::<Parts>()?.extensions.get().cloned()
}

/// Returns a context that ends when the client cancels its request, and knows the HTTP request that
/// it came with.
pub(super) fn in_request(run: RunContext, context: &RequestContext<RoleServer>) -> RunContext {
    let mut run = RunContext {
        cancelled: context.ct.clone(),
        ..run
    };
    if let Some(request) = context.extensions.get::<Parts>() {
        run.request_id = request
            .headers
            .get("x-request-id")
            .and_then(|id| Some(id.to_str().ok()?.to_owned()));
        run.trace = request.extensions.get().cloned();
    }
    run
}

/// Returns what the client calls its request, in `_meta`: sent again with the same one, it is the
/// same call.
///
/// # Errors
/// It is not text of a fitting length.
pub(super) fn idempotency_key(
    context: &RequestContext<RoleServer>,
) -> Result<Option<InputId>, &'static str> {
    let Some(key) = context.meta.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let key = key.as_str().filter(|key| key.len() <= IDEMPOTENCY_KEY_MAX);
    match key.and_then(|key| InputId::new(key).ok()) {
        Some(id) => Ok(Some(id)),
        None => Err("nothing was done: idempotencyKey in _meta is text of 1 to 200 bytes"),
    }
}

/// Says why a call came to nothing. What is wrong with the store is told to whoever runs the
/// server, and not to the client.
pub(super) fn failed_to_run(error: &RunError, report: &dyn Fn(&RunError)) -> CallToolResult {
    match error {
        RunError::Store(StoreError::Reused) => {
            failed("nothing was done: this idempotencyKey was used before, for another call")
        }
        RunError::Store(StoreError::QueueFull { .. })
        | RunError::MessageTooLarge { .. }
        | RunError::MessageTooLong { .. }
        | RunError::EmptyMessage => failed(&format!("nothing was done: {error}")),
        error => {
            report(error);
            failed(
                "the store did not answer; the call may or may not have been carried out: look before trying again",
            )
        }
    }
}

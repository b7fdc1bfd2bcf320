//! Common parts of all calls: the HTTP request, the idempotency key, and errors.

use adjutant_core::InputId;
use adjutant_core::port::StoreError;
use adjutant_runtime::{RunContext, RunError};
use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::CallToolResult;
use rmcp::service::RequestContext;
use tracing::Span;

use super::may_answer::may_answer;
use super::result::failed;

/// The member of a request's `_meta` with the client's idempotency key.
const IDEMPOTENCY_KEY: &str = "idempotencyKey";
/// Most bytes of an idempotency key.
const IDEMPOTENCY_KEY_MAX: usize = 200;

/// Returns the span of the HTTP request, which the service has put into its extensions.
pub(super) fn request_span(context: &RequestContext<RoleServer>) -> Option<Span> {
    context.extensions.get::<Parts>()?.extensions.get().cloned()
}

/// Returns a context that is cancelled with the client's request, and has the id and trace of the
/// HTTP request.
pub(super) fn with_request(run: RunContext, context: &RequestContext<RoleServer>) -> RunContext {
    let mut run = RunContext {
        cancelled: context.ct.clone(),
        ..run
    };
    // Over standard input and output there is no HTTP request.
    if let Some(request) = context.extensions.get::<Parts>() {
        run.request_id = request
            .headers
            .get("x-request-id")
            .and_then(|id| Some(id.to_str().ok()?.to_owned()));
        run.trace = request.extensions.get().cloned();
    }
    run.may_answer = may_answer(context);
    run
}

/// Returns the idempotency key in `_meta`: a repeated request with the same one is the same call.
///
/// # Errors
/// It is no text, or too long.
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

/// Returns the result of a call that failed. Errors of the store go to the operator, and not to the
/// client.
pub(super) fn run_failed(error: &RunError, report: &dyn Fn(&RunError)) -> CallToolResult {
    match error {
        RunError::Store(StoreError::Reused) => {
            failed("nothing was done: this idempotencyKey was used before, for another call")
        }
        RunError::Store(StoreError::QueueFull { .. })
        | RunError::MessageTooLarge { .. }
        | RunError::MessageTooLong { .. }
        | RunError::EmptyMessage
        | RunError::MayNotAnswer => failed(&format!("nothing was done: {error}")),
        error => {
            report(error);
            failed(
                "the store did not answer; the call may or may not have been carried out: look before trying again",
            )
        }
    }
}

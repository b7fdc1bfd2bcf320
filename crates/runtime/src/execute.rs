//! One tool execution: limited in time, safe against panics, and stopped where stopping is
//! harmless.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{Arguments, Effect, Prepared, Probe, Tool, ToolContext, ToolError, visible};
use futures::FutureExt as _;
use serde_json::Value;
use tracing::{Instrument as _, debug_span, error};

/// The end of an execution.
pub(crate) struct Execution {
    /// The tool's result or error, or the error of a panic or a timeout.
    pub(crate) outcome: Result<Value, ToolError>,
    /// True if the tool did not return: it panicked, or ran out of time.
    pub(crate) broke_off: bool,
}

/// Runs a tool to its end, its timeout or, if it has no effect, its cancellation.
///
/// A call with an effect is not dropped when the turn is stopped: it is notified through
/// [`ToolContext::cancelled`] and awaited, so that its outcome is known. The caller of the turn is
/// answered before that.
pub(crate) async fn execute(
    tool: &Arc<dyn Tool>,
    context: &ToolContext,
    arguments: Arguments,
    default_timeout: Duration,
) -> Execution {
    let limit = tool.timeout().unwrap_or(default_timeout);
    let call = guard(tool, limit, async { tool.call(context, arguments).await });
    let ended = async {
        match call.await {
            Ok(outcome) => Execution {
                outcome,
                broke_off: false,
            },
            Err(error) => Execution {
                outcome: Err(error),
                broke_off: true,
            },
        }
    };
    let span = debug_span!("tool", tool = %tool.definition().name, call = %context.call);
    let ended = ended.instrument(span);
    if tool.definition().annotations.effect() != Effect::None {
        return ended.await;
    }
    tokio::select! {
        // In this order: a result that is there counts.
        biased;
        execution = ended => execution,
        () = context.cancelled.cancelled() => Execution {
            outcome: Err(ToolError::failed("stopped by the person")),
            broke_off: false,
        },
    }
}

/// Asks a tool for the outcome of a call in doubt. A probe that panics or takes too long is
/// [`Probe::Unknown`].
pub(crate) async fn probe(
    tool: &Arc<dyn Tool>,
    context: &ToolContext,
    arguments: &Arguments,
    default_timeout: Duration,
) -> Probe {
    let limit = tool.timeout().unwrap_or(default_timeout);
    let probe = async { tool.probe(context, arguments).await };
    guard(tool, limit, probe).await.unwrap_or(Probe::Unknown)
}

/// Returns the tool's description of what a call would do, for the user. `None`: the tool has none,
/// fails, or takes too long.
pub(crate) async fn preview(
    tool: &Arc<dyn Tool>,
    context: &ToolContext,
    arguments: &Arguments,
    default_timeout: Duration,
) -> Option<String> {
    let limit = tool.timeout().unwrap_or(default_timeout);
    let prepare = async { tool.prepare(context, arguments.clone()).await };
    match guard(tool, limit, prepare).await {
        Ok(Ok(Prepared::Ready { preview, .. })) => preview.as_deref().map(visible),
        Ok(Ok(Prepared::Ask { .. }) | Err(_)) | Err(_) => None,
    }
}

/// Awaits code of a tool. A panic becomes [`ToolError::BrokeDown`], its message goes to the log.
///
/// The future must call the tool lazily, because a tool may panic before it returns a future.
async fn guard<T>(
    tool: &Arc<dyn Tool>,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Result<T, ToolError> {
    // Unwind safety is the tool's own concern: the turn shares nothing with it that a panic could
    // leave half changed.
    match tokio::time::timeout(limit, AssertUnwindSafe(future).catch_unwind()).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(payload)) => {
            let panic = panic_message(&*payload);
            error!(tool = %tool.definition().name, panic, "a tool panicked");
            Err(ToolError::BrokeDown)
        }
        Err(_elapsed) => Err(ToolError::TimedOut { limit }),
    }
}

/// Returns the message of a panic, which is a string unless `panic_any` was used.
fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("the panic has no message")
}

//! One tool execution: bounded in time, safe against panics, stopped where stopping is harmless.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{Arguments, Effect, Prepared, Probe, Tool, ToolContext, ToolError, visible};
use futures::FutureExt as _;
use serde_json::Value;

/// How an execution ended.
pub(crate) struct Execution {
    /// What the tool answered, or why it did not.
    pub(crate) outcome: Result<Value, ToolError>,
    /// It did not answer itself: it broke down, or ran out of time.
    pub(crate) broke_off: bool,
}

/// Runs a tool to its end, its time-out or, if it has no effect, its cancellation.
///
/// A call that changes something is not dropped when the person stops the turn: it is told through
/// [`ToolContext::cancelled`] and waited for, so that its outcome is known.
pub(crate) async fn execute(
    tool: &Arc<dyn Tool>,
    context: &ToolContext,
    arguments: Arguments,
    default_timeout: Duration,
) -> Execution {
    let limit = tool.timeout().unwrap_or(default_timeout);
    // A tool may break down before it has a future to give.
    let call = AssertUnwindSafe(async { tool.call(context, arguments).await }).catch_unwind();
    let effect = tool.definition().annotations.effect();
    let ended = async {
        let broke_off = |error| Execution {
            outcome: Err(error),
            broke_off: true,
        };
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(outcome)) => Execution {
                outcome,
                broke_off: false,
            },
            Ok(Err(_panic)) => broke_off(ToolError::BrokeDown),
            Err(_elapsed) => broke_off(ToolError::TimedOut { limit }),
        }
    };
    if effect == Effect::None {
        tokio::select! {
            // In this order: an answer that is there counts.
            biased;
            execution = ended => execution,
            () = context.cancelled.cancelled() => {
                Execution { outcome: Err(ToolError::failed("stopped by the person")), broke_off: false }
            }
        }
    } else {
        ended.await
    }
}

/// Asks a tool what became of a call. A probe that breaks or takes too long knows nothing.
pub(crate) async fn probe(
    tool: &Arc<dyn Tool>,
    context: &ToolContext,
    arguments: &Arguments,
    default_timeout: Duration,
) -> Probe {
    let limit = tool.timeout().unwrap_or(default_timeout);
    let look = AssertUnwindSafe(async { tool.probe(context, arguments).await }).catch_unwind();
    match tokio::time::timeout(limit, look).await {
        Ok(Ok(probe)) => probe,
        Ok(Err(_)) | Err(_) => Probe::Unknown,
    }
}

/// What a call would do, in the person's words, as its tool has it now; `None` if the tool has no
/// such words, cannot look, or takes too long.
pub(crate) async fn preview(
    tool: &Arc<dyn Tool>,
    context: &ToolContext,
    arguments: &Arguments,
    default_timeout: Duration,
) -> Option<String> {
    let limit = tool.timeout().unwrap_or(default_timeout);
    let look =
        AssertUnwindSafe(async { tool.prepare(context, arguments.clone()).await }).catch_unwind();
    match tokio::time::timeout(limit, look).await {
        Ok(Ok(Ok(Prepared::Ready { preview, .. }))) => preview.as_deref().map(visible),
        Ok(Ok(Ok(Prepared::Ask { .. }) | Err(_)) | Err(_)) | Err(_) => None,
    }
}

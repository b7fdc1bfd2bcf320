//! One tool execution: bounded in time, safe against panics, stopped where stopping is harmless.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{Arguments, Effect, Tool, ToolContext, ToolError};
use futures::FutureExt as _;
use serde_json::Value;

/// Runs a tool to its end, its time-out or, if it has no effect, its cancellation.
///
/// A call that changes something is not dropped when the person stops the turn: it is told through
/// [`ToolContext::cancelled`] and waited for, so that its outcome is known.
pub(crate) async fn execute(
    tool: &Arc<dyn Tool>,
    context: &ToolContext,
    arguments: Arguments,
    default_timeout: Duration,
) -> Result<Value, ToolError> {
    let limit = tool.timeout().unwrap_or(default_timeout);
    let call = AssertUnwindSafe(tool.call(context, arguments)).catch_unwind();
    let effect = tool.definition().annotations.effect();
    let ended = async {
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(result)) => result,
            Ok(Err(_panic)) => Err(ToolError::failed("the tool broke down; this is a bug in the tool")),
            Err(_elapsed) => Err(ToolError::TimedOut { limit }),
        }
    };
    if effect == Effect::None {
        tokio::select! {
            result = ended => result,
            () = context.cancelled.cancelled() => Err(ToolError::failed("stopped by the person")),
        }
    } else {
        ended.await
    }
}

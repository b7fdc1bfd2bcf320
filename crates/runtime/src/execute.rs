//! One tool execution: limited in time, safe against panics, and stopped where stopping is
//! harmless.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{
    Arguments, Effect, Prepared, Probe, ProgressListener, Tool, ToolContext, ToolError, visible,
};
use futures::FutureExt as _;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
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
    let (watched, progress) = watch_progress(context);
    let call = guard(tool, limit, progress, async {
        tool.call(&watched, arguments).await
    });
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
    guard(tool, limit, no_progress(), probe)
        .await
        .unwrap_or(Probe::Unknown)
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
    match guard(tool, limit, no_progress(), prepare).await {
        Ok(Ok(Prepared::Ready { preview, .. })) => preview.as_deref().map(visible),
        Ok(Ok(Prepared::Ask { .. }) | Err(_)) | Err(_) => None,
    }
}

/// Awaits code of a tool, at most `limit` after its beginning or the last progress, and at most
/// [`Tool::timeout_with_progress`]. A panic becomes [`ToolError::BrokeDown`], its message goes to the log.
///
/// The future must call the tool lazily, because a tool may panic before it returns a future.
async fn guard<T>(
    tool: &Arc<dyn Tool>,
    limit: Duration,
    mut progress: watch::Receiver<()>,
    future: impl Future<Output = T>,
) -> Result<T, ToolError> {
    let began = Instant::now();
    let last = began + tool.timeout_with_progress(limit);
    let mut deadline = began + limit;
    let mut future = pin!(AssertUnwindSafe(future).catch_unwind());
    // Unwind safety is the tool's own concern: the turn shares nothing with it that a panic could
    // leave half changed.
    let ended = loop {
        tokio::select! {
            // In this order: a result that is there counts.
            biased;
            ended = &mut future => break Some(ended),
            Ok(()) = progress.changed() => deadline = last.min(Instant::now() + limit),
            () = tokio::time::sleep_until(deadline) => break None,
        }
    };
    match ended {
        Some(Ok(value)) => Ok(value),
        Some(Err(payload)) => {
            let panic = panic_message(&*payload);
            error!(tool = %tool.definition().name, panic, "a tool panicked");
            Err(ToolError::BrokeDown)
        }
        None => {
            let most = last - began;
            let extended = deadline == last && most > limit;
            Err(tool.timed_out(if extended { most } else { limit }, extended))
        }
    }
}

/// Returns the context with a listener that also tells of each report of progress.
fn watch_progress(context: &ToolContext) -> (ToolContext, watch::Receiver<()>) {
    let (told, progress) = watch::channel(());
    let listener = context.progress.clone();
    let watched = ToolContext {
        progress: ProgressListener::new(move |report| {
            told.send_replace(());
            listener.report(report);
        }),
        ..context.clone()
    };
    (watched, progress)
}

/// Returns progress that never comes, because its sender is gone.
fn no_progress() -> watch::Receiver<()> {
    watch::channel(()).1
}

/// Returns the message of a panic, which is a string unless `panic_any` was used.
fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("the panic has no message")
}

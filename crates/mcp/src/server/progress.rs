//! Progress notifications for a running call.

use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;

use crate::lock::lock;

/// Interval of notifications.
const PROGRESS: Duration = Duration::from_secs(1);

/// The current step of a call.
#[derive(Debug, Default)]
pub(super) struct CurrentStep(Mutex<Option<String>>);

impl CurrentStep {
    /// Sets the current step.
    pub(super) fn set(&self, text: String) {
        *lock(&self.0) = Some(text);
    }

    fn text(&self) -> Option<String> {
        lock(&self.0).clone()
    }
}

/// Waits for a call, while its client is notified once a second of the time and the current step,
/// if it sent a progress token.
pub(super) async fn with_progress<T>(
    call: impl Future<Output = T>,
    tool: &str,
    step: &CurrentStep,
    context: &RequestContext<RoleServer>,
) -> T {
    let Some(token) = context.meta.get_progress_token() else {
        return call.await;
    };
    // Pinned, because the call is polled again after every notification.
    let mut call = std::pin::pin!(call);
    let mut seconds = 0.0;
    loop {
        tokio::select! {
            ended = &mut call => return ended,
            () = tokio::time::sleep(PROGRESS) => {
                seconds += PROGRESS.as_secs_f64();
                let step = step.text().map(|text| format!(": {text}")).unwrap_or_default();
                let progress = ProgressNotificationParam::new(token.clone(), seconds)
                    .with_message(format!("{tool} has been running for {seconds} s{step}"));
                // The client may be gone.
                let _ = context.peer.notify_progress(progress).await;
            }
        }
    }
}

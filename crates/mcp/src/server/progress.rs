//! A client that wants to know is told that a call still runs, and what it is at.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;

/// The least time between two notifications.
const PROGRESS: Duration = Duration::from_secs(1);

/// The current step of a call.
#[derive(Debug, Default)]
pub(super) struct Doing(Mutex<Option<String>>);

impl Doing {
    /// Notes what it is at now.
    pub(super) fn now(&self, words: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
    }

    fn words(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Waits for a call, while its client is told once a second that it runs and what it is at, if it
/// gave a progress token.
pub(super) async fn watched<T>(
    call: impl Future<Output = T>,
    (tool, doing): (&str, &Doing),
    context: &RequestContext<RoleServer>,
) -> T {
    let Some(token) = context.meta.get_progress_token() else {
        return call.await;
    };
    let mut call = std::pin::pin!(call);
    let mut seconds = 0.0;
    loop {
        tokio::select! {
            ended = &mut call => return ended,
            () = tokio::time::sleep(PROGRESS) => {
                seconds += PROGRESS.as_secs_f64();
                let at = doing.words().map(|words| format!(": {words}")).unwrap_or_default();
                let told = ProgressNotificationParam::new(token.clone(), seconds)
                    .with_message(format!("{tool} has been running for {seconds} s{at}"));
                // A client that is gone hears nothing.
                let _ = context.peer.notify_progress(told).await;
            }
        }
    }
}

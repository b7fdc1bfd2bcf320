//! Notifications of changes in conversations.

use adjutant_core::BoxFuture;
use adjutant_core::port::{Change, Changes};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Changes buffered for a slow listener; beyond, it gets [`Change::Missed`].
const BUFFER: usize = 1024;

#[derive(Debug)]
pub(super) struct ChangeLog(broadcast::Sender<Change>);

impl Default for ChangeLog {
    fn default() -> Self {
        Self(broadcast::Sender::new(BUFFER))
    }
}

impl ChangeLog {
    pub(super) fn listen(&self) -> Box<dyn Changes> {
        Box::new(Listener(self.0.subscribe()))
    }

    /// Notifies all listeners of a change, which is built only if there are any.
    pub(super) fn notify(&self, change: impl FnOnce() -> Change) {
        if self.0.receiver_count() > 0 {
            // All listeners may have been dropped just now.
            let _ = self.0.send(change());
        }
    }
}

struct Listener(broadcast::Receiver<Change>);

impl Changes for Listener {
    fn next(&mut self) -> BoxFuture<'_, Option<Change>> {
        Box::pin(async {
            match self.0.recv().await {
                Ok(change) => Some(change),
                Err(RecvError::Lagged(_)) => Some(Change::Missed),
                Err(RecvError::Closed) => None,
            }
        })
    }
}

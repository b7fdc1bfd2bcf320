//! News of conversations, for those that wait for something to happen in them.

use adjutant_core::BoxFuture;
use adjutant_core::port::{Change, Changes};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Changes that one who listens may be behind. Of more, it is told that it missed some.
const BEHIND_MAX: usize = 1024;

#[derive(Debug)]
pub(super) struct News(broadcast::Sender<Change>);

impl Default for News {
    fn default() -> Self {
        Self(broadcast::Sender::new(BEHIND_MAX))
    }
}

impl News {
    pub(super) fn listen(&self) -> Box<dyn Changes> {
        Box::new(Listener(self.0.subscribe()))
    }

    /// Tells all who listen. The change is made only if there is one.
    pub(super) fn tell(&self, change: impl FnOnce() -> Change) {
        if self.0.receiver_count() > 0 {
            // All of them may have left just now.
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

//! A broadcast of changes in conversations, and of messages from other processes, to subscribers in
//! this process.

use std::sync::atomic::{AtomicBool, Ordering};

use adjutant_core::BoxFuture;
#[cfg(feature = "postgres")]
use adjutant_core::port::RelayReceiver;
use adjutant_core::port::{Change, Changes, RelayItem};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Changes that a subscriber may be behind. It then receives [`Change::Missed`] instead of those it
/// lost.
const BEHIND_MAX: usize = 1024;

/// Messages from other processes that a subscriber may be behind, of at most 8 kB each.
const MESSAGES_BEHIND_MAX: usize = 256;

/// The broadcast channels of one store.
#[derive(Debug)]
pub struct ChangeFeed {
    changes: broadcast::Sender<Change>,
    messages: broadcast::Sender<RelayItem>,
    /// True while a task watches for writes of other processes.
    is_watched: AtomicBool,
}

impl Default for ChangeFeed {
    fn default() -> Self {
        Self {
            changes: broadcast::Sender::new(BEHIND_MAX),
            messages: broadcast::Sender::new(MESSAGES_BEHIND_MAX),
            is_watched: AtomicBool::new(false),
        }
    }
}

impl ChangeFeed {
    pub(crate) fn subscribe(&self) -> Box<dyn Changes> {
        Box::new(Subscription(self.changes.subscribe()))
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn subscribe_messages(&self) -> Box<dyn RelayReceiver> {
        Box::new(Subscription(self.messages.subscribe()))
    }

    /// Sends a message of another process to all subscribers. It is built only if there is one.
    #[cfg(feature = "postgres")]
    pub(crate) fn publish_message(&self, message: impl FnOnce() -> RelayItem) {
        if self.messages.receiver_count() > 0 {
            // The last subscriber may have gone since the check.
            let _ = self.messages.send(message());
        }
    }

    /// Sends a change to all subscribers. It is built only if there is one.
    pub(crate) fn publish(&self, change: impl FnOnce() -> Change) {
        if self.changes.receiver_count() > 0 {
            // The last subscriber may have gone since the check.
            let _ = self.changes.send(change());
        }
    }

    /// Returns true if the caller has to start the watcher, because none runs.
    pub(crate) fn start_watching(&self) -> bool {
        !self.is_watched.swap(true, Ordering::SeqCst)
    }

    /// Returns true if the watcher goes on because there are subscribers. Otherwise the next
    /// subscriber starts a new one.
    pub(crate) fn keeps_watching(&self) -> bool {
        if self.has_subscribers() {
            return true;
        }
        self.is_watched.store(false, Ordering::SeqCst);
        // A subscriber that came between the two lines has seen that a watcher runs, so this one
        // goes on.
        self.has_subscribers() && self.start_watching()
    }

    fn has_subscribers(&self) -> bool {
        self.changes.receiver_count() + self.messages.receiver_count() > 0
    }
}

struct Subscription<T>(broadcast::Receiver<T>);

impl<T: Clone> Subscription<T> {
    /// Returns the next item, or `missed` in place of those that were lost. `None` if the store is
    /// gone.
    async fn receive(&mut self, missed: T) -> Option<T> {
        match self.0.recv().await {
            Ok(item) => Some(item),
            Err(RecvError::Lagged(_)) => Some(missed),
            Err(RecvError::Closed) => None,
        }
    }
}

impl Changes for Subscription<Change> {
    fn next(&mut self) -> BoxFuture<'_, Option<Change>> {
        Box::pin(self.receive(Change::Missed))
    }
}

#[cfg(feature = "postgres")]
impl RelayReceiver for Subscription<RelayItem> {
    fn next(&mut self) -> BoxFuture<'_, Option<RelayItem>> {
        Box::pin(self.receive(RelayItem::Missed))
    }
}

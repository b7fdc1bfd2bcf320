//! News of conversations, for whoever in this process waits for them.

use std::sync::atomic::{AtomicBool, Ordering};

use adjutant_core::BoxFuture;
use adjutant_core::port::{Change, Changes};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Changes that one who listens may be behind. Of more, it is told that it missed some.
const BEHIND_MAX: usize = 1024;

/// The news of one store.
#[derive(Debug)]
pub struct News {
    sender: broadcast::Sender<Change>,
    /// Whether other processes are watched.
    watches: AtomicBool,
}

impl Default for News {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BEHIND_MAX), watches: AtomicBool::new(false) }
    }
}

impl News {
    pub(crate) fn listen(&self) -> Box<dyn Changes> {
        Box::new(Listener(self.sender.subscribe()))
    }

    /// Tells all who listen. The change is made only if there is one.
    pub(crate) fn tell(&self, change: impl FnOnce() -> Change) {
        if self.sender.receiver_count() > 0 {
            // All of them may have left just now.
            let _ = self.sender.send(change());
        }
    }

    /// Returns whether the caller is the one who has to watch what other processes do from now on.
    pub(crate) fn begin_to_watch(&self) -> bool {
        !self.watches.swap(true, Ordering::SeqCst)
    }

    /// Returns whether somebody listens, so that whoever watches goes on; else the next who listens has somebody begin anew.
    pub(crate) fn goes_on(&self) -> bool {
        if self.sender.receiver_count() > 0 {
            return true;
        }
        self.watches.store(false, Ordering::SeqCst);
        // Somebody may have come between the two lines, and found that there is a watcher.
        self.sender.receiver_count() > 0 && self.begin_to_watch()
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

//! News of conversations and words of other processes, for whoever in this process waits for them.

use std::sync::atomic::{AtomicBool, Ordering};

use adjutant_core::BoxFuture;
#[cfg(feature = "postgres")]
use adjutant_core::port::Hearing;
use adjutant_core::port::{Change, Changes, Heard};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Changes that one who listens may be behind. Of more, it is told that it missed some.
const BEHIND_MAX: usize = 1024;

/// Words of other processes that one who hears may be behind, of at most 8 kB each.
const WORDS_BEHIND_MAX: usize = 256;

/// The news of one store.
#[derive(Debug)]
pub struct News {
    sender: broadcast::Sender<Change>,
    words: broadcast::Sender<Heard>,
    /// Whether other processes are watched.
    watches: AtomicBool,
}

impl Default for News {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(BEHIND_MAX),
            words: broadcast::Sender::new(WORDS_BEHIND_MAX),
            watches: AtomicBool::new(false),
        }
    }
}

impl News {
    pub(crate) fn listen(&self) -> Box<dyn Changes> {
        Box::new(Listener(self.sender.subscribe()))
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn hear(&self) -> Box<dyn Hearing> {
        Box::new(Listener(self.words.subscribe()))
    }

    /// Hands words of another process to all who hear. They are made only if there is one.
    #[cfg(feature = "postgres")]
    pub(crate) fn pass_on(&self, words: impl FnOnce() -> Heard) {
        if self.words.receiver_count() > 0 {
            // All of them may have left just now.
            let _ = self.words.send(words());
        }
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

    /// Returns whether somebody listens or hears, so that whoever watches goes on; else the next
    /// who listens has somebody begin anew.
    pub(crate) fn goes_on(&self) -> bool {
        if self.has_listeners() {
            return true;
        }
        self.watches.store(false, Ordering::SeqCst);
        // Somebody may have come between the two lines, and found that there is a watcher.
        self.has_listeners() && self.begin_to_watch()
    }

    fn has_listeners(&self) -> bool {
        self.sender.receiver_count() + self.words.receiver_count() > 0
    }
}

struct Listener<T>(broadcast::Receiver<T>);

impl Changes for Listener<Change> {
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

#[cfg(feature = "postgres")]
impl Hearing for Listener<Heard> {
    fn next(&mut self) -> BoxFuture<'_, Option<Heard>> {
        Box::pin(async {
            match self.0.recv().await {
                Ok(heard) => Some(heard),
                Err(RecvError::Lagged(_)) => Some(Heard::Missed),
                Err(RecvError::Closed) => None,
            }
        })
    }
}

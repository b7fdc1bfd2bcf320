//! The number of those who wait for a conversation to be free.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts those who wait.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue(Arc<AtomicUsize>);

/// One who waits. Dropped, they do not wait any more.
pub(crate) struct Queued(Queue);

impl Queue {
    /// Counts one more, until what it returns is dropped.
    pub(crate) fn enter(&self) -> Queued {
        self.0.fetch_add(1, Ordering::Relaxed);
        Queued(self.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

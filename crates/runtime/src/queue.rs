//! The number of inputs that wait for earlier turns of their conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A counter of waiting inputs, shared by its clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue(Arc<AtomicUsize>);

/// One waiting input, counted until it is dropped.
pub(crate) struct Queued(Queue);

impl Queue {
    /// Counts one more input until the returned guard is dropped.
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

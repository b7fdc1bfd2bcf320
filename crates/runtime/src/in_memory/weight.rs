//! The approximate memory of a conversation, counted in the total of its store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant_core::conversation::{event_weight, stored_weight};
use adjutant_core::{Event, LogContent};

/// Approximate size of a conversation without events, in bytes: its keys, its inbox, and the row of
/// the decision log that a turn has at least.
const EMPTY: usize = 2 * 1024;

/// Approximate size of one conversation in bytes, which its store counts until this is dropped.
#[derive(Debug)]
pub(super) struct Weight {
    bytes: usize,
    total: Arc<AtomicUsize>,
}

impl Weight {
    /// Returns the weight of a new conversation, added to the total of its store.
    pub(super) fn new(total: &Arc<AtomicUsize>) -> Self {
        total.fetch_add(EMPTY, Ordering::Relaxed);
        Self {
            bytes: EMPTY,
            total: total.clone(),
        }
    }

    /// Adds an event, which the logs repeat unless they have no content.
    pub(super) fn add(&mut self, event: &Event, log: LogContent) {
        let logged = match log {
            LogContent::None => 0,
            _ => stored_weight(event),
        };
        let bytes = event_weight(event) + logged;
        self.bytes += bytes;
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

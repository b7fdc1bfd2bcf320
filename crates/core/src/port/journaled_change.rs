use std::fmt;
use std::sync::Arc;

use crate::event::Recorded;
use crate::id::IdempotencyKey;
use crate::task::{TaskChange, TaskChanged};

/// A change of tasks that is written in one transaction with the events of the call that makes it
/// ([`Journal::append_with_change`](crate::port::Journal::append_with_change)).
#[derive(Clone)]
pub struct JournaledChange {
    /// The change.
    pub change: TaskChange,
    /// The key of the call. A change that was carried out under it is not carried out again.
    pub key: IdempotencyKey,
    /// Makes the event that says how the call ended, at the place behind the events that are
    /// written with it. A transaction that is repeated calls it again.
    pub ended: Arc<dyn Fn(&TaskChanged) -> Recorded + Send + Sync>,
}

impl fmt::Debug for JournaledChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournaledChange")
            .field("change", &self.change)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::event::Recorded;
use crate::id::IdempotencyKey;
use crate::store_change::StoreChange;

/// Makes the event that records how a call ended from the outcome of its change.
pub type EndOfCall = dyn Fn(&dyn Any) -> Recorded + Send + Sync;

/// A change that is written in one transaction with the events of the call that makes it
/// ([`Journal::append_with_change`](crate::port::Journal::append_with_change)).
#[derive(Clone)]
pub struct JournaledChange {
    /// The change, of a type that the tool and the store share.
    pub change: Arc<dyn StoreChange>,
    /// The key of the call. A change that was carried out under it is not carried out again.
    pub key: IdempotencyKey,
    /// Makes the event of the call's end, whose place is behind the events that are written with
    /// it. A transaction that is repeated calls it again.
    pub ended: Arc<EndOfCall>,
}

impl fmt::Debug for JournaledChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournaledChange")
            .field("change", &self.change)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

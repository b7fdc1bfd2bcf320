//! The leases of this process's own workers, by a clock that nobody can set.
//!
//! Another process is asked for its life. Within this process an agent may have been dropped while
//! the process goes on, so that its leases have to end; the wall clock may have stepped meanwhile.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::lock;

/// Time for which an epoch that has run out can still be extended: a process that was suspended
/// for less continues its turns.
const KEPT: Duration = Duration::from_secs(86_400);

/// The ends of the leases of this process, by worker and epoch.
static ENDS: Mutex<BTreeMap<(String, i64), Instant>> = Mutex::new(BTreeMap::new());

/// Records that a worker of this process has a lease in an epoch for this long.
pub(super) fn grant(worker: &str, epoch: i64, lease: Duration) {
    let now = Instant::now();
    let Some(until) = now.checked_add(lease.min(KEPT)) else {
        return;
    };
    let mut ends = lock(&ENDS);
    ends.retain(|_, end| now.saturating_duration_since(*end) < KEPT);
    let end = ends.entry((worker.to_owned(), epoch)).or_insert(until);
    *end = until.max(*end);
}

/// Extends the epoch of a worker of this process. Returns false if it has none: another worker may
/// have its leases.
pub(super) fn extend(worker: &str, epoch: i64, lease: Duration) -> bool {
    let is_known = lock(&ENDS).contains_key(&(worker.to_owned(), epoch));
    if is_known {
        grant(worker, epoch, lease);
    }
    is_known
}

/// Ends the epoch of a worker of this process that has run out, because one of its leases is taken.
pub(crate) fn end(worker: &str, epoch: i64) {
    lock(&ENDS).remove(&(worker.to_owned(), epoch));
}

/// Returns true while the epoch of a worker of this process has not run out.
pub(super) fn is_current(worker: &str, epoch: i64) -> bool {
    let end = lock(&ENDS).get(&(worker.to_owned(), epoch)).copied();
    end.is_some_and(|end| Instant::now() < end)
}

//! Locking of shared state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks shared state, ignoring poison: every change under the lock is complete.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

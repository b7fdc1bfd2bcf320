//! Locks of what is shared.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks something that is shared. Nothing is half done while it is locked.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

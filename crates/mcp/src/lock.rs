//! Mutexes that stay usable after a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also one whose holder has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No lock of this crate is held across a panic that leaves its data inconsistent: each is held
    // for a few calls of a collection, and never across an `await`.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

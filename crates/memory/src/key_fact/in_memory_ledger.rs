//! A ledger of changes in memory: it is lost with the process, and with it provenance and undo.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use adjutant_core::port::{MemoryLedger, StoreError};
use adjutant_core::{BoxFuture, IdempotencyKey, MemoryChange, MemoryScope};

use super::planned_change::fact_sides;

/// Number of changes that are kept for each vault; the oldest are dropped first.
const CHANGES_MAX: usize = 10_000;

/// A [`MemoryLedger`] without a database, for programs that need no history over restarts.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use adjutant_core::port::MemoryLedger;
/// use adjutant_memory::InMemoryLedger;
///
/// let ledger: Arc<dyn MemoryLedger> = Arc::new(InMemoryLedger::new());
/// ```
#[derive(Debug, Default)]
pub struct InMemoryLedger(Mutex<HashMap<MemoryScope, Vec<MemoryChange>>>);

impl InMemoryLedger {
    /// Returns a ledger without changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, scope: &MemoryScope, work: impl FnOnce(&mut Vec<MemoryChange>) -> T) -> T {
        let mut scopes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(scopes.entry(scope.clone()).or_default())
    }
}

/// Returns true if a change is about a fact with this text, before or after it.
fn is_about(change: &MemoryChange, text: &str) -> bool {
    fact_sides(&change.effect).is_some_and(|(before, after)| {
        let mut sides = before.into_iter().chain(after);
        sides.any(|line| line.text == text)
    })
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(std::future::ready(Ok(value)))
}

impl MemoryLedger for InMemoryLedger {
    fn put<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: &'a MemoryChange,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(scope, |changes| {
            match changes.iter_mut().find(|known| known.id == change.id) {
                Some(known) => *known = change.clone(),
                None => changes.push(change.clone()),
            }
            let over = changes.len().saturating_sub(CHANGES_MAX);
            changes.drain(..over);
        });
        ready(())
    }

    fn by_key<'a>(
        &'a self,
        scope: &'a MemoryScope,
        key: &'a IdempotencyKey,
    ) -> BoxFuture<'a, Result<Option<MemoryChange>, StoreError>> {
        let found = self.with(scope, |changes| {
            changes
                .iter()
                .rev()
                .find(|change| change.key.as_ref() == Some(key))
                .cloned()
        });
        ready(found)
    }

    fn about<'a>(
        &'a self,
        scope: &'a MemoryScope,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Vec<MemoryChange>, StoreError>> {
        let found = self.with(scope, |changes| {
            changes
                .iter()
                .filter(|change| is_about(change, text))
                .cloned()
                .collect()
        });
        ready(found)
    }

    fn newest<'a>(
        &'a self,
        scope: &'a MemoryScope,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<MemoryChange>, StoreError>> {
        let found = self.with(scope, |changes| {
            changes.iter().rev().take(limit).cloned().collect()
        });
        ready(found)
    }
}

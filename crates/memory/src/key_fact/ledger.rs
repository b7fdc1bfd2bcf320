//! The history, kept in memory: gone with the process, and with it only `why` and `undo`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use adjutant_core::port::{MemoryLedger, StoreError};
use adjutant_core::{BoxFuture, IdempotencyKey, MemoryChange, MemoryEffect, MemoryScope};

/// Changes kept for each vault; the oldest go first.
const CHANGES_MAX: usize = 10_000;

/// A [`MemoryLedger`] without a database, the library's default.
#[derive(Debug, Default)]
pub struct InMemoryLedger(Mutex<HashMap<MemoryScope, Vec<MemoryChange>>>);

impl InMemoryLedger {
    /// Empty.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, scope: &MemoryScope, work: impl FnOnce(&mut Vec<MemoryChange>) -> T) -> T {
        let mut scopes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(scopes.entry(scope.clone()).or_default())
    }
}

/// Whether the change is about a fact of this text.
fn is_about(change: &MemoryChange, text: &str) -> bool {
    match &change.effect {
        MemoryEffect::Fact { before, after } => [before, after]
            .into_iter()
            .flatten()
            .any(|line| line.text == text),
        MemoryEffect::Note { .. } | MemoryEffect::Task { .. } => false,
    }
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
        Box::pin(std::future::ready(Ok(())))
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
        Box::pin(std::future::ready(Ok(found)))
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
        Box::pin(std::future::ready(Ok(found)))
    }

    fn newest<'a>(
        &'a self,
        scope: &'a MemoryScope,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<MemoryChange>, StoreError>> {
        let found = self.with(scope, |changes| {
            changes.iter().rev().take(limit).cloned().collect()
        });
        Box::pin(std::future::ready(Ok(found)))
    }
}

//! The numbers of tasks in memory: they are lost with the process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, IdempotencyKey, MemoryScope, UserId};
use adjutant_tools::{NumbersChange, TaskChanged, TaskId, TaskIndex, TaskNumber};

/// A [`TaskIndex`] without a database: the next process gives new numbers.
#[derive(Debug, Default)]
pub struct InMemoryTaskIndex(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: HashMap<UserId, TaskId>,
    numbers: HashMap<MemoryScope, BTreeMap<TaskId, TaskNumber>>,
    applied: HashMap<(UserId, IdempotencyKey), TaskChanged>,
}

impl InMemoryTaskIndex {
    /// Returns an index without numbers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(std::future::ready(Ok(value)))
}

impl TaskIndex for InMemoryTaskIndex {
    fn numbers<'a>(
        &'a self,
        scope: &'a MemoryScope,
    ) -> BoxFuture<'a, Result<Vec<TaskNumber>, StoreError>> {
        ready(
            self.state()
                .numbers
                .get(scope)
                .map(|numbers| numbers.values().cloned().collect())
                .unwrap_or_default(),
        )
    }

    fn new_numbers<'a>(
        &'a self,
        user: &'a UserId,
        count: usize,
    ) -> BoxFuture<'a, Result<Vec<TaskId>, StoreError>> {
        let mut state = self.state();
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            let next = state
                .last
                .get(user)
                .map_or(TaskId::FIRST, |last| last.next());
            state.last.insert(user.clone(), next);
            ids.push(next);
        }
        ready(ids)
    }

    fn put_numbers<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: NumbersChange<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut state = self.state();
        let numbers = state.numbers.entry(scope.clone()).or_default();
        numbers.retain(|id, _| !change.removed.contains(id));
        numbers.extend(change.put.iter().map(|number| (number.id, number.clone())));
        if let Some((key, changed)) = change.applied {
            state
                .applied
                .insert((scope.user.clone(), key.clone()), changed.clone());
        }
        ready(())
    }

    fn applied<'a>(
        &'a self,
        user: &'a UserId,
        key: &'a IdempotencyKey,
    ) -> BoxFuture<'a, Result<Option<TaskChanged>, StoreError>> {
        ready(
            self.state()
                .applied
                .get(&(user.clone(), key.clone()))
                .cloned(),
        )
    }
}

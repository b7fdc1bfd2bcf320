//! The store of tasks.

use adjutant_core::port::{StoreError, TaskStore};
use adjutant_core::{
    BoxFuture, IdempotencyKey, StoreId, Task, TaskChange, TaskChanged, TaskFilter, TaskId, UserId,
};

use super::{InMemory, ready};

impl TaskStore for InMemory {
    fn store_id(&self) -> Option<StoreId> {
        Some(StoreId::of(self))
    }

    fn apply<'a>(
        &'a self,
        user: &'a UserId,
        change: &'a TaskChange,
        key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        let mut state = self.state();
        ready(Ok(state.users.entry(user.clone()).or_default().apply(
            user,
            change,
            key,
            self.clock.now(),
        )))
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        let state = self.state();
        let tasks = state
            .users
            .get(user)
            .map(|tasks| tasks.tasks.as_slice())
            .unwrap_or_default();
        ready(Ok(tasks
            .iter()
            .filter(|task| filter.takes(task))
            .cloned()
            .collect()))
    }

    fn list_last<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
        before: Option<TaskId>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        let state = self.state();
        let tasks = state
            .users
            .get(user)
            .map(|tasks| tasks.tasks.as_slice())
            .unwrap_or_default();
        let is_before = |task: &&Task| before.is_none_or(|before| task.id < before);
        let found = tasks
            .iter()
            .rev()
            .filter(is_before)
            .filter(|task| filter.takes(task));
        let mut last: Vec<Task> = found
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .cloned()
            .collect();
        last.reverse();
        ready(Ok(last))
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        let state = self.state();
        let task = state
            .users
            .get(user)
            .and_then(|tasks| tasks.tasks.iter().find(|task| task.id == id).cloned());
        ready(Ok(task))
    }
}

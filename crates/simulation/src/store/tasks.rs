//! The tasks of the store, whichever rows it has.

use std::sync::Arc;

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, IdempotencyKey, StoreId, UserId};
use adjutant_tools::{Task, TaskChange, TaskChanged, TaskFilter, TaskId, TaskStore};

use crate::world::World;

/// The tasks, as the tools of a process see them.
pub(crate) struct Tasks(pub(crate) Arc<World>);

impl TaskStore for Tasks {
    fn apply<'a>(
        &'a self,
        user: &'a UserId,
        change: &'a TaskChange,
        key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        let rows = self.0.store().rows().clone();
        Box::pin(async move { rows.apply(user, change, key).await })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        let rows = self.0.store().rows().clone();
        Box::pin(async move { TaskStore::list(&*rows, user, filter).await })
    }

    fn list_last<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
        before: Option<TaskId>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        let rows = self.0.store().rows().clone();
        Box::pin(async move { rows.list_last(user, filter, before, limit).await })
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        let rows = self.0.store().rows().clone();
        Box::pin(async move { rows.get(user, id).await })
    }

    fn store_id(&self) -> Option<StoreId> {
        Some(self.0.store().id())
    }
}

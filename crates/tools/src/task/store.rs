//! The port of stores that keep tasks.

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, IdempotencyKey, StoreId, UserId};

use super::model::{Task, TaskChange, TaskChanged, TaskFilter, TaskId};

/// A store of users' tasks, as the task tools need it.
pub trait TaskStore: Send + Sync + 'static {
    /// Carries out one change and, in the same transaction, records its outcome under `key`. The
    /// same key again changes nothing and returns the recorded outcome. Without a key the change is
    /// carried out each time.
    ///
    /// Completing a completed task succeeds and says so; `completed_at` keeps its first value.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was changed.
    fn apply<'a>(
        &'a self,
        user: &'a UserId,
        change: &'a TaskChange,
        key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>>;

    /// Lists the user's tasks, by id.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>>;

    /// Lists the last `limit` tasks of the user with an id below `before`, by id. `before` of
    /// `None`: the last of all. The cost does not grow with the number of other tasks.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    fn list_last<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
        before: Option<TaskId>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>>;

    /// Returns one task of the user, or `None` if there is no such task.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>>;

    /// Returns the id of the store. If it is the journal's too, changes are written with the events
    /// of their calls. Default: `None`, a store that is shared with no journal.
    fn store_id(&self) -> Option<StoreId> {
        None
    }
}

use crate::BoxFuture;
use crate::id::{IdempotencyKey, StoreId, UserId};
use crate::port::StoreError;
use crate::task::{Task, TaskChange, TaskChanged, TaskFilter, TaskId};

/// Where tasks are kept.
pub trait TaskStore: Send + Sync + 'static {
    /// Carries out one change and, in the same transaction, writes a row keyed by `key` with what
    /// it led to. The same key again changes nothing and gives the recorded outcome. Without a key
    /// it is carried out as it is.
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

    /// The user's tasks, by id.
    ///
    /// # Errors
    /// [`StoreError`].
    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>>;

    /// Reads the last `limit` tasks of the user with an id below `before`, by id. `before` of
    /// `None`: the last of all. What is read does not grow with the number of other tasks.
    ///
    /// # Errors
    /// [`StoreError`].
    fn list_last<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
        before: Option<TaskId>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>>;

    /// One task of the user.
    ///
    /// # Errors
    /// [`StoreError`].
    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>>;

    /// Returns the place in which the tasks are kept. Default: `None`, a place that is shared with
    /// no journal.
    fn store_id(&self) -> Option<StoreId> {
        None
    }
}

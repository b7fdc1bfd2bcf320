//! The port of an index of tasks that are kept in notes: their ids, and the outcomes of changes.

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, IdempotencyKey, MemoryScope, UserId};
use jiff::Timestamp;

use super::model::{TaskChanged, TaskId};

/// The id of a task that is kept elsewhere, as a line of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskNumber {
    /// The id, unique among the user's tasks.
    pub id: TaskId,
    /// Time of this write.
    pub at: Timestamp,
    /// The task that the id stands for, in the form of the store that keeps the task.
    pub body: String,
}

/// Changes of ids that are written together.
#[derive(Debug, Clone, Default)]
pub struct NumbersChange<'a> {
    /// New ids, and ids that stand for another line now.
    pub put: &'a [TaskNumber],
    /// Ids whose task is gone.
    pub removed: &'a [TaskId],
    /// The outcome of a change of a task, under the key of its call.
    pub applied: Option<(&'a IdempotencyKey, &'a TaskChanged)>,
}

/// An index of tasks that are lines of notes: their ids, and the outcomes of changes by key. The
/// notes are the source of truth: losing the index loses the ids, never a task.
pub trait TaskIndex: Send + Sync + 'static {
    /// Reads the ids of a user's vault, lowest first.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    fn numbers<'a>(
        &'a self,
        scope: &'a MemoryScope,
    ) -> BoxFuture<'a, Result<Vec<TaskNumber>, StoreError>>;

    /// Reserves ids that none of the user's tasks ever had.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written.
    fn new_numbers<'a>(
        &'a self,
        user: &'a UserId,
        count: usize,
    ) -> BoxFuture<'a, Result<Vec<TaskId>, StoreError>>;

    /// Writes changes, all or none.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was written.
    fn put_numbers<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: NumbersChange<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the outcome of the change with this key, or `None` if there was none.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    fn applied<'a>(
        &'a self,
        user: &'a UserId,
        key: &'a IdempotencyKey,
    ) -> BoxFuture<'a, Result<Option<TaskChanged>, StoreError>>;
}

use jiff::Timestamp;

use crate::BoxFuture;
use crate::id::{IdempotencyKey, UserId};
use crate::memory::MemoryScope;
use crate::port::StoreError;
use crate::task::{TaskChanged, TaskId};

/// The number of a task that is kept elsewhere: a line of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskNumber {
    /// The number, one of the user's.
    pub id: TaskId,
    /// The time of this write.
    pub at: Timestamp,
    /// The task that it stands for, in the form of whoever keeps the task.
    pub body: String,
}

/// Changes of numbers that are written together.
#[derive(Debug, Clone, Default)]
pub struct NumbersChange<'a> {
    /// New ones, and ones that stand for something else now.
    pub put: &'a [TaskNumber],
    /// Those that stand for nothing any more.
    pub removed: &'a [TaskId],
    /// The outcome of a change of a task, under its key.
    pub applied: Option<(&'a IdempotencyKey, &'a TaskChanged)>,
}

/// An index of tasks that are lines of notes: their numbers, and what was carried out under which
/// key. The notes are the truth: losing this loses the numbers, never a task.
pub trait TaskIndex: Send + Sync + 'static {
    /// Reads the numbers of a user's vault, lowest first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn numbers<'a>(
        &'a self,
        scope: &'a MemoryScope,
    ) -> BoxFuture<'a, Result<Vec<TaskNumber>, StoreError>>;

    /// Gives numbers that none of the user's tasks ever had.
    ///
    /// # Errors
    /// [`StoreError`].
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

    /// Reads what a change of the user's tasks with this key led to.
    ///
    /// # Errors
    /// [`StoreError`].
    fn applied<'a>(
        &'a self,
        user: &'a UserId,
        key: &'a IdempotencyKey,
    ) -> BoxFuture<'a, Result<Option<TaskChanged>, StoreError>>;
}

//! What a change of tasks writes, whatever the database.

use adjutant_core::port::StoreError;
use adjutant_core::{IdempotencyKey, Task, TaskChange, TaskChanged, TaskDescription, TaskId, UserId};
use jiff::Timestamp;

/// The rows of one transaction. A backend gives the statements; [`apply`] says which.
pub(crate) trait TaskRows: Send {
    type Error: From<StoreError> + Send;

    /// What a change with this key led to.
    fn outcome(
        &mut self,
        user: &UserId,
        key: &IdempotencyKey,
    ) -> impl Future<Output = Result<Option<TaskChanged>, Self::Error>> + Send;

    /// Keeps what a change with this key led to.
    fn keep_outcome(
        &mut self,
        user: &UserId,
        key: &IdempotencyKey,
        outcome: &TaskChanged,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// An id the user's tasks never had.
    fn new_id(&mut self, user: &UserId) -> impl Future<Output = Result<TaskId, Self::Error>> + Send;

    fn find(
        &mut self,
        user: &UserId,
        id: TaskId,
    ) -> impl Future<Output = Result<Option<Task>, Self::Error>> + Send;

    /// Writes a new task, or one that changed.
    fn write(&mut self, task: &Task) -> impl Future<Output = Result<(), Self::Error>> + Send;

    fn delete(&mut self, task: &Task) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Carries out one change, once per key. The caller commits.
pub(crate) async fn apply<R: TaskRows>(
    rows: &mut R,
    user: &UserId,
    change: &TaskChange,
    key: Option<&IdempotencyKey>,
    now: Timestamp,
) -> Result<TaskChanged, R::Error> {
    if let Some(key) = key
        && let Some(outcome) = rows.outcome(user, key).await?
    {
        return Ok(outcome);
    }
    let outcome = match change {
        TaskChange::Add { description } => {
            let task = new(user, rows.new_id(user).await?, description, now);
            rows.write(&task).await?;
            TaskChanged::Added { task }
        }
        TaskChange::Update { id, description } => match rows.find(user, *id).await? {
            Some(task) => {
                let before = task.description.clone();
                let task = Task { description: description.clone(), updated_at: now, ..task };
                rows.write(&task).await?;
                TaskChanged::Updated { task, before }
            }
            None => TaskChanged::NoSuchTask { id: *id },
        },
        TaskChange::Complete { id } => match rows.find(user, *id).await? {
            Some(task) if task.completed => TaskChanged::Completed { task, already: true },
            Some(task) => {
                let task = Task { completed: true, updated_at: now, completed_at: Some(now), ..task };
                rows.write(&task).await?;
                TaskChanged::Completed { task, already: false }
            }
            None => TaskChanged::NoSuchTask { id: *id },
        },
        TaskChange::Delete { id } => match rows.find(user, *id).await? {
            Some(task) => {
                rows.delete(&task).await?;
                TaskChanged::Deleted { task }
            }
            None => TaskChanged::NoSuchTask { id: *id },
        },
    };
    if let Some(key) = key {
        rows.keep_outcome(user, key, &outcome, now).await?;
    }
    Ok(outcome)
}

fn new(user: &UserId, id: TaskId, description: &TaskDescription, now: Timestamp) -> Task {
    Task {
        id,
        user_id: user.clone(),
        description: description.clone(),
        completed: false,
        created_at: now,
        updated_at: now,
        completed_at: None,
    }
}

//! Tasks and their ids.

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, IdempotencyKey, StoreId, UserId};
use adjutant_tools::{
    DELETED_TASK_DAYS, Task, TaskChange, TaskChanged, TaskDescription, TaskFilter, TaskId,
    TaskStore,
};
use jiff::{SignedDuration, Timestamp};

use super::{Backend, Connection, Failure, FromRow as _, Row, SqlStore, decode_all, values};
use crate::record::{self, TaskRow};

/// Selects the tasks of the user `$1`.
macro_rules! select_tasks {
    ($rest:literal) => {
        concat!(
            "SELECT id, description, created_at, updated_at, completed_at, from_others FROM adjutant_task WHERE user_id = $1 ",
            $rest
        )
    };
}

/// A user's open tasks.
pub(crate) const OPEN: &str = select_tasks!("AND completed_at IS NULL ORDER BY id");

/// The last of a user's open tasks before an id.
pub(crate) const LAST_OPEN: &str =
    select_tasks!("AND completed_at IS NULL AND id < $2 ORDER BY id DESC LIMIT $3");

impl<B: Backend> TaskStore for SqlStore<B> {
    fn store_id(&self) -> Option<StoreId> {
        Some(self.id())
    }

    fn apply<'a>(
        &'a self,
        user: &'a UserId,
        change: &'a TaskChange,
        key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        let data = (user.clone(), change.clone(), key.cloned());
        self.write(data, |tx, (user, change, key)| {
            Box::pin(apply(tx, user, change, key.as_ref()))
        })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        self.explained(async move {
            let statement = match filter {
                TaskFilter::All => select_tasks!("ORDER BY id"),
                TaskFilter::Pending => OPEN,
                TaskFilter::Completed => select_tasks!("AND completed_at IS NOT NULL ORDER BY id"),
            };
            let rows = self
                .backend
                .fetch_all(statement, values![user.as_str()])
                .await?;
            Ok(decode_all(rows, |row| task(row, user))?)
        })
    }

    fn list_last<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
        before: Option<TaskId>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        self.explained(async move {
            let statement = match filter {
                TaskFilter::All => select_tasks!("AND id < $2 ORDER BY id DESC LIMIT $3"),
                TaskFilter::Pending => LAST_OPEN,
                TaskFilter::Completed => {
                    select_tasks!(
                        "AND completed_at IS NOT NULL AND id < $2 ORDER BY id DESC LIMIT $3"
                    )
                }
            };
            let before = before
                .and_then(|before| i64::try_from(before.get()).ok())
                .unwrap_or(i64::MAX);
            let rows = self
                .backend
                .fetch_all(statement, values![user.as_str(), before, i64::from(limit)])
                .await?;
            Ok(decode_all(rows.into_iter().rev(), |row| task(row, user))?)
        })
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        self.read((user.clone(), id), |tx, (user, id)| {
            Box::pin(find(tx, user, *id))
        })
    }
}

/// Applies a change, once per key.
pub(super) async fn apply<C: Connection>(
    tx: &mut C,
    user: &UserId,
    change: &TaskChange,
    key: Option<&IdempotencyKey>,
) -> Result<TaskChanged, Failure> {
    lock_user(tx, user).await?;
    // After the lock, so that a concurrent repeat waits here and then finds the outcome.
    if let Some(key) = key
        && let Some(outcome) = outcome(tx, user, key).await?
    {
        return Ok(outcome);
    }
    let now = tx.now().await?;
    let outcome = match change {
        TaskChange::Add {
            description,
            from_others,
        } => {
            let task = Task {
                from_others: *from_others,
                ..new(user, new_id(tx, user).await?, description, now)
            };
            write(tx, &task).await?;
            TaskChanged::Added { task }
        }
        TaskChange::Update {
            id,
            description,
            from_others,
        } => match find(tx, user, *id).await? {
            Some(task) => {
                let before = task.description.clone();
                let task = Task {
                    description: description.clone(),
                    from_others: *from_others,
                    updated_at: now,
                    ..task
                };
                write(tx, &task).await?;
                TaskChanged::Updated { task, before }
            }
            None => TaskChanged::NoSuchTask { id: *id },
        },
        TaskChange::Complete { id } => match find(tx, user, *id).await? {
            Some(task) if task.completed => TaskChanged::Completed {
                task,
                already: true,
            },
            Some(task) => {
                let task = Task {
                    completed: true,
                    updated_at: now,
                    completed_at: Some(now),
                    ..task
                };
                write(tx, &task).await?;
                TaskChanged::Completed {
                    task,
                    already: false,
                }
            }
            None => TaskChanged::NoSuchTask { id: *id },
        },
        TaskChange::Delete { id } => match find(tx, user, *id).await? {
            Some(task) => {
                delete(tx, &task, now).await?;
                TaskChanged::Deleted { task }
            }
            None => TaskChanged::NoSuchTask { id: *id },
        },
        TaskChange::Restore { id } => match find(tx, user, *id).await? {
            Some(task) => TaskChanged::Restored {
                task,
                already: true,
            },
            None => match restore(tx, user, *id, now).await? {
                Some(task) => TaskChanged::Restored {
                    task,
                    already: false,
                },
                None => TaskChanged::NoSuchTask { id: *id },
            },
        },
    };
    if let Some(key) = key {
        // In the same transaction, so that a repeat finds the change with its outcome, or neither.
        record(tx, user, key, &outcome, now).await?;
    }
    Ok(outcome)
}

/// Stores the outcome of a change under its key.
pub(super) async fn record<C: Connection>(
    tx: &mut C,
    user: &UserId,
    key: &IdempotencyKey,
    outcome: &TaskChanged,
    now: Timestamp,
) -> Result<(), Failure> {
    tx.execute(
        "INSERT INTO adjutant_applied_change (user_id, key, outcome, at) VALUES ($1, $2, $3, $4)",
        values![
            user.as_str(),
            key.as_str(),
            &record::to_json(outcome)?,
            &record::format_time(now)
        ],
    )
    .await?;
    Ok(())
}

/// Returns the time since which deleted tasks can be restored.
pub(super) fn restorable_since(now: Timestamp) -> String {
    let kept = SignedDuration::from_hours(DELETED_TASK_DAYS * 24);
    record::format_time(now.checked_sub(kept).unwrap_or(Timestamp::MIN))
}

/// Moves a task to the deleted ones, from which it can be restored for a while.
async fn delete<C: Connection>(tx: &mut C, task: &Task, now: Timestamp) -> Result<(), Failure> {
    let (user, row) = (task.user_id.as_str(), TaskRow::from_task(task));
    tx.execute(
        "DELETE FROM adjutant_deleted_task WHERE user_id = $1 AND deleted_at < $2",
        values![user, &restorable_since(now)],
    )
    .await?;
    tx.execute(
        "INSERT INTO adjutant_deleted_task (user_id, id, description, created_at, updated_at, completed_at, deleted_at, from_others)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        values![
            user,
            row.id,
            &row.description,
            &row.created_at,
            &row.updated_at,
            row.completed_at.as_deref(),
            &record::format_time(now),
            row.from_others
        ],
    )
    .await?;
    tx.execute(
        "DELETE FROM adjutant_task WHERE user_id = $1 AND id = $2",
        values![user, row.id],
    )
    .await?;
    Ok(())
}

/// Restores a deleted task, if it still can be.
async fn restore<C: Connection>(
    tx: &mut C,
    user: &UserId,
    id: TaskId,
    now: Timestamp,
) -> Result<Option<Task>, Failure> {
    let Ok(id) = i64::try_from(id.get()) else {
        return Ok(None);
    };
    let columns = tx
        .fetch_optional(
            "SELECT id, description, created_at, updated_at, completed_at, from_others FROM adjutant_deleted_task
             WHERE user_id = $1 AND id = $2 AND deleted_at >= $3",
            values![user.as_str(), id, &restorable_since(now)],
        )
        .await?;
    let Some(columns) = columns else {
        return Ok(None);
    };
    let task = task(columns, user)?;
    write(tx, &task).await?;
    tx.execute(
        "DELETE FROM adjutant_deleted_task WHERE user_id = $1 AND id = $2",
        values![user.as_str(), id],
    )
    .await?;
    Ok(Some(task))
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
        from_others: false,
    }
}

/// Serializes the changes of a user where transactions run concurrently: the row that counts the
/// user's ids is locked until the end of the transaction.
pub(super) async fn lock_user<C: Connection>(tx: &mut C, user: &UserId) -> Result<(), Failure> {
    if C::LOCKS_ROWS {
        tx.execute(
            "INSERT INTO adjutant_task_counter AS task_counter (user_id, last_id) VALUES ($1, 0)
             ON CONFLICT (user_id) DO UPDATE SET last_id = task_counter.last_id",
            values![user.as_str()],
        )
        .await?;
    }
    Ok(())
}

/// Reads the outcome of the change with this key, if it was applied.
pub(super) async fn outcome<C: Connection>(
    tx: &mut C,
    user: &UserId,
    key: &IdempotencyKey,
) -> Result<Option<TaskChanged>, Failure> {
    let kept = tx
        .fetch_scalar(
            "SELECT outcome FROM adjutant_applied_change WHERE user_id = $1 AND key = $2",
            values![user.as_str(), key.as_str()],
        )
        .await?;
    let what = format!("the outcome of change {key}");
    let kept = kept.map(|kept: String| record::from_json(&kept, &what));
    Ok(kept.transpose()?)
}

/// Returns an id that none of the user's tasks ever had.
pub(super) async fn new_id<C: Connection>(tx: &mut C, user: &UserId) -> Result<TaskId, Failure> {
    // A counter and not the highest id: the id of a removed task must not come back for another
    // one.
    let id: Option<i64> = tx
        .fetch_scalar(
            "INSERT INTO adjutant_task_counter AS task_counter (user_id, last_id) VALUES ($1, 1)
             ON CONFLICT (user_id) DO UPDATE SET last_id = task_counter.last_id + 1 RETURNING last_id",
            values![user.as_str()],
        )
        .await?;
    let id = id
        .and_then(|id| u64::try_from(id).ok())
        .and_then(TaskId::new);
    Ok(id.ok_or_else(|| record::unreadable("the counter of task ids", "it is below 1"))?)
}

async fn find<C: Connection>(
    tx: &mut C,
    user: &UserId,
    id: TaskId,
) -> Result<Option<Task>, Failure> {
    // No task has an id that the database cannot count to.
    let Ok(id) = i64::try_from(id.get()) else {
        return Ok(None);
    };
    let columns = tx
        .fetch_optional(select_tasks!("AND id = $2"), values![user.as_str(), id])
        .await?;
    Ok(columns.map(|columns| task(columns, user)).transpose()?)
}

/// Inserts or updates a task.
async fn write<C: Connection>(tx: &mut C, task: &Task) -> Result<(), Failure> {
    let row = TaskRow::from_task(task);
    tx.execute(
        "INSERT INTO adjutant_task (user_id, id, description, created_at, updated_at, completed_at, from_others)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (user_id, id) DO UPDATE SET description = excluded.description, updated_at = excluded.updated_at,
           completed_at = excluded.completed_at, from_others = excluded.from_others",
        values![
            task.user_id.as_str(),
            row.id,
            &row.description,
            &row.created_at,
            &row.updated_at,
            row.completed_at.as_deref(),
            row.from_others
        ],
    )
    .await?;
    Ok(())
}

fn task(mut row: Row, user: &UserId) -> Result<Task, StoreError> {
    TaskRow::from_row(&mut row)?.decode(user)
}

//! Tasks and their ids.

use adjutant_core::port::{StoreError, TaskStore};
use adjutant_core::{
    BoxFuture, DELETED_TASK_DAYS, IdempotencyKey, StoreId, Task, TaskChange, TaskChanged,
    TaskDescription, TaskFilter, TaskId, UserId,
};
use jiff::{SignedDuration, Timestamp};

use super::{Backend, Columns, Connection, Failure, SqlStore, values};
use crate::row::{self, TaskRow};

/// Tasks of the user `$1`.
macro_rules! select_tasks {
    ($rest:literal) => {
        concat!(
            "SELECT id, description, created_at, updated_at, completed_at FROM adjutant_task WHERE user_id = $1 ",
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
        self.run(async move {
            let data = (user.clone(), change.clone(), key.cloned());
            self.0
                .write(data, |rows, (user, change, key)| {
                    Box::pin(apply(rows, user, change, key.as_ref()))
                })
                .await
        })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        self.run(async move {
            let statement = match filter {
                TaskFilter::All => select_tasks!("ORDER BY id"),
                TaskFilter::Pending => OPEN,
                TaskFilter::Completed => select_tasks!("AND completed_at IS NOT NULL ORDER BY id"),
            };
            let rows = self.0.fetch(statement, values![user.as_str()]).await?;
            Ok(rows
                .into_iter()
                .map(|columns| task(columns, user))
                .collect::<Result<_, _>>()?)
        })
    }

    fn list_last<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
        before: Option<TaskId>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        self.run(async move {
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
                .0
                .fetch(statement, values![user.as_str(), before, i64::from(limit)])
                .await?;
            Ok(rows
                .into_iter()
                .rev()
                .map(|columns| task(columns, user))
                .collect::<Result<_, _>>()?)
        })
    }

    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        self.run(self.0.read((user.clone(), id), |rows, (user, id)| {
            Box::pin(find(rows, user, *id))
        }))
    }
}

/// Carries out one change, once per key.
pub(super) async fn apply<C: Connection>(
    rows: &mut C,
    user: &UserId,
    change: &TaskChange,
    key: Option<&IdempotencyKey>,
) -> Result<TaskChanged, Failure> {
    take_turns(rows, user).await?;
    if let Some(key) = key
        && let Some(outcome) = outcome(rows, user, key).await?
    {
        return Ok(outcome);
    }
    let now = rows.now().await?;
    let outcome = match change {
        TaskChange::Add { description } => {
            let task = new(user, new_id(rows, user).await?, description, now);
            write(rows, &task).await?;
            TaskChanged::Added { task }
        }
        TaskChange::Update { id, description } => match find(rows, user, *id).await? {
            Some(task) => {
                let before = task.description.clone();
                let task = Task {
                    description: description.clone(),
                    updated_at: now,
                    ..task
                };
                write(rows, &task).await?;
                TaskChanged::Updated { task, before }
            }
            None => TaskChanged::NoSuchTask { id: *id },
        },
        TaskChange::Complete { id } => match find(rows, user, *id).await? {
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
                write(rows, &task).await?;
                TaskChanged::Completed {
                    task,
                    already: false,
                }
            }
            None => TaskChanged::NoSuchTask { id: *id },
        },
        TaskChange::Delete { id } => match find(rows, user, *id).await? {
            Some(task) => {
                delete(rows, &task, now).await?;
                TaskChanged::Deleted { task }
            }
            None => TaskChanged::NoSuchTask { id: *id },
        },
        TaskChange::Restore { id } => match find(rows, user, *id).await? {
            Some(task) => TaskChanged::Restored {
                task,
                already: true,
            },
            None => match restore(rows, user, *id, now).await? {
                Some(task) => TaskChanged::Restored {
                    task,
                    already: false,
                },
                None => TaskChanged::NoSuchTask { id: *id },
            },
        },
    };
    if let Some(key) = key {
        record(rows, user, (key, &outcome), now).await?;
    }
    Ok(outcome)
}

/// Writes what a change led to under its key.
pub(super) async fn record<C: Connection>(
    rows: &mut C,
    user: &UserId,
    (key, outcome): (&IdempotencyKey, &TaskChanged),
    now: Timestamp,
) -> Result<(), Failure> {
    rows.execute(
        "INSERT INTO adjutant_applied_change (user_id, key, outcome, at) VALUES ($1, $2, $3, $4)",
        values![
            user.as_str(),
            key.as_str(),
            &row::outcome_text(outcome)?,
            &row::time_text(now)
        ],
    )
    .await?;
    Ok(())
}

/// Returns the time before which a task was deleted for good.
pub(super) fn gone_before(now: Timestamp) -> String {
    let kept = SignedDuration::from_hours(DELETED_TASK_DAYS * 24);
    row::time_text(now.checked_sub(kept).unwrap_or(Timestamp::MIN))
}

/// Removes a task, and keeps it aside.
async fn delete<C: Connection>(rows: &mut C, task: &Task, now: Timestamp) -> Result<(), Failure> {
    let (user, row) = (task.user_id.as_str(), TaskRow::of(task));
    rows.execute(
        "DELETE FROM adjutant_deleted_task WHERE user_id = $1 AND deleted_at < $2",
        values![user, &gone_before(now)],
    )
    .await?;
    rows.execute(
        "INSERT INTO adjutant_deleted_task (user_id, id, description, created_at, updated_at, completed_at, deleted_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        values![
            user,
            row.id,
            &row.description,
            &row.created_at,
            &row.updated_at,
            row.completed_at.as_deref(),
            &row::time_text(now)
        ],
    )
    .await?;
    rows.execute(
        "DELETE FROM adjutant_task WHERE user_id = $1 AND id = $2",
        values![user, row.id],
    )
    .await?;
    Ok(())
}

/// Brings a deleted task back, if it is kept.
async fn restore<C: Connection>(
    rows: &mut C,
    user: &UserId,
    id: TaskId,
    now: Timestamp,
) -> Result<Option<Task>, Failure> {
    let Ok(id) = i64::try_from(id.get()) else {
        return Ok(None);
    };
    let columns = rows
        .fetch_first(
            "SELECT id, description, created_at, updated_at, completed_at FROM adjutant_deleted_task
             WHERE user_id = $1 AND id = $2 AND deleted_at >= $3",
            values![user.as_str(), id, &gone_before(now)],
        )
        .await?;
    let Some(columns) = columns else {
        return Ok(None);
    };
    let task = task(columns, user)?;
    write(rows, &task).await?;
    rows.execute(
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
    }
}

/// A user's changes happen one after the other, also where transactions run beside each other: the
/// row that counts the user's ids is locked until the end of this one.
pub(super) async fn take_turns<C: Connection>(rows: &mut C, user: &UserId) -> Result<(), Failure> {
    if C::LOCKS_ROWS {
        rows.execute(
            "INSERT INTO adjutant_task_counter AS task_counter (user_id, last_id) VALUES ($1, 0)
             ON CONFLICT (user_id) DO UPDATE SET last_id = task_counter.last_id",
            values![user.as_str()],
        )
        .await?;
    }
    Ok(())
}

/// What a change with this key led to.
pub(super) async fn outcome<C: Connection>(
    rows: &mut C,
    user: &UserId,
    key: &IdempotencyKey,
) -> Result<Option<TaskChanged>, Failure> {
    let kept = rows
        .fetch_first(
            "SELECT outcome FROM adjutant_applied_change WHERE user_id = $1 AND key = $2",
            values![user.as_str(), key.as_str()],
        )
        .await?;
    let Some(mut kept) = kept else {
        return Ok(None);
    };
    Ok(Some(row::read_outcome(&kept.text()?, key)?))
}

/// An id the user's tasks never had.
pub(super) async fn new_id<C: Connection>(rows: &mut C, user: &UserId) -> Result<TaskId, Failure> {
    let counted = rows
        .fetch_first(
            "INSERT INTO adjutant_task_counter AS task_counter (user_id, last_id) VALUES ($1, 1)
             ON CONFLICT (user_id) DO UPDATE SET last_id = task_counter.last_id + 1 RETURNING last_id",
            values![user.as_str()],
        )
        .await?;
    let id = counted.map(|mut counted| counted.int()).transpose()?;
    let id = id
        .and_then(|id| u64::try_from(id).ok())
        .and_then(TaskId::new);
    Ok(id.ok_or_else(|| row::unreadable("the counter of task ids", "it is below 1"))?)
}

async fn find<C: Connection>(
    rows: &mut C,
    user: &UserId,
    id: TaskId,
) -> Result<Option<Task>, Failure> {
    // An id beyond what the database counts to was never given.
    let Ok(id) = i64::try_from(id.get()) else {
        return Ok(None);
    };
    let columns = rows
        .fetch_first(select_tasks!("AND id = $2"), values![user.as_str(), id])
        .await?;
    Ok(columns.map(|columns| task(columns, user)).transpose()?)
}

/// Writes a new task, or one that changed.
async fn write<C: Connection>(rows: &mut C, task: &Task) -> Result<(), Failure> {
    let row = TaskRow::of(task);
    rows.execute(
        "INSERT INTO adjutant_task (user_id, id, description, created_at, updated_at, completed_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (user_id, id) DO UPDATE SET description = excluded.description,
           updated_at = excluded.updated_at, completed_at = excluded.completed_at",
        values![
            task.user_id.as_str(),
            row.id,
            &row.description,
            &row.created_at,
            &row.updated_at,
            row.completed_at.as_deref()
        ],
    )
    .await?;
    Ok(())
}

pub(super) fn task(mut columns: Columns, user: &UserId) -> Result<Task, StoreError> {
    let row = TaskRow {
        id: columns.int()?,
        description: columns.text()?,
        created_at: columns.text()?,
        updated_at: columns.text()?,
        completed_at: columns.maybe_text()?,
    };
    row.read(user)
}

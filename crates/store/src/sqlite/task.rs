//! Tasks and their ids.

use adjutant_core::port::{StoreError, TaskStore};
use adjutant_core::{BoxFuture, IdempotencyKey, Task, TaskChange, TaskChanged, TaskFilter, TaskId, UserId};
use jiff::Timestamp;
use sqlx::SqliteConnection;

use super::error::Failure;
use super::{Store, now};
use crate::row::{self, TaskRow};
use crate::task::{self, TaskRows};

impl TaskStore for Store {
    fn apply<'a>(
        &'a self,
        user: &'a UserId,
        change: &'a TaskChange,
        key: Option<&'a IdempotencyKey>,
    ) -> BoxFuture<'a, Result<TaskChanged, StoreError>> {
        self.run(async move {
            let mut rows = self.write().await?;
            let outcome = task::apply(&mut *rows, user, change, key, now()).await?;
            rows.commit().await?;
            Ok(outcome)
        })
    }

    fn list<'a>(
        &'a self,
        user: &'a UserId,
        filter: TaskFilter,
    ) -> BoxFuture<'a, Result<Vec<Task>, StoreError>> {
        self.run(async move {
            let rows: Vec<Columns> = sqlx::query_as(
                "SELECT id, description, created_at, updated_at, completed_at FROM task WHERE user_id = ? ORDER BY id",
            )
            .bind(user.as_str())
            .fetch_all(&mut *self.read().await?)
            .await?;
            let mut tasks = Vec::with_capacity(rows.len());
            for columns in rows {
                let task = record(columns, user)?;
                if filter.takes(&task) {
                    tasks.push(task);
                }
            }
            Ok(tasks)
        })
    }

    fn get<'a>(&'a self, user: &'a UserId, id: TaskId) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        self.run(async move { self.read().await?.find(user, id).await })
    }
}

type Columns = (i64, String, String, String, Option<String>);

fn record(columns: Columns, user: &UserId) -> Result<Task, StoreError> {
    let (id, description, created_at, updated_at, completed_at) = columns;
    TaskRow { id, description, created_at, updated_at, completed_at }.read(user)
}

impl TaskRows for SqliteConnection {
    type Error = Failure;

    async fn outcome(&mut self, user: &UserId, key: &IdempotencyKey) -> Result<Option<TaskChanged>, Failure> {
        let text: Option<String> =
            sqlx::query_scalar("SELECT outcome FROM applied_change WHERE user_id = ? AND key = ?")
                .bind(user.as_str())
                .bind(key.as_str())
                .fetch_optional(&mut *self)
                .await?;
        Ok(text.map(|text| row::read_outcome(&text, key)).transpose()?)
    }

    async fn keep_outcome(
        &mut self,
        user: &UserId,
        key: &IdempotencyKey,
        outcome: &TaskChanged,
        now: Timestamp,
    ) -> Result<(), Failure> {
        sqlx::query("INSERT INTO applied_change (user_id, key, outcome, at) VALUES (?, ?, ?, ?)")
            .bind(user.as_str())
            .bind(key.as_str())
            .bind(row::outcome_text(outcome)?)
            .bind(row::time_text(now))
            .execute(&mut *self)
            .await?;
        Ok(())
    }

    async fn new_id(&mut self, user: &UserId) -> Result<TaskId, Failure> {
        let id: i64 = sqlx::query_scalar(
            "INSERT INTO task_counter (user_id, last_id) VALUES (?, 1)
             ON CONFLICT (user_id) DO UPDATE SET last_id = last_id + 1 RETURNING last_id",
        )
        .bind(user.as_str())
        .fetch_one(&mut *self)
        .await?;
        let id = u64::try_from(id).ok().and_then(TaskId::new);
        Ok(id.ok_or_else(|| row::unreadable("the counter of task ids", "it is below 1"))?)
    }

    async fn find(&mut self, user: &UserId, id: TaskId) -> Result<Option<Task>, Failure> {
        // An id beyond what the database counts to was never given.
        let Ok(id) = i64::try_from(id.get()) else { return Ok(None) };
        let columns: Option<Columns> = sqlx::query_as(
            "SELECT id, description, created_at, updated_at, completed_at FROM task WHERE user_id = ? AND id = ?",
        )
        .bind(user.as_str())
        .bind(id)
        .fetch_optional(&mut *self)
        .await?;
        Ok(columns.map(|columns| record(columns, user)).transpose()?)
    }

    async fn write(&mut self, task: &Task) -> Result<(), Failure> {
        let row = TaskRow::of(task);
        sqlx::query(
            "INSERT INTO task (user_id, id, description, created_at, updated_at, completed_at)
             VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT (user_id, id) DO UPDATE SET description = excluded.description,
               updated_at = excluded.updated_at, completed_at = excluded.completed_at",
        )
        .bind(task.user_id.as_str())
        .bind(row.id)
        .bind(row.description)
        .bind(row.created_at)
        .bind(row.updated_at)
        .bind(row.completed_at)
        .execute(&mut *self)
        .await?;
        Ok(())
    }

    async fn delete(&mut self, task: &Task) -> Result<(), Failure> {
        sqlx::query("DELETE FROM task WHERE user_id = ? AND id = ?")
            .bind(task.user_id.as_str())
            .bind(TaskRow::of(task).id)
            .execute(&mut *self)
            .await?;
        Ok(())
    }
}

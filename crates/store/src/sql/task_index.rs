//! The numbers of tasks that are lines of notes.

use adjutant_core::port::StoreError;
use adjutant_core::{BoxFuture, IdempotencyKey, MemoryScope, UserId};
use adjutant_tools::{NumbersChange, TaskChanged, TaskId, TaskIndex, TaskNumber};

use super::task::{lock_user, new_id, outcome, record};
use super::{Backend, Connection, Failure, Row, SqlStore, decode_all, values};
use crate::record;

/// Format version of the stored numbers.
const VERSION: i64 = 1;

/// Changes of one transaction as owned data.
struct NumbersWrite {
    scope: MemoryScope,
    put: Vec<TaskNumber>,
    removed: Vec<TaskId>,
    applied: Option<(IdempotencyKey, TaskChanged)>,
}

impl<B: Backend> TaskIndex for SqlStore<B> {
    fn numbers<'a>(
        &'a self,
        scope: &'a MemoryScope,
    ) -> BoxFuture<'a, Result<Vec<TaskNumber>, StoreError>> {
        self.explained(async move {
            let rows = self
                .backend
                .fetch_all(
                    "SELECT id, at, v, body FROM adjutant_task_number WHERE scope = $1 ORDER BY id",
                    values![&record::scope_hash(scope)],
                )
                .await?;
            Ok(decode_all(rows, number)?)
        })
    }

    fn new_numbers<'a>(
        &'a self,
        user: &'a UserId,
        count: usize,
    ) -> BoxFuture<'a, Result<Vec<TaskId>, StoreError>> {
        self.write((user.clone(), count), |tx, (user, count)| {
            Box::pin(async move {
                // The numbers come from the counter of the user's tasks, so they need its lock.
                lock_user(tx, user).await?;
                let mut ids = Vec::with_capacity(*count);
                for _ in 0..*count {
                    ids.push(new_id(tx, user).await?);
                }
                Ok(ids)
            })
        })
    }

    fn put_numbers<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: NumbersChange<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let written = NumbersWrite {
            scope: scope.clone(),
            put: change.put.to_vec(),
            removed: change.removed.to_vec(),
            applied: change
                .applied
                .map(|(key, changed)| (key.clone(), changed.clone())),
        };
        self.write(written, |tx, written| Box::pin(put(tx, written)))
    }

    fn applied<'a>(
        &'a self,
        user: &'a UserId,
        key: &'a IdempotencyKey,
    ) -> BoxFuture<'a, Result<Option<TaskChanged>, StoreError>> {
        self.read((user.clone(), key.clone()), |tx, (user, key)| {
            Box::pin(outcome(tx, user, key))
        })
    }
}

async fn put<C: Connection>(tx: &mut C, written: &NumbersWrite) -> Result<(), Failure> {
    let scope = record::scope_hash(&written.scope);
    for id in &written.removed {
        tx.execute(
            "DELETE FROM adjutant_task_number WHERE scope = $1 AND id = $2",
            values![&scope, record::saturate(id.get())],
        )
        .await?;
    }
    for number in &written.put {
        tx.execute(
            "INSERT INTO adjutant_task_number (scope, user_id, vault, id, at, v, body)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (scope, id) DO UPDATE SET at = excluded.at, v = excluded.v, body = excluded.body",
            values![
                &scope,
                written.scope.user.as_str(),
                &written.scope.vault,
                record::saturate(number.id.get()),
                &record::format_time(number.at),
                VERSION,
                &number.body,
            ],
        )
        .await?;
    }
    if let Some((key, changed)) = &written.applied {
        let now = tx.now().await?;
        record(tx, &written.scope.user, key, changed, now).await?;
    }
    Ok(())
}

fn number(mut row: Row) -> Result<TaskNumber, StoreError> {
    let id: i64 = row.get("id")?;
    let what = format!("the number {id} of a task in notes");
    let id = u64::try_from(id).ok().and_then(TaskId::new);
    let id = id.ok_or_else(|| record::unreadable(&what, "it is below 1"))?;
    let v: i64 = row.get("v")?;
    if v != VERSION {
        let reason = format!("it has format version {v}, this program reads {VERSION}");
        return Err(record::unreadable(&what, reason));
    }
    Ok(TaskNumber {
        id,
        at: row.parse("at", &what)?,
        body: row.get("body")?,
    })
}

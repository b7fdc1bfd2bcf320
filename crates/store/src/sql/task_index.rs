//! The numbers of tasks that are lines of notes.

use adjutant_core::port::{NumbersChange, StoreError, TaskIndex, TaskNumber};
use adjutant_core::{BoxFuture, IdempotencyKey, MemoryScope, TaskChanged, TaskId, UserId};

use super::task::{new_id, outcome, record, take_turns};
use super::{Backend, Columns, Connection, Failure, SqlStore, values};
use crate::row;

/// The form in which numbers are written.
const VERSION: i64 = 1;

/// Changes that are written together, owned.
struct Written {
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
        self.run(async move {
            let rows = self
                .0
                .fetch(
                    "SELECT id, at, v, body FROM adjutant_task_number WHERE scope = $1 ORDER BY id",
                    values![&row::scope_hash(scope)],
                )
                .await?;
            Ok(rows.into_iter().map(number).collect::<Result<_, _>>()?)
        })
    }

    fn new_numbers<'a>(
        &'a self,
        user: &'a UserId,
        count: usize,
    ) -> BoxFuture<'a, Result<Vec<TaskId>, StoreError>> {
        self.run(self.0.write((user.clone(), count), |rows, (user, count)| {
            Box::pin(async move {
                take_turns(rows, user).await?;
                let mut ids = Vec::with_capacity(*count);
                for _ in 0..*count {
                    ids.push(new_id(rows, user).await?);
                }
                Ok(ids)
            })
        }))
    }

    fn put_numbers<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: NumbersChange<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let written = Written {
            scope: scope.clone(),
            put: change.put.to_vec(),
            removed: change.removed.to_vec(),
            applied: change
                .applied
                .map(|(key, changed)| (key.clone(), changed.clone())),
        };
        self.run(
            self.0
                .write(written, |rows, written| Box::pin(put(rows, written))),
        )
    }

    fn applied<'a>(
        &'a self,
        user: &'a UserId,
        key: &'a IdempotencyKey,
    ) -> BoxFuture<'a, Result<Option<TaskChanged>, StoreError>> {
        self.run(
            self.0
                .read((user.clone(), key.clone()), |rows, (user, key)| {
                    Box::pin(outcome(rows, user, key))
                }),
        )
    }
}

async fn put<C: Connection>(rows: &mut C, written: &Written) -> Result<(), Failure> {
    let scope = row::scope_hash(&written.scope);
    for id in &written.removed {
        rows.execute(
            "DELETE FROM adjutant_task_number WHERE scope = $1 AND id = $2",
            values![&scope, row::number(id.get())],
        )
        .await?;
    }
    for number in &written.put {
        rows.execute(
            "INSERT INTO adjutant_task_number (scope, user_id, vault, id, at, v, body)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (scope, id) DO UPDATE SET at = excluded.at, v = excluded.v, body = excluded.body",
            values![
                &scope,
                written.scope.user.as_str(),
                &written.scope.vault,
                row::number(number.id.get()),
                &row::time_text(number.at),
                VERSION,
                &number.body,
            ],
        )
        .await?;
    }
    if let Some((key, changed)) = &written.applied {
        let now = rows.now().await?;
        record(rows, &written.scope.user, (key, changed), now).await?;
    }
    Ok(())
}

/// Reads `id, at, v, body`.
fn number(mut columns: Columns) -> Result<TaskNumber, StoreError> {
    let id = columns.int()?;
    let what = format!("the number {id} of a task in notes");
    let id = u64::try_from(id).ok().and_then(TaskId::new);
    let id = id.ok_or_else(|| row::unreadable(&what, "it is below 1"))?;
    let at = row::read_time(&columns.text()?, &what)?;
    let v = columns.int()?;
    if v != VERSION {
        let reason = format!("it has format version {v}, this program reads {VERSION}");
        return Err(row::unreadable(&what, reason));
    }
    Ok(TaskNumber {
        id,
        at,
        body: columns.text()?,
    })
}

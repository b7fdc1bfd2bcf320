//! What changed in the memories of vaults.

use adjutant_core::port::{MemoryLedger, StoreError};
use adjutant_core::{BoxFuture, IdempotencyKey, MemoryChange, MemoryScope};

use super::{Backend, Columns, Connection, Failure, SqlStore, Value, values};
use crate::digest::hash;
use crate::row::{self, MemoryRow};

impl<B: Backend> MemoryLedger for SqlStore<B> {
    fn put<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: &'a MemoryChange,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let written = (scope.clone(), change.clone());
        self.run(self.0.write(written, |rows, (scope, change)| {
            Box::pin(put(rows, scope, change))
        }))
    }

    fn by_key<'a>(
        &'a self,
        scope: &'a MemoryScope,
        key: &'a IdempotencyKey,
    ) -> BoxFuture<'a, Result<Option<MemoryChange>, StoreError>> {
        self.run(async move {
            let found = self
                .0
                .fetch_first(
                    "SELECT id, v, body FROM adjutant_memory_change WHERE scope = $1 AND call_key = $2
                     ORDER BY seq DESC LIMIT 1",
                    values![&row::scope_hash(scope), key.as_str()],
                )
                .await?;
            Ok(found.map(change).transpose()?)
        })
    }

    fn about<'a>(
        &'a self,
        scope: &'a MemoryScope,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Vec<MemoryChange>, StoreError>> {
        let values = [row::scope_hash(scope), hash(text)];
        self.changes(
            "SELECT id, v, body FROM adjutant_memory_change
             WHERE scope = $1 AND (before_hash = $2 OR after_hash = $2) ORDER BY seq",
            values,
            None,
        )
    }

    fn newest<'a>(
        &'a self,
        scope: &'a MemoryScope,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<MemoryChange>, StoreError>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.changes(
            "SELECT id, v, body FROM adjutant_memory_change WHERE scope = $1 ORDER BY seq DESC LIMIT $2",
            [row::scope_hash(scope)],
            Some(limit),
        )
    }
}

/// Writes a change, or replaces it.
pub(super) async fn put<C: Connection>(
    rows: &mut C,
    scope: &MemoryScope,
    change: &MemoryChange,
) -> Result<(), Failure> {
    let row = MemoryRow::of(change)?;
    rows.execute(
        "INSERT INTO adjutant_memory_change
           (scope, user_id, vault, id, at, call_key, state, before_hash, after_hash, v, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (scope, id) DO UPDATE SET at = excluded.at, call_key = excluded.call_key,
           state = excluded.state, before_hash = excluded.before_hash, after_hash = excluded.after_hash,
           v = excluded.v, body = excluded.body",
        values![
            &row::scope_hash(scope),
            scope.user.as_str(),
            &scope.vault,
            &row.id,
            &row.at,
            row.call_key.as_deref(),
            &row.state,
            row.before_hash.as_deref(),
            row.after_hash.as_deref(),
            row.v,
            &row.body,
        ],
    )
    .await?;
    Ok(())
}

impl<B: Backend> SqlStore<B> {
    /// The changes that a statement finds, in its order. `limit` is its last parameter.
    fn changes<const N: usize>(
        &self,
        statement: &'static str,
        texts: [String; N],
        limit: Option<i64>,
    ) -> BoxFuture<'_, Result<Vec<MemoryChange>, StoreError>> {
        self.run(async move {
            let mut values: Vec<Value<'_>> = texts.iter().map(Value::from).collect();
            values.extend(limit.map(Value::from));
            let rows = self.0.fetch(statement, &values).await?;
            let mut changes = Vec::with_capacity(rows.len());
            for columns in rows {
                changes.push(change(columns)?);
            }
            Ok(changes)
        })
    }
}

/// Reads `id, v, body`.
pub(super) fn change(mut columns: Columns) -> Result<MemoryChange, StoreError> {
    row::read_memory_change(&columns.text()?, columns.int()?, &columns.text()?)
}

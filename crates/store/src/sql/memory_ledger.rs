//! The ledger of memory changes.

use adjutant_core::port::{MemoryLedger, StoreError};
use adjutant_core::{BoxFuture, FactLine, IdempotencyKey, MemoryChange, MemoryEffect, MemoryScope};

use super::{Backend, Connection, Failure, Row, SqlStore, Value, decode_all, values};
use crate::digest::hash;
use crate::record;

impl<B: Backend> MemoryLedger for SqlStore<B> {
    fn put<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: &'a MemoryChange,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let written = (scope.clone(), change.clone());
        self.write(written, |tx, (scope, change)| {
            Box::pin(put(tx, scope, change))
        })
    }

    fn by_key<'a>(
        &'a self,
        scope: &'a MemoryScope,
        key: &'a IdempotencyKey,
    ) -> BoxFuture<'a, Result<Option<MemoryChange>, StoreError>> {
        self.explained(async move {
            let found = self.backend
                .fetch_optional(
                    "SELECT id, v, body FROM adjutant_memory_change WHERE scope = $1 AND call_key = $2
                     ORDER BY seq DESC LIMIT 1",
                    values![&record::scope_hash(scope), key.as_str()],
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
        let values = [record::scope_hash(scope), hash(text)];
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
            [record::scope_hash(scope)],
            Some(limit),
        )
    }
}

/// Inserts or replaces a change.
pub(super) async fn put<C: Connection>(
    tx: &mut C,
    scope: &MemoryScope,
    change: &MemoryChange,
) -> Result<(), Failure> {
    let hash_of = |line: &Option<FactLine>| line.as_ref().map(|line| hash(&line.text));
    let (before_hash, after_hash) = match &change.effect {
        MemoryEffect::Fact { before, after } => (hash_of(before), hash_of(after)),
        MemoryEffect::Note { .. } | MemoryEffect::Task { .. } => (None, None),
    };
    tx.execute(
        "INSERT INTO adjutant_memory_change
           (scope, user_id, vault, id, at, call_key, state, before_hash, after_hash, v, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (scope, id) DO UPDATE SET at = excluded.at, call_key = excluded.call_key,
           state = excluded.state, before_hash = excluded.before_hash, after_hash = excluded.after_hash,
           v = excluded.v, body = excluded.body",
        values![
            &record::scope_hash(scope),
            scope.user.as_str(),
            &scope.vault,
            change.id.to_string(),
            record::format_time(change.at),
            change.key.clone().map(String::from),
            // A state is a word, whose JSON has quotes around it.
            record::to_json(&change.state)?.trim_matches('"'),
            before_hash,
            after_hash,
            record::MEMORY_VERSION,
            record::to_json(change)?,
        ],
    )
    .await?;
    Ok(())
}

impl<B: Backend> SqlStore<B> {
    /// Reads the changes that a statement selects, in its order. `limit` is its last parameter.
    fn changes<const N: usize>(
        &self,
        statement: &'static str,
        texts: [String; N],
        limit: Option<i64>,
    ) -> BoxFuture<'_, Result<Vec<MemoryChange>, StoreError>> {
        self.explained(async move {
            let mut values: Vec<Value<'_>> = texts.iter().map(Value::from).collect();
            values.extend(limit.map(Value::from));
            let rows = self.backend.fetch_all(statement, &values).await?;
            Ok(decode_all(rows, change)?)
        })
    }
}

/// Decodes a change from the columns `id`, `v` and `body`.
pub(super) fn change(mut columns: Row) -> Result<MemoryChange, StoreError> {
    let (id, body): (String, String) = (columns.get("id")?, columns.get("body")?);
    record::decode_memory_change(&id, columns.get("v")?, &body)
}

//! The facts about users that have no vault.

use adjutant_core::port::{FactStore, FactsChange, FactsFound, FactsUpdate, StoreError};
use adjutant_core::{
    BoxFuture, MemoryChange, MemoryEffect, MemoryScope, MemorySource, StoredFact, UserId,
};

use super::{Backend, Connection, Failure, Row, SqlStore, Value, memory_ledger, values};
use crate::digest::hash;
use crate::record;

/// The columns of a fact.
macro_rules! columns {
    () => {
        "key, text, important, created_at, updated_at, conversation, turn, call"
    };
}

/// Selects a user's facts and the last 1,000 changes that removed or replaced facts. Only the
/// changes have an `id`.
pub(crate) const FOUND: &str = concat!(
    "SELECT ",
    columns!(),
    ", CAST(NULL AS TEXT) AS id, CAST(NULL AS BIGINT) AS v, CAST(NULL AS TEXT) AS body
     FROM adjutant_fact WHERE user_id = $1
     UNION ALL SELECT * FROM (
       SELECT seq, CAST(NULL AS TEXT) AS text, CAST(NULL AS BIGINT) AS important, CAST(NULL AS TEXT) AS created_at,
         CAST(NULL AS TEXT) AS updated_at, CAST(NULL AS TEXT) AS conversation, CAST(NULL AS TEXT) AS turn,
         CAST(NULL AS TEXT) AS call, id, v, body
       FROM adjutant_memory_change WHERE scope = $2 AND before_hash IS NOT NULL AND state = 'done'
       ORDER BY seq DESC LIMIT 1000) AS withdrawn"
);

/// Selects a user's facts that were written after a revision, and in a row without a text the number
/// of all of them and their current revision.
pub(crate) const SINCE: &str = concat!(
    "SELECT ",
    columns!(),
    ", revision FROM adjutant_fact WHERE user_id = $1 AND revision > $2
     UNION ALL SELECT (SELECT count(*) FROM adjutant_fact WHERE user_id = $1), CAST(NULL AS TEXT), CAST(NULL AS BIGINT),
       CAST(NULL AS TEXT), CAST(NULL AS TEXT), CAST(NULL AS TEXT), CAST(NULL AS TEXT), CAST(NULL AS TEXT),
       coalesce((SELECT revision FROM adjutant_fact_revision WHERE user_id = $1), 0)"
);

/// A change of facts as owned data.
struct FactWrite {
    scope: MemoryScope,
    revision: i64,
    removed: Option<String>,
    put: Option<StoredFact>,
    record: MemoryChange,
}

impl<B: Backend> FactStore for SqlStore<B> {
    fn facts<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<FactsFound, StoreError>> {
        self.explained(async move {
            let scope = record::scope_hash(&MemoryScope::database(user.clone()));
            let rows = self
                .backend
                .fetch_all(FOUND, values![user.as_str(), &scope])
                .await?;
            let (mut facts, mut withdrawn) = (Vec::new(), Vec::new());
            for mut columns in rows {
                let key = columns.get("key")?;
                match fact(key, &mut columns)? {
                    Some(fact) => facts.push((key, fact)),
                    None => withdrawn.push((key, memory_ledger::change(columns)?)),
                }
            }
            withdrawn.sort_by_key(|(seq, _)| std::cmp::Reverse(*seq));
            let before = withdrawn
                .into_iter()
                .filter_map(|(_, change)| match change.effect {
                    MemoryEffect::Fact { before, .. } => before.map(|line| line.text),
                    MemoryEffect::Note { .. } | MemoryEffect::Task { .. } => None,
                });
            Ok(FactsFound {
                facts: in_order(facts),
                withdrawn: before.collect(),
            })
        })
    }

    fn facts_since<'a>(
        &'a self,
        user: &'a UserId,
        revision: Option<i64>,
    ) -> BoxFuture<'a, Result<FactsUpdate, StoreError>> {
        self.explained(async move {
            // Facts of before there were revisions have revision 0.
            let after = revision.unwrap_or(-1);
            let rows = self
                .backend
                .fetch_all(SINCE, values![user.as_str(), after])
                .await?;
            let mut update = FactsUpdate::default();
            for mut columns in rows {
                let key: i64 = columns.get("key")?;
                match fact(key, &mut columns)? {
                    Some(fact) => update.facts.push((key, fact)),
                    None => {
                        update.count = usize::try_from(key).unwrap_or_default();
                        update.revision = columns.get("revision")?;
                    }
                }
            }
            Ok(update)
        })
    }

    fn change_facts<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: FactsChange<'a>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let written = FactWrite {
            scope: scope.clone(),
            revision: change.revision,
            removed: change.removed.map(str::to_owned),
            put: change.put.cloned(),
            record: change.record.clone(),
        };
        self.write(written, |tx, written| Box::pin(write(tx, written)))
    }
}

async fn write<C: Connection>(tx: &mut C, written: &FactWrite) -> Result<bool, Failure> {
    let user = written.scope.user.as_str();
    if C::LOCKS_ROWS {
        // Facts that do not exist yet cannot be locked.
        tx.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended($1, 1178683252))",
            values![user],
        )
        .await?;
    }
    // Optimistic concurrency: the change was planned over the facts of this revision, and is refused
    // if they have changed since.
    let Some(revision) = next_revision(tx, written).await? else {
        return Ok(false);
    };
    let changed = match (&written.removed, &written.put) {
        (Some(removed), Some(fact)) => {
            let mut values = fact_values(user, fact, revision);
            values.push(hash(removed).into());
            tx.execute(
                "UPDATE adjutant_fact SET text_hash = $2, text = $3, important = $4, created_at = $5, updated_at = $6,
                   conversation = $7, turn = $8, call = $9, revision = $10 WHERE user_id = $1 AND text_hash = $11",
                &values,
            )
            .await?
        }
        (None, Some(fact)) => {
            tx.execute(
                "INSERT INTO adjutant_fact
                   (user_id, text_hash, text, important, created_at, updated_at, conversation, turn, call, revision)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (user_id, text_hash) DO NOTHING",
                &fact_values(user, fact, revision),
            )
            .await?
        }
        (Some(removed), None) => {
            tx.execute(
                "DELETE FROM adjutant_fact WHERE user_id = $1 AND text_hash = $2",
                values![user, &hash(removed)],
            )
            .await?
        }
        (None, None) => 1,
    };
    // An older version of this program, or a person, changes facts and leaves their revision.
    if changed == 0 {
        return Ok(false);
    }
    tx.execute(
        "INSERT INTO adjutant_fact_revision (user_id, revision) VALUES ($1, $2)
         ON CONFLICT (user_id) DO UPDATE SET revision = excluded.revision",
        values![user, revision],
    )
    .await?;
    memory_ledger::put(tx, &written.scope, &written.record).await?;
    Ok(true)
}

/// Returns the revision that the facts get by a change. `None` if they do not have the one that it
/// was planned on.
async fn next_revision<C: Connection>(
    tx: &mut C,
    written: &FactWrite,
) -> Result<Option<i64>, Failure> {
    let rows = tx
        .fetch_all(
            "SELECT revision FROM adjutant_fact_revision WHERE user_id = $1",
            values![written.scope.user.as_str()],
        )
        .await?;
    let current: Option<i64> = match rows.into_iter().next() {
        Some(mut row) => Some(row.get("revision")?),
        None => None,
    };
    if current.unwrap_or(0) != written.revision {
        return Ok(None);
    }
    Ok(Some(match current {
        Some(current) => current.saturating_add(1),
        // A time and not 1: what a process knows of a user who was removed, and came again, is not
        // taken for current.
        None => written.record.at.as_microsecond().max(1),
    }))
}

/// Returns the values of all columns except the key.
fn fact_values(user: &str, fact: &StoredFact, revision: i64) -> Vec<Value<'static>> {
    let source = fact.source.as_ref();
    values![
        user.to_owned(),
        hash(&fact.text),
        fact.text.clone(),
        i64::from(fact.important),
        record::format_time(fact.created_at),
        record::format_time(fact.updated_at),
        source.map(|source| source.conversation.to_string()),
        source.map(|source| source.turn.to_string()),
        source.map(|source| source.call.to_string()),
        revision,
    ]
    .to_vec()
}

/// Sorts facts by their creation, oldest first.
fn in_order(mut facts: Vec<(i64, StoredFact)>) -> Vec<StoredFact> {
    facts.sort_by_key(|(key, fact)| (fact.created_at, *key));
    facts.into_iter().map(|(_, fact)| fact).collect()
}

/// Decodes a fact. `None` if the row is a change.
pub(super) fn fact(key: i64, columns: &mut Row) -> Result<Option<StoredFact>, StoreError> {
    let what = format!("fact {key}");
    let Some(text) = columns.get("text")? else {
        return Ok(None);
    };
    let source = match (
        columns.parse_optional("conversation", &what)?,
        columns.parse_optional("turn", &what)?,
        columns.get::<Option<String>>("call")?,
    ) {
        (Some(conversation), Some(turn), Some(call)) => Some(MemorySource {
            conversation,
            turn,
            call: record::convert(call, &what)?,
        }),
        _ => None,
    };
    Ok(Some(StoredFact {
        text,
        important: columns.get("important")?,
        created_at: columns.parse("created_at", &what)?,
        updated_at: columns.parse("updated_at", &what)?,
        source,
    }))
}

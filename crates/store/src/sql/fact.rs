//! The facts about users that have no vault.

use adjutant_core::port::{FactStore, FactsChange, FactsFound, StoreError};
use adjutant_core::{
    BoxFuture, CallId, MemoryChange, MemoryEffect, MemoryScope, MemorySource, StoredFact, UserId,
};

use super::{Backend, Columns, Connection, Failure, SqlStore, Value, memory_ledger, values};
use crate::digest::hash;
use crate::row;

/// The columns of a fact.
macro_rules! columns {
    () => {
        "key, text, important, created_at, updated_at, conversation, turn, call"
    };
}

/// A user's facts.
const FACTS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM adjutant_fact WHERE user_id = $1"
);

/// A user's facts, and the changes that took facts away or gave them other words, the last 1,000:
/// these have an id.
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

/// A change, owned.
struct Written {
    scope: MemoryScope,
    known: Vec<StoredFact>,
    removed: Option<String>,
    put: Option<StoredFact>,
    record: MemoryChange,
}

impl<B: Backend> FactStore for SqlStore<B> {
    fn facts<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<FactsFound, StoreError>> {
        self.run(async move {
            let scope = row::scope_hash(&MemoryScope::database(user.clone()));
            let rows = self.0.fetch(FOUND, values![user.as_str(), &scope]).await?;
            let (mut facts, mut withdrawn) = (Vec::new(), Vec::new());
            for mut columns in rows {
                let key = columns.int()?;
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

    fn change_facts<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: FactsChange<'a>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let written = Written {
            scope: scope.clone(),
            known: change.known.to_vec(),
            removed: change.removed.map(str::to_owned),
            put: change.put.cloned(),
            record: change.record.clone(),
        };
        self.run(
            self.0
                .write(written, |rows, written| Box::pin(write(rows, written))),
        )
    }
}

async fn write<C: Connection>(rows: &mut C, written: &Written) -> Result<bool, Failure> {
    let user = written.scope.user.as_str();
    if C::LOCKS_ROWS {
        // Facts that do not exist yet cannot be locked.
        rows.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended($1, 1178683252))",
            values![user],
        )
        .await?;
    }
    let mut known = Vec::new();
    for mut columns in rows.fetch(FACTS, values![user]).await? {
        let key = columns.int()?;
        known.extend(fact(key, &mut columns)?.map(|fact| (key, fact)));
    }
    if in_order(known) != written.known {
        return Ok(false);
    }
    match (&written.removed, &written.put) {
        (Some(removed), Some(fact)) => {
            let mut values = values_of(user, fact);
            values.push(Value::Text(Some(hash(removed).into())));
            rows.execute(
                "UPDATE adjutant_fact SET text_hash = $2, text = $3, important = $4, created_at = $5, updated_at = $6,
                   conversation = $7, turn = $8, call = $9 WHERE user_id = $1 AND text_hash = $10",
                &values,
            )
            .await?;
        }
        (None, Some(fact)) => {
            rows.execute(
                "INSERT INTO adjutant_fact
                   (user_id, text_hash, text, important, created_at, updated_at, conversation, turn, call)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                &values_of(user, fact),
            )
            .await?;
        }
        (Some(removed), None) => {
            rows.execute(
                "DELETE FROM adjutant_fact WHERE user_id = $1 AND text_hash = $2",
                values![user, &hash(removed)],
            )
            .await?;
        }
        (None, None) => {}
    }
    memory_ledger::put(rows, &written.scope, &written.record).await?;
    Ok(true)
}

/// The values of all columns but the key.
fn values_of(user: &str, fact: &StoredFact) -> Vec<Value<'static>> {
    let source = fact.source.as_ref();
    let text = |text: Option<String>| Value::Text(text.map(Into::into));
    vec![
        text(Some(user.to_owned())),
        text(Some(hash(&fact.text))),
        text(Some(fact.text.clone())),
        i64::from(fact.important).into(),
        text(Some(row::time_text(fact.created_at))),
        text(Some(row::time_text(fact.updated_at))),
        text(source.map(|source| source.conversation.to_string())),
        text(source.map(|source| source.turn.to_string())),
        text(source.map(|source| source.call.to_string())),
    ]
}

/// Oldest first.
fn in_order(mut facts: Vec<(i64, StoredFact)>) -> Vec<StoredFact> {
    facts.sort_by_key(|(key, fact)| (fact.created_at, *key));
    facts.into_iter().map(|(_, fact)| fact).collect()
}

/// Reads what stands behind the key. `None`: it is no fact.
pub(super) fn fact(key: i64, columns: &mut Columns) -> Result<Option<StoredFact>, StoreError> {
    let what = format!("fact {key}");
    let (text, important) = (columns.maybe_text()?, columns.maybe_int()?);
    let (created_at, updated_at) = (columns.maybe_text()?, columns.maybe_text()?);
    let source = (
        columns.maybe_text()?,
        columns.maybe_text()?,
        columns.maybe_text()?,
    );
    let Some(text) = text else { return Ok(None) };
    let time = |text: Option<String>| row::read_time(&text.unwrap_or_default(), &what);
    let source = match source {
        (Some(conversation), Some(turn), Some(call)) => Some(MemorySource {
            conversation: conversation
                .parse()
                .map_err(|error| row::unreadable(&what, error))?,
            turn: turn
                .parse()
                .map_err(|error| row::unreadable(&what, error))?,
            call: CallId::new(call).map_err(|error| row::unreadable(&what, error))?,
        }),
        _ => None,
    };
    Ok(Some(StoredFact {
        text,
        important: important.unwrap_or_default() != 0,
        created_at: time(created_at)?,
        updated_at: time(updated_at)?,
        source,
    }))
}

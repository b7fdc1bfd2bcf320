//! Branches: conversations that begin with the events of another.
//!
//! A branch has its own rows only for the events after the place at which it branches off; those
//! before belong to the conversation that recorded them. A branch is always made from the
//! conversation that has the event at its place, so places rise from the first conversation to the
//! last branch, and all events are found by following the origins until there is none.

use adjutant_core::port::{Alternatives, Branched, StoreError};
use adjutant_core::{ConversationId, ConversationKey};

use super::blob::{self, References};
use super::{Cell, Connection, Failure, FromRow as _, from_row, key_values, passage, values};
use crate::record;

/// Selects the branches of a conversation and of its origins, at places that it has, with the
/// conversations that they branch off. `goes_on`: the origin has events after the place. `is_left`:
/// the conversation asked about left the origin there. `is_own`: it left it with this branch.
const ALTERNATIVES: &str = "WITH RECURSIVE line (key, id, next_seq, until, from_key, from_seq, below) AS (
       SELECT key, id, next_seq, next_seq - 1, branched_from_key, branched_from_seq, CAST(0 AS BIGINT)
       FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3
       UNION ALL
       SELECT origin.key, origin.id, origin.next_seq, line.from_seq, origin.branched_from_key, origin.branched_from_seq, line.key
       FROM line JOIN adjutant_conversation AS origin ON origin.key = line.from_key
       WHERE origin.branched_from_seq IS NULL OR origin.branched_from_seq < line.from_seq
     )
     SELECT branch.branched_from_seq AS seq, line.id AS origin,
            CAST(CASE WHEN line.next_seq - 1 > branch.branched_from_seq THEN 1 ELSE 0 END AS BIGINT) AS goes_on,
            CAST(CASE WHEN line.below <> 0 AND branch.branched_from_seq = line.until THEN 1 ELSE 0 END AS BIGINT) AS is_left,
            branch.id AS branch, CAST(CASE WHEN branch.key = line.below THEN 1 ELSE 0 END AS BIGINT) AS is_own
     FROM line JOIN adjutant_conversation AS branch ON branch.branched_from_key = line.key
     WHERE branch.branched_from_seq <= line.until
       AND (branch.next_seq - 1 > branch.branched_from_seq OR branch.untaken > 0)
     ORDER BY branch.branched_from_seq, branch.key";

/// A branch to be created.
pub(super) struct NewBranch {
    pub(super) from: ConversationKey,
    pub(super) seq: i64,
    pub(super) id: ConversationId,
    pub(super) at: String,
}

/// A conversation that a branch may begin in.
struct Origin {
    key: i64,
    id: String,
    turns: i64,
    branched_from_key: Option<i64>,
    branched_from_seq: Option<i64>,
}
from_row! { Origin { key, id, turns, branched_from_key, branched_from_seq } }

/// Locks the branches of a user against creation and deletion until the end of the transaction.
pub(super) async fn lock_tree<C: Connection>(tx: &mut C, user: &str) -> Result<(), Failure> {
    if C::LOCKS_ROWS {
        tx.execute(
            // The seed is 'ADJT', so that the lock is not one that another program takes for the
            // same text.
            "SELECT pg_advisory_xact_lock(hashtextextended($1, 1094994516))",
            values![user],
        )
        .await?;
    }
    Ok(())
}

/// Creates a branch.
pub(super) async fn create<C: Connection>(
    tx: &mut C,
    new: &NewBranch,
) -> Result<Branched, Failure> {
    // The conversation must not be removed while a branch of it is created.
    lock_tree(tx, new.from.user.as_str()).await?;
    let found = tx
        .fetch_optional(
            "SELECT key, next_seq, title, named, id, turns, branched_from_key, branched_from_seq FROM adjutant_conversation
             WHERE agent = $1 AND user_id = $2 AND id = $3",
            key_values![new.from],
        )
        .await?;
    let Some(mut row) = found else {
        return Ok(Branched::NoSuchConversation);
    };
    let (title, named): (String, i64) = (row.get("title")?, row.get("named")?);
    if new.seq >= row.get("next_seq")? {
        return Ok(Branched::NotBetweenTurns);
    }
    let mut origin = Origin::from_row(&mut row)?;
    while let (Some(further), Some(from)) = (origin.branched_from_key, origin.branched_from_seq) {
        if new.seq > from {
            break;
        }
        let found = tx
            .fetch_records(
                "SELECT key, id, turns, branched_from_key, branched_from_seq FROM adjutant_conversation WHERE key = $1",
                values![further],
            )
            .await?;
        origin = found.into_iter().next().ok_or(StoreError::Conflict)?;
    }
    let Origin { key, id, turns, .. } = origin;
    let last: Option<String> = tx
        .fetch_scalar(
            "SELECT kind FROM adjutant_event WHERE conversation = $1 AND seq <= $2 AND kind IN ('turn_started', 'turn_finished')
             ORDER BY seq DESC LIMIT 1",
            values![key, new.seq],
        )
        .await?;
    if last.is_some_and(|kind| kind == "turn_started") {
        return Ok(Branched::NotBetweenTurns);
    }
    let later = tx
        .fetch_scalar(
            "SELECT count(*) FROM adjutant_event WHERE conversation = $1 AND seq > $2 AND kind = 'turn_started'",
            values![key, new.seq],
        )
        .await?
        .unwrap_or(0);
    // Turns of the origin after the place are no turns of the branch, so they are subtracted below.
    let branch = ConversationKey {
        conversation: new.id,
        ..new.from.clone()
    };
    // Before the first event nothing was said that the title could be about.
    let (title, named) = if new.seq == 0 {
        ("", 0)
    } else {
        (title.as_str(), named)
    };
    let made = tx
        .execute(
            "INSERT INTO adjutant_conversation (agent, user_id, id, title, created_at, updated_at, next_seq, turns,
               branched_from_key, branched_from_seq, named)
             VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9, $10) ON CONFLICT (agent, user_id, id) DO NOTHING",
            key_values![branch, title, &new.at, new.seq + 1, turns - later, key, new.seq, named],
        )
        .await?;
    // A client repeats a request whose answer was lost, and gets the same branch.
    if made == 0 {
        let known = tx
            .fetch_optional(
                "SELECT branched_from_key, branched_from_seq FROM adjutant_conversation
                 WHERE agent = $1 AND user_id = $2 AND id = $3",
                key_values![branch],
            )
            .await?;
        let mut known = known.ok_or(StoreError::Reused)?;
        let place = (
            known.get("branched_from_key")?,
            known.get("branched_from_seq")?,
        );
        if place != (Some(key), Some(new.seq)) {
            return Err(StoreError::Reused.into());
        }
    }
    Ok(Branched::At(record::branch_point(&id, new.seq)?))
}

/// Lists the places at which branches continue differently.
pub(super) async fn alternatives<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
) -> Result<Vec<Alternatives>, Failure> {
    let what = "the id of a branch";
    let mut places: Vec<(Alternatives, bool)> = Vec::new();
    for mut row in tx.fetch_all(ALTERNATIVES, key_values![key]).await? {
        let (seq, origin) = (row.get("seq")?, row.parse("origin", what)?);
        let (goes_on, is_left): (bool, bool) = (row.get("goes_on")?, row.get("is_left")?);
        let (branch, is_own) = (row.parse("branch", what)?, row.get("is_own")?);
        if places.last().is_none_or(|(place, _)| place.seq != seq) {
            let conversations = if goes_on { vec![origin] } else { Vec::new() };
            places.push((
                Alternatives {
                    seq,
                    conversations,
                    current: 0,
                },
                goes_on && !is_left,
            ));
        }
        let Some((place, is_known)) = places.last_mut() else {
            continue;
        };
        if is_own {
            (place.current, *is_known) = (place.conversations.len(), true);
        }
        place.conversations.push(branch);
    }
    places.retain(|(place, is_known)| *is_known && place.conversations.len() > 1);
    Ok(places.into_iter().map(|(place, _)| place).collect())
}

/// Selects the texts of rows up to a place that may refer to long values.
const MOVED: [&str; 3] = [
    "SELECT body FROM adjutant_event WHERE conversation = $1 AND seq <= $2",
    "SELECT arguments, data, error FROM adjutant_tool_invocation WHERE conversation = $1 AND decision IN (
       SELECT turn FROM adjutant_event WHERE conversation = $1 AND seq <= $2 AND kind = 'turn_started')",
    "SELECT message, content, raw_response FROM adjutant_decision WHERE conversation = $1 AND id IN (
       SELECT turn FROM adjutant_event WHERE conversation = $1 AND seq <= $2 AND kind = 'turn_started')",
];

/// Moves the events of a conversation that is about to be deleted to its branches. The branch with
/// the latest place gets the events up to there with their logs, and the others branch off that one
/// from now on. Events after that place stay. Returns the place, or `None` if there are no
/// branches.
pub(super) async fn move_to_heir<C: Connection>(
    tx: &mut C,
    conversation: i64,
) -> Result<Option<i64>, Failure> {
    let heir = tx
        .fetch_optional(
            "SELECT key, id, branched_from_seq FROM adjutant_conversation WHERE branched_from_key = $1
             ORDER BY branched_from_seq DESC, key LIMIT 1",
            values![conversation],
        )
        .await?;
    let Some(mut heir) = heir else {
        return Ok(None);
    };
    let (id, until): (String, i64) = (heir.get("id")?, heir.get("branched_from_seq")?);
    let heir = heir.get("key")?;
    // Bodies that were stored as a whole, before only their long parts were.
    tx.execute(
        "INSERT INTO adjutant_blob (conversation, hash, body)
         SELECT $2, hash, body FROM adjutant_blob WHERE conversation = $1
         AND hash IN (SELECT blob FROM adjutant_event WHERE conversation = $1 AND seq <= $3 AND blob IS NOT NULL)
         ON CONFLICT (conversation, hash) DO NOTHING",
        values![conversation, heir, until],
    )
    .await?;
    // The texts of all common turns are searched, which takes a busy machine more than a second.
    tx.may_compute().await?;
    let mut references = References::default();
    for statement in MOVED {
        for columns in tx
            .fetch_all(statement, values![conversation, until])
            .await?
        {
            for cell in columns.into_cells() {
                if let Cell::Text(text) = cell {
                    references.add(conversation, &text);
                    references.add_text(conversation, &text);
                }
            }
        }
    }
    let blobs = references.read(tx).await?;
    blob::insert(tx, heir, &blobs).await?;
    tx.execute(
        "UPDATE adjutant_tool_invocation SET conversation = $2 WHERE conversation = $1 AND decision IN (
           SELECT turn FROM adjutant_event WHERE conversation = $1 AND seq <= $3 AND kind = 'turn_started')",
        values![conversation, heir, until],
    )
    .await?;
    tx.execute(
        "UPDATE adjutant_decision SET conversation = $2, conversation_id = $4 WHERE conversation = $1 AND id IN (
           SELECT turn FROM adjutant_event WHERE conversation = $1 AND seq <= $3 AND kind = 'turn_started')",
        values![conversation, heir, until, &id],
    )
    .await?;
    tx.execute(
        "UPDATE adjutant_event SET conversation = $2 WHERE conversation = $1 AND seq <= $3",
        values![conversation, heir, until],
    )
    .await?;
    passage::move_to_heir(tx, conversation, heir, until).await?;
    tx.execute(
        "UPDATE adjutant_conversation SET
           branched_from_key = (SELECT origin.branched_from_key FROM adjutant_conversation AS origin WHERE origin.key = $1),
           branched_from_seq = (SELECT origin.branched_from_seq FROM adjutant_conversation AS origin WHERE origin.key = $1)
         WHERE key = $2",
        values![conversation, heir],
    )
    .await?;
    tx.execute(
        "UPDATE adjutant_conversation SET branched_from_key = $2 WHERE branched_from_key = $1",
        values![conversation, heir],
    )
    .await?;
    Ok(Some(until))
}

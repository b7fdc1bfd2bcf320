//! Conversations that begin with the events of another.
//!
//! A branch has the events behind its place as rows of its own; those before are rows of the
//! conversation that recorded them. Places rise from the first conversation to the last branch,
//! because a branch is always made of the conversation that has the event at its place. So
//! everybody's events are found by going from a branch to where it comes from, until there is no
//! more.

use adjutant_core::port::{Alternatives, Branched, StoreError};
use adjutant_core::{ConversationId, ConversationKey};

use super::blob::{self, Wanted};
use super::{Cell, Connection, Failure, key_values, passage, values};
use crate::row;

/// The branches of a conversation and of those it comes from, at places that it has, and the
/// conversations they begin in. The first number says whether that conversation has something
/// behind the place, the second whether the conversation that is asked about left it there, the
/// third whether it left it with that branch.
const ALTERNATIVES: &str = "WITH RECURSIVE line (key, id, next_seq, until, from_key, from_seq, below) AS (
       SELECT key, id, next_seq, next_seq - 1, branched_from_key, branched_from_seq, CAST(0 AS BIGINT)
       FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3
       UNION ALL
       SELECT origin.key, origin.id, origin.next_seq, line.from_seq, origin.branched_from_key, origin.branched_from_seq, line.key
       FROM line JOIN adjutant_conversation AS origin ON origin.key = line.from_key
       WHERE origin.branched_from_seq IS NULL OR origin.branched_from_seq < line.from_seq
     )
     SELECT branch.branched_from_seq, line.id, 
            CAST(CASE WHEN line.next_seq - 1 > branch.branched_from_seq THEN 1 ELSE 0 END AS BIGINT),
            CAST(CASE WHEN line.below <> 0 AND branch.branched_from_seq = line.until THEN 1 ELSE 0 END AS BIGINT),
            branch.id, CAST(CASE WHEN branch.key = line.below THEN 1 ELSE 0 END AS BIGINT)
     FROM line JOIN adjutant_conversation AS branch ON branch.branched_from_key = line.key
     WHERE branch.branched_from_seq <= line.until
       AND (branch.next_seq - 1 > branch.branched_from_seq OR branch.untaken > 0)
     ORDER BY branch.branched_from_seq, branch.key";

/// A branch that is to be made.
pub(super) struct NewBranch {
    pub(super) from: ConversationKey,
    pub(super) seq: i64,
    pub(super) id: ConversationId,
    pub(super) at: String,
}

/// Lets nobody else make or delete branches of a user until the end of the transaction.
pub(super) async fn lock_tree<C: Connection>(rows: &mut C, user: &str) -> Result<(), Failure> {
    if C::LOCKS_ROWS {
        rows.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended($1, 1094994516))",
            values![user],
        )
        .await?;
    }
    Ok(())
}

/// Makes a branch.
pub(super) async fn make<C: Connection>(
    rows: &mut C,
    new: &NewBranch,
) -> Result<Branched, Failure> {
    lock_tree(rows, new.from.user.as_str()).await?;
    let found = rows
        .fetch_first(
            "SELECT key, next_seq, title, named, id, turns, branched_from_key, branched_from_seq FROM adjutant_conversation
             WHERE agent = $1 AND user_id = $2 AND id = $3",
            key_values![new.from],
        )
        .await?;
    let Some(mut columns) = found else {
        return Ok(Branched::NoSuchConversation);
    };
    let (mut key, next_seq) = (columns.int()?, columns.int()?);
    let (title, named) = (columns.text()?, columns.int()?);
    let (mut id, mut turns) = (columns.text()?, columns.int()?);
    if new.seq >= next_seq {
        return Ok(Branched::NotBetweenTurns);
    }
    while let (Some(origin), Some(from)) = (columns.maybe_int()?, columns.maybe_int()?) {
        if new.seq > from {
            break;
        }
        let found = rows
            .fetch_first(
                "SELECT key, id, turns, branched_from_key, branched_from_seq FROM adjutant_conversation WHERE key = $1",
                values![origin],
            )
            .await?;
        columns = found.ok_or(StoreError::Conflict)?;
        (key, id, turns) = (columns.int()?, columns.text()?, columns.int()?);
    }
    let last = rows
        .fetch_first(
            "SELECT kind FROM adjutant_event WHERE conversation = $1 AND seq <= $2 AND kind IN ('turn_started', 'turn_finished')
             ORDER BY seq DESC LIMIT 1",
            values![key, new.seq],
        )
        .await?;
    if last
        .map(|mut columns| columns.text())
        .transpose()?
        .is_some_and(|kind| kind == "turn_started")
    {
        return Ok(Branched::NotBetweenTurns);
    }
    let later = rows
        .fetch_first(
            "SELECT count(*) FROM adjutant_event WHERE conversation = $1 AND seq > $2 AND kind = 'turn_started'",
            values![key, new.seq],
        )
        .await?;
    let later = later
        .map(|mut columns| columns.int())
        .transpose()?
        .unwrap_or_default();
    let branch = ConversationKey {
        conversation: new.id,
        ..new.from.clone()
    };
    let (title, named) = if new.seq == 0 {
        ("", 0)
    } else {
        (title.as_str(), named)
    };
    let made = rows
        .execute(
            "INSERT INTO adjutant_conversation (agent, user_id, id, title, created_at, updated_at, next_seq, turns,
               branched_from_key, branched_from_seq, named)
             VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9, $10) ON CONFLICT (agent, user_id, id) DO NOTHING",
            key_values![branch, title, &new.at, new.seq + 1, turns - later, key, new.seq, named],
        )
        .await?;
    if made == 0 {
        let known = rows
            .fetch_first(
                "SELECT branched_from_key, branched_from_seq FROM adjutant_conversation
                 WHERE agent = $1 AND user_id = $2 AND id = $3",
                key_values![branch],
            )
            .await?;
        let known = known
            .map(|mut columns| Ok::<_, StoreError>((columns.maybe_int()?, columns.maybe_int()?)));
        if known.transpose()? != Some((Some(key), Some(new.seq))) {
            return Err(StoreError::Reused.into());
        }
    }
    Ok(Branched::At(row::branch_point(&id, new.seq)?))
}

/// Lists the places at which others go on differently.
pub(super) async fn alternatives<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
) -> Result<Vec<Alternatives>, Failure> {
    let read = |text: String| {
        text.parse::<ConversationId>()
            .map_err(|error| row::unreadable("the id of a branch", error))
    };
    let mut places: Vec<(Alternatives, bool)> = Vec::new();
    for mut columns in rows.fetch(ALTERNATIVES, key_values![key]).await? {
        let (from, origin) = (columns.int()?, read(columns.text()?)?);
        let (goes_on, is_left) = (columns.int()? == 1, columns.int()? == 1);
        let (branch, is_own) = (read(columns.text()?)?, columns.int()? == 1);
        let seq =
            u64::try_from(from).map_err(|error| row::unreadable("the place of a branch", error))?;
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

/// Texts of the rows up to a place that may refer to long values.
const MOVED: [&str; 3] = [
    "SELECT body FROM adjutant_event WHERE conversation = $1 AND seq <= $2",
    "SELECT arguments, data, error FROM adjutant_tool_invocation WHERE conversation = $1 AND decision IN (
       SELECT turn FROM adjutant_event WHERE conversation = $1 AND seq <= $2 AND kind = 'turn_started')",
    "SELECT message, content, raw_response FROM adjutant_decision WHERE conversation = $1 AND id IN (
       SELECT turn FROM adjutant_event WHERE conversation = $1 AND seq <= $2 AND kind = 'turn_started')",
];

/// Gives the events of a conversation that is about to be deleted to its branches: the one that
/// begins latest gets those up to its place with their logs, and the others begin in that one from
/// now on. What none of them begins with stays where it is. Returns that place. `None`: it has no
/// branches.
pub(super) async fn give_to_heir<C: Connection>(
    rows: &mut C,
    conversation: i64,
) -> Result<Option<i64>, Failure> {
    let heir = rows
        .fetch_first(
            "SELECT key, id, branched_from_seq FROM adjutant_conversation WHERE branched_from_key = $1
             ORDER BY branched_from_seq DESC, key LIMIT 1",
            values![conversation],
        )
        .await?;
    let Some(mut heir) = heir else {
        return Ok(None);
    };
    let (heir, id, until) = (heir.int()?, heir.text()?, heir.int()?);
    // Bodies of before only parts of them were kept beside.
    rows.execute(
        "INSERT INTO adjutant_blob (conversation, hash, body)
         SELECT $2, hash, body FROM adjutant_blob WHERE conversation = $1
         AND hash IN (SELECT blob FROM adjutant_event WHERE conversation = $1 AND seq <= $3 AND blob IS NOT NULL)
         ON CONFLICT (conversation, hash) DO NOTHING",
        values![conversation, heir, until],
    )
    .await?;
    let mut wanted = Wanted::default();
    for statement in MOVED {
        for columns in rows.fetch(statement, values![conversation, until]).await? {
            for cell in columns.cells() {
                if let Cell::Text(text) = cell {
                    wanted.add(conversation, &text);
                    wanted.add_text(conversation, &text);
                }
            }
        }
    }
    let blobs = wanted.read(rows).await?;
    blob::insert(rows, heir, &blobs).await?;
    rows.execute(
        "UPDATE adjutant_tool_invocation SET conversation = $2 WHERE conversation = $1 AND decision IN (
           SELECT turn FROM adjutant_event WHERE conversation = $1 AND seq <= $3 AND kind = 'turn_started')",
        values![conversation, heir, until],
    )
    .await?;
    rows.execute(
        "UPDATE adjutant_decision SET conversation = $2, conversation_id = $4 WHERE conversation = $1 AND id IN (
           SELECT turn FROM adjutant_event WHERE conversation = $1 AND seq <= $3 AND kind = 'turn_started')",
        values![conversation, heir, until, &id],
    )
    .await?;
    rows.execute(
        "UPDATE adjutant_event SET conversation = $2 WHERE conversation = $1 AND seq <= $3",
        values![conversation, heir, until],
    )
    .await?;
    passage::give_to_heir(rows, (conversation, heir, until)).await?;
    rows.execute(
        "UPDATE adjutant_conversation SET
           branched_from_key = (SELECT origin.branched_from_key FROM adjutant_conversation AS origin WHERE origin.key = $1),
           branched_from_seq = (SELECT origin.branched_from_seq FROM adjutant_conversation AS origin WHERE origin.key = $1)
         WHERE key = $2",
        values![conversation, heir],
    )
    .await?;
    rows.execute(
        "UPDATE adjutant_conversation SET branched_from_key = $2 WHERE branched_from_key = $1",
        values![conversation, heir],
    )
    .await?;
    Ok(Some(until))
}

//! The row of a conversation.

use adjutant_core::ConversationKey;
use adjutant_core::port::StoreError;
use jiff::Timestamp;

use super::lease::lease_until;
use super::{Connection, Failure, Row, key_values, values};
use crate::record::{self, ConversationRow};
use crate::status::Status;

/// Selects the columns of a [`ConversationRow`].
macro_rules! conversation {
    ($rest:literal) => {
        concat!(
            "SELECT key, title, created_at, updated_at, next_seq, untaken, turns, turn, parked_seq, waiting,
             lease_by, ",
            lease_until!(),
            " AS lease_until, epoch, branched_from_seq FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3",
            $rest
        )
    };
}
pub(crate) const CONVERSATION: &str = conversation!("");
const CONVERSATION_LOCKED: &str = conversation!(" FOR UPDATE");

/// Reads a conversation and locks it until the end of the transaction.
pub(super) async fn conversation<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
) -> Result<Option<ConversationRow>, Failure> {
    let statement = if C::LOCKS_ROWS {
        CONVERSATION_LOCKED
    } else {
        CONVERSATION
    };
    let found = tx.fetch_optional(statement, key_values![key]).await?;
    Ok(found
        .map(|columns| read_conversation(columns, key))
        .transpose()?)
}

pub(crate) fn read_conversation(
    mut row: Row,
    key: &ConversationKey,
) -> Result<ConversationRow, StoreError> {
    let what = format!("conversation {}", key.conversation);
    Ok(ConversationRow {
        key: row.get("key")?,
        title: row.get("title")?,
        created_at: row.parse("created_at", &what)?,
        updated_at: row.parse("updated_at", &what)?,
        next_seq: row.get("next_seq")?,
        untaken: row.get("untaken")?,
        turns: row.get("turns")?,
        status: Status {
            turn: row.get("turn")?,
            parked_seq: row.get("parked_seq")?,
            waiting: record::from_json(&row.get::<String>("waiting")?, &what)?,
        },
        lease_by: row.get("lease_by")?,
        lease_until: row.parse_optional("lease_until", &what)?,
        epoch: row.get("epoch")?,
        branched_from_seq: row.get("branched_from_seq")?,
    })
}

/// Creates a conversation, or returns the one that another transaction has created meanwhile.
pub(super) async fn create_conversation<C: Connection>(
    tx: &mut C,
    key: &ConversationKey,
    at: Timestamp,
) -> Result<ConversationRow, Failure> {
    let created = tx
        .fetch_scalar(
            "INSERT INTO adjutant_conversation (agent, user_id, id, title, created_at, updated_at)
             VALUES ($1, $2, $3, '', $4, $4) ON CONFLICT (agent, user_id, id) DO NOTHING RETURNING key",
            key_values![key, &record::format_time(at)],
        )
        .await?;
    match created {
        Some(key) => Ok(ConversationRow::new(key, at)),
        // It exists, unless it was deleted in this very moment.
        None => conversation(tx, key)
            .await?
            .ok_or_else(|| StoreError::Conflict.into()),
    }
}

pub(super) async fn save_conversation<C: Connection>(
    tx: &mut C,
    row: &ConversationRow,
) -> Result<(), Failure> {
    tx.execute(
        "UPDATE adjutant_conversation SET title = $1, updated_at = $2, next_seq = $3, untaken = $4, turn = $5, parked_seq = $6,
         waiting = $7, wake_at = $8, lease_by = $9, lease_until = $10, turns = $11, epoch = $12 WHERE key = $13",
        values![
            &row.title,
            &record::format_time(row.updated_at),
            row.next_seq,
            row.untaken,
            row.status.turn.as_deref(),
            row.status.parked_seq,
            &record::to_json(&row.status.waiting)?,
            row.status.wake_at().map(record::format_time).as_deref(),
            row.lease_by.as_deref(),
            row.lease_until.map(record::format_time).as_deref(),
            row.turns,
            row.epoch,
            row.key
        ],
    )
    .await?;
    Ok(())
}

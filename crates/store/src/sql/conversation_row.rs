//! The row of a conversation: what is known of it without reading its events.

use adjutant_core::ConversationKey;
use adjutant_core::port::StoreError;
use jiff::Timestamp;

use super::work::lease_until;
use super::{Columns, Connection, Failure, key_values, values};
use crate::row::{self, ConversationRow};
use crate::status::Status;

/// A conversation of a user.
macro_rules! conversation {
    ($rest:literal) => {
        concat!(
            "SELECT key, title, created_at, updated_at, next_seq, untaken, turns, turn, parked_seq, waiting,
             lease_by, ",
            lease_until!(),
            ", epoch, branched_from_seq FROM adjutant_conversation WHERE agent = $1 AND user_id = $2 AND id = $3",
            $rest
        )
    };
}
pub(crate) const CONVERSATION: &str = conversation!("");
const CONVERSATION_LOCKED: &str = conversation!(" FOR UPDATE");

/// The conversation as it is, locked until the end of the transaction.
pub(super) async fn conversation<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
) -> Result<Option<ConversationRow>, Failure> {
    let statement = if C::LOCKS_ROWS {
        CONVERSATION_LOCKED
    } else {
        CONVERSATION
    };
    let found = rows.fetch_first(statement, key_values![key]).await?;
    Ok(found
        .map(|columns| read_conversation(columns, key))
        .transpose()?)
}

pub(crate) fn read_conversation(
    mut columns: Columns,
    key: &ConversationKey,
) -> Result<ConversationRow, StoreError> {
    let what = format!("conversation {}", key.conversation);
    Ok(ConversationRow {
        key: columns.int()?,
        title: columns.text()?,
        created_at: row::read_time(&columns.text()?, &what)?,
        updated_at: row::read_time(&columns.text()?, &what)?,
        next_seq: columns.int()?,
        untaken: columns.int()?,
        turns: columns.int()?,
        status: Status {
            turn: columns.maybe_text()?,
            parked_seq: columns.maybe_int()?,
            waiting: row::read_waiting(&columns.text()?, &what)?,
        },
        lease_by: columns.maybe_text()?,
        lease_until: columns
            .maybe_text()?
            .map(|until| row::read_time(&until, &what))
            .transpose()?,
        epoch: columns.int()?,
        branched_from_seq: columns.maybe_int()?,
    })
}

/// Makes a conversation. Somebody else may have been quicker: then it is theirs that is returned.
pub(super) async fn create_conversation<C: Connection>(
    rows: &mut C,
    key: &ConversationKey,
    at: Timestamp,
) -> Result<ConversationRow, Failure> {
    let created = rows
        .fetch_first(
            "INSERT INTO adjutant_conversation (agent, user_id, id, title, created_at, updated_at)
             VALUES ($1, $2, $3, '', $4, $4) ON CONFLICT (agent, user_id, id) DO NOTHING RETURNING key",
            key_values![key, &row::time_text(at)],
        )
        .await?;
    match created {
        Some(mut columns) => Ok(ConversationRow::new(columns.int()?, at)),
        // It can only be gone if it was deleted in this very moment.
        None => conversation(rows, key)
            .await?
            .ok_or_else(|| StoreError::Conflict.into()),
    }
}

pub(super) async fn save_conversation<C: Connection>(
    rows: &mut C,
    row: &ConversationRow,
) -> Result<(), Failure> {
    rows.execute(
        "UPDATE adjutant_conversation SET title = $1, updated_at = $2, next_seq = $3, untaken = $4, turn = $5, parked_seq = $6,
         waiting = $7, wake_at = $8, lease_by = $9, lease_until = $10, turns = $11, epoch = $12 WHERE key = $13",
        values![
            &row.title,
            &row::time_text(row.updated_at),
            row.next_seq,
            row.untaken,
            row.status.turn.as_deref(),
            row.status.parked_seq,
            &row::waiting_text(&row.status)?,
            row.status.wake_at().map(row::time_text).as_deref(),
            row.lease_by.as_deref(),
            row.lease_until.map(row::time_text).as_deref(),
            row.turns,
            row.epoch,
            row.key
        ],
    )
    .await?;
    Ok(())
}

//! Snapshots of conversations: one each, which a newer one replaces.

use adjutant_core::ConversationKey;
use adjutant_core::conversation::{SNAPSHOT_VERSION, Snapshot};
use adjutant_core::port::{Restorable, StoreError};

use super::past::{event_rows, select_events};
use super::{Connection, Failure, values};
use crate::digest::hash;
use crate::row::EventRow;

/// A snapshot as it is stored.
#[derive(Debug)]
pub(crate) struct SnapshotRow {
    pub(crate) seq: i64,
    pub(crate) messages_from: i64,
    pub(crate) v: i64,
    pub(crate) digest: String,
    pub(crate) body: String,
}

impl SnapshotRow {
    pub(crate) fn of(snapshot: &Snapshot) -> Result<Self, StoreError> {
        let place = |seq: u64| i64::try_from(seq).map_err(|_| StoreError::Conflict);
        let mut row = Self {
            seq: place(snapshot.seq)?,
            messages_from: place(snapshot.messages_from)?,
            v: i64::from(SNAPSHOT_VERSION),
            digest: String::new(),
            body: snapshot.body.clone(),
        };
        row.digest = row.expected();
        Ok(row)
    }

    /// Returns the digest of what it says.
    fn expected(&self) -> String {
        hash(&format!(
            "{} {} {} {}",
            self.v, self.seq, self.messages_from, self.body
        ))
    }

    /// Returns whether it is in a format that this program reads.
    pub(super) fn is_known(&self) -> bool {
        self.v == i64::from(SNAPSHOT_VERSION)
    }

    /// Returns whether it is as it was written.
    pub(super) fn is_whole(&self) -> bool {
        self.digest == self.expected()
    }

    /// Returns whether this program can read it.
    pub(crate) fn is_usable(&self) -> bool {
        self.is_known() && self.is_whole() && self.seq >= 1
    }

    pub(super) fn read(&self) -> Option<Snapshot> {
        Some(Snapshot {
            seq: u64::try_from(self.seq).ok()?,
            messages_from: u64::try_from(self.messages_from).ok()?,
            body: self.body.clone(),
        })
    }
}

/// Events that have messages, from a place on up to another.
const SAID: &str = select_events!(
    "adjutant_event AS event",
    "WHERE event.conversation = $1 AND seq >= $2 AND seq <= $3 AND kind IN ('history_set', 'turn_finished') ORDER BY seq"
);

/// The same of a branch. It is gone no further back than events are asked for.
const SAID_OF_BRANCH: &str = concat!(
    "WITH RECURSIVE line (key, until, from_key, from_seq) AS (
       SELECT key, next_seq - 1, branched_from_key, branched_from_seq FROM adjutant_conversation WHERE key = $1
       UNION ALL
       SELECT origin.key, line.from_seq, origin.branched_from_key, origin.branched_from_seq
       FROM line JOIN adjutant_conversation AS origin ON origin.key = line.from_key
       WHERE line.from_seq >= $2 AND (origin.branched_from_seq IS NULL OR origin.branched_from_seq < line.from_seq)
     ) ",
    select_events!(
        "line JOIN adjutant_event AS event ON event.conversation = line.key AND event.seq >= $2 AND event.seq <= line.until
           AND event.seq <= $3 AND event.kind IN ('history_set', 'turn_finished')",
        "ORDER BY seq"
    )
);

/// Puts a snapshot in the place of the last one.
pub(super) async fn write<C: Connection>(
    rows: &mut C,
    conversation: i64,
    snapshot: &SnapshotRow,
) -> Result<(), Failure> {
    rows.execute(
        "INSERT INTO adjutant_snapshot (conversation, seq, messages_from, v, digest, body) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (conversation) DO UPDATE SET seq = excluded.seq, messages_from = excluded.messages_from,
           v = excluded.v, digest = excluded.digest, body = excluded.body",
        values![
            conversation,
            snapshot.seq,
            snapshot.messages_from,
            snapshot.v,
            &snapshot.digest,
            &snapshot.body
        ],
    )
    .await?;
    Ok(())
}

/// Reads the snapshot of a conversation as it is stored. `None`: it has none.
pub(super) async fn stored<C: Connection>(
    rows: &mut C,
    conversation: i64,
) -> Result<Option<SnapshotRow>, Failure> {
    let found = rows
        .fetch_first(
            "SELECT seq, messages_from, v, digest, body FROM adjutant_snapshot WHERE conversation = $1",
            values![conversation],
        )
        .await?;
    let Some(mut columns) = found else {
        return Ok(None);
    };
    Ok(Some(SnapshotRow {
        seq: columns.int()?,
        messages_from: columns.int()?,
        v: columns.int()?,
        digest: columns.text()?,
        body: columns.text()?,
    }))
}

/// A snapshot with the events its messages are of, as they are stored.
#[derive(Debug)]
pub(crate) struct RestorableRows {
    pub(crate) snapshot: SnapshotRow,
    pub(crate) said: Vec<EventRow>,
}

impl RestorableRows {
    pub(super) fn read(self, key: &ConversationKey) -> Result<Option<Restorable>, StoreError> {
        let Some(snapshot) = self.snapshot.read() else {
            return Ok(None);
        };
        let said = self
            .said
            .into_iter()
            .map(|event| event.read(key))
            .collect::<Result<_, _>>()?;
        Ok(Some(Restorable { snapshot, said }))
    }
}

/// Reads the snapshot of a conversation whose next event goes to the place `next_seq`. `None`: it
/// has none, or none that this program can read.
pub(super) async fn restorable<C: Connection>(
    rows: &mut C,
    (conversation, branched_from_seq): (i64, Option<i64>),
    next_seq: i64,
) -> Result<Option<RestorableRows>, Failure> {
    let is_usable = |found: &SnapshotRow| found.is_usable() && found.seq < next_seq;
    let Some(snapshot) = stored(rows, conversation).await?.filter(is_usable) else {
        return Ok(None);
    };
    let statement = match branched_from_seq {
        Some(from) if snapshot.messages_from <= from => SAID_OF_BRANCH,
        Some(_) | None => SAID,
    };
    let said = match snapshot.messages_from <= snapshot.seq {
        true => {
            rows.fetch(
                statement,
                values![conversation, snapshot.messages_from, snapshot.seq],
            )
            .await?
        }
        false => Vec::new(),
    };
    let said = event_rows(rows, said).await?;
    Ok(Some(RestorableRows { snapshot, said }))
}

//! Snapshots of conversations. Each has at most one, which a newer one replaces.

use adjutant_core::ConversationKey;
use adjutant_core::conversation::{SNAPSHOT_VERSION, Snapshot};
use adjutant_core::port::{Restorable, StoreError};

use super::history::{event_rows, select_branch_events, select_events};
use super::{Connection, Failure, Value, decode_all, from_row, values};
use crate::digest::hash;
use crate::record::EventRow;

/// A snapshot as it is stored.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct SnapshotRow {
    pub(crate) seq: i64,
    pub(crate) messages_from: i64,
    pub(crate) v: i64,
    pub(crate) digest: String,
    pub(crate) body: String,
}
from_row! { SnapshotRow { seq, messages_from, v, digest, body } }

impl SnapshotRow {
    pub(crate) fn from_snapshot(snapshot: &Snapshot) -> Result<Self, StoreError> {
        let place = |seq: u64| i64::try_from(seq).map_err(|_| StoreError::Conflict);
        let mut row = Self {
            seq: place(snapshot.seq)?,
            messages_from: place(snapshot.messages_from)?,
            v: i64::from(SNAPSHOT_VERSION),
            digest: String::new(),
            body: snapshot.body.clone(),
        };
        row.digest = row.compute_digest();
        Ok(row)
    }

    /// Returns the values of the columns, in the order in which PostgreSQL's function takes them.
    pub(crate) fn values(&self) -> Vec<Value<'_>> {
        values![
            self.seq,
            self.messages_from,
            self.v,
            &self.digest,
            &self.body
        ]
        .to_vec()
    }

    /// Computes the digest of the content.
    fn compute_digest(&self) -> String {
        hash(&format!(
            "{} {} {} {}",
            self.v, self.seq, self.messages_from, self.body
        ))
    }

    /// Returns true if the format is one that this program reads.
    pub(super) fn has_known_format(&self) -> bool {
        self.v == i64::from(SNAPSHOT_VERSION)
    }

    /// Returns true if the content is as it was written.
    pub(super) fn is_undamaged(&self) -> bool {
        self.digest == self.compute_digest()
    }

    /// Returns true if the snapshot can be restored by this program.
    pub(crate) fn is_usable(&self) -> bool {
        self.has_known_format() && self.is_undamaged() && self.seq >= 1
    }

    pub(super) fn decode(&self) -> Option<Snapshot> {
        Some(Snapshot {
            seq: u64::try_from(self.seq).ok()?,
            messages_from: u64::try_from(self.messages_from).ok()?,
            body: self.body.clone(),
        })
    }
}

/// Selects events with messages, after one place and up to another.
const MESSAGES: &str = select_events!(
    "adjutant_event AS event",
    "WHERE event.conversation = $1 AND seq > $2 AND seq <= $3 AND kind IN ('history_set', 'turn_finished') ORDER BY seq"
);

/// The same for a branch.
const MESSAGES_OF_BRANCH: &str = select_branch_events!(
    "WHERE event.seq <= $3 AND event.kind IN ('history_set', 'turn_finished') ORDER BY seq"
);

/// Replaces the snapshot of a conversation.
pub(super) async fn write<C: Connection>(
    tx: &mut C,
    conversation: i64,
    snapshot: &SnapshotRow,
) -> Result<(), Failure> {
    let mut values = values![conversation].to_vec();
    values.extend(snapshot.values());
    tx.execute(
        "INSERT INTO adjutant_snapshot (conversation, seq, messages_from, v, digest, body) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (conversation) DO UPDATE SET seq = excluded.seq, messages_from = excluded.messages_from,
           v = excluded.v, digest = excluded.digest, body = excluded.body",
        &values,
    )
    .await?;
    Ok(())
}

/// Reads the snapshot of a conversation, if it has one.
pub(super) async fn stored<C: Connection>(
    tx: &mut C,
    conversation: i64,
) -> Result<Option<SnapshotRow>, Failure> {
    let found = tx
        .fetch_records(
            "SELECT seq, messages_from, v, digest, body FROM adjutant_snapshot WHERE conversation = $1",
            values![conversation],
        )
        .await?;
    Ok(found.into_iter().next())
}

/// A snapshot and the events that its messages are in.
#[derive(Debug)]
pub(crate) struct RestorableRows {
    pub(crate) snapshot: SnapshotRow,
    pub(crate) messages: Vec<EventRow>,
}

impl RestorableRows {
    pub(super) fn decode(self, key: &ConversationKey) -> Result<Option<Restorable>, StoreError> {
        let Some(snapshot) = self.snapshot.decode() else {
            return Ok(None);
        };
        Ok(Some(Restorable {
            snapshot,
            said: decode_all(self.messages, |event| event.decode(key))?,
        }))
    }
}

/// Reads the snapshot of a conversation whose next sequence number is `next_seq`. `None` if it has
/// none that this program can read.
pub(super) async fn restorable<C: Connection>(
    tx: &mut C,
    conversation: i64,
    branched_from_seq: Option<i64>,
    next_seq: i64,
) -> Result<Option<RestorableRows>, Failure> {
    // A snapshot is a cache: if it cannot be used, the events are read from the first on.
    let is_usable = |found: &SnapshotRow| found.is_usable() && found.seq < next_seq;
    let Some(snapshot) = stored(tx, conversation).await?.filter(is_usable) else {
        return Ok(None);
    };
    let statement = match branched_from_seq {
        Some(from) if snapshot.messages_from <= from => MESSAGES_OF_BRANCH,
        Some(_) | None => MESSAGES,
    };
    let messages = match snapshot.messages_from <= snapshot.seq {
        true => {
            tx.fetch_all(
                statement,
                values![conversation, snapshot.messages_from - 1, snapshot.seq],
            )
            .await?
        }
        false => Vec::new(),
    };
    let messages = event_rows(tx, messages).await?;
    Ok(Some(RestorableRows { snapshot, messages }))
}

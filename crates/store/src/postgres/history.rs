//! The history of the server, as this process has seen it.
//!
//! A standby that takes the place of a primary lacks the commits that it had not received, and a
//! server that crashes or is restored may lack its last ones: they never happened there. What was
//! accepted in them is gone, although its effects are not. An ordinary user cannot ask a server where
//! its history branched. So this process remembers the last events that it has committed, and looks
//! for them when it finds another start of a server than before.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Instant;

use jiff::Timestamp;
use sqlx::{PgConnection, Row as _};
use tracing::{error, info};

use crate::lock::lock;
use crate::record;

/// Number of the last commits that are remembered. Commits are lost from the last one on, and the
/// order in which their answers arrive differs from that in the log by the connections of a pool
/// at most.
const REMEMBERED: usize = 256;

/// Selects the time at which the server was started, which no other server shares; NULL on a
/// standby.
const STARTED: &str = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN CAST(extract(epoch FROM pg_postmaster_start_time()) AS TEXT) END";

/// Counts those of the events, given as three arrays, that are not there. An event that took the
/// place of a lost one has another time.
const MISSING: &str = "SELECT count(*) FROM unnest(CAST($1 AS BIGINT[]), CAST($2 AS BIGINT[]), CAST($3 AS TEXT[])) AS known (conversation, seq, at)
     WHERE NOT EXISTS (SELECT FROM adjutant_event AS event
       WHERE event.conversation = known.conversation AND event.seq = known.seq AND event.at = known.at)";

/// The server's start, and the last events that this process has committed.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    started: Option<String>,
    /// Number of times that another start was found.
    restarts: u64,
    /// The last commits, the newest last.
    committed: VecDeque<Committed>,
    lost_at: Option<Instant>,
}

/// The last event of a commit.
#[derive(Debug, Clone, Copy)]
struct Committed {
    conversation: i64,
    seq: i64,
    at: Timestamp,
}

impl History {
    /// Records a commit by its last event.
    pub(super) fn committed(&self, conversation: i64, seq: i64, at: Timestamp) {
        let mut state = lock(&self.0);
        if state.committed.len() >= REMEMBERED {
            state.committed.pop_front();
        }
        state.committed.push_back(Committed {
            conversation,
            seq,
            at,
        });
    }

    /// Returns the time at which this process found that commits of its own are missing.
    pub(super) fn lost_at(&self) -> Option<Instant> {
        lock(&self.0).lost_at
    }

    /// Returns the number of times that another start of a server was found than before.
    pub(super) fn restarts(&self) -> u64 {
        lock(&self.0).restarts
    }

    /// Compares the server's start with the one that was seen before. After another one, looks for
    /// the last commits of this process. A standby is left alone.
    pub(super) async fn compare(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let row = sqlx::raw_sql(STARTED).fetch_one(&mut *connection).await?;
        let Some(started) = row.try_get::<Option<String>, _>(0)? else {
            return Ok(());
        };
        let known: Vec<Committed> = {
            let mut state = lock(&self.0);
            match &state.started {
                Some(known) if *known == started => return Ok(()),
                Some(_) => state.committed.iter().copied().collect(),
                None => {
                    state.started = Some(started);
                    return Ok(());
                }
            }
        };
        let missing: i64 = sqlx::query_scalar(MISSING)
            .bind(Vec::from_iter(known.iter().map(|known| known.conversation)))
            .bind(Vec::from_iter(known.iter().map(|known| known.seq)))
            .bind(Vec::from_iter(
                known.iter().map(|known| record::format_time(known.at)),
            ))
            .persistent(false)
            .fetch_one(connection)
            .await?;
        let mut state = lock(&self.0);
        // Several connections may be compared at once; the first reports.
        if state.started.replace(started.clone()).as_ref() == Some(&started) {
            return Ok(());
        }
        state.restarts += 1;
        if missing == 0 {
            info!(
                started,
                "another server is there, or the same one again, with all commits of this process"
            );
            return Ok(());
        }
        state.committed.clear();
        state.lost_at = Some(Instant::now());
        error!(
            started,
            missing,
            "the database lacks the last commits of this process, which it had confirmed: what was done in them may be \
             done again when clients repeat their requests. A synchronous standby prevents this after a fail-over (docs/scale.md)"
        );
        Ok(())
    }
}

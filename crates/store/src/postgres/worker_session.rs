//! The server sessions that show which workers are alive: a session ends with its process, however
//! that ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use tracing::debug;

use super::literal::fill;
use super::pool::Pool;
use crate::lock::lock;
use crate::sql::values;

/// Records the session on which a worker's process listens.
const RECORD: &str =
    "INSERT INTO adjutant_worker_session (worker, pid, started) VALUES ($1, $2, CAST($3 AS TIMESTAMPTZ))
    ON CONFLICT (worker) DO UPDATE SET pid = excluded.pid, started = excluded.started";

/// Removes the record of a session.
const REMOVE: &str =
    "DELETE FROM adjutant_worker_session WHERE pid = $1 AND started = CAST($2 AS TIMESTAMPTZ)";

/// Ends the leases of workers whose sessions have ended. A restart of the server ends all sessions,
/// so sessions from before say nothing; nor does a session that this user may not see.
pub(super) const END_LEASES: &str = "WITH gone AS (
        DELETE FROM adjutant_worker_session AS known WHERE NOT EXISTS (
            SELECT FROM pg_stat_get_activity(known.pid) AS session
            WHERE session.backend_start = known.started OR session.backend_start IS NULL)
        RETURNING worker, started >= pg_postmaster_start_time() AS is_known
    ), dead AS (
        UPDATE adjutant_worker SET seen_until = adjutant_moment_1(0) WHERE id IN (SELECT worker FROM gone WHERE is_known)
    )
    UPDATE adjutant_conversation SET lease_until = adjutant_moment_1(0)
    WHERE unsettled = 1 AND lease_by IN (SELECT worker FROM gone WHERE is_known)";

/// Number of rounds in which two connections are asked for their session.
const SESSION_CHECKS: usize = 4;

/// A session, as the server distinguishes it from all others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerSession {
    pid: i32,
    started: String,
}

/// The workers of this process, and the session on which it listens.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    listener: Option<ServerSession>,
    /// The session that is recorded on the server for each worker.
    workers: BTreeMap<String, Option<ServerSession>>,
}

impl Sessions {
    /// Registers a worker. Returns the session to record on the server, if it is not recorded yet.
    fn record_worker(&self, worker: &str) -> Option<ServerSession> {
        let mut state = lock(&self.0);
        let listener = state.listener.clone();
        match state.workers.get_mut(worker) {
            Some(recorded) if *recorded == listener => return None,
            Some(recorded) => recorded.clone_from(&listener),
            None => drop(state.workers.insert(worker.to_owned(), listener.clone())),
        }
        listener
    }

    fn workers(&self) -> Vec<String> {
        lock(&self.0).workers.keys().cloned().collect()
    }
}

/// Returns the server session of a pool's only connection. `None` behind a pooler that gives every
/// transaction another session: there `LISTEN` would stay with a session of the pooler, whose next
/// client would get notifications that it has not asked for, which it takes for a broken
/// connection.
pub(super) async fn session_of(
    pool: &PgPool,
    options: &PgConnectOptions,
) -> Result<Option<ServerSession>, sqlx::Error> {
    let mut one = pool.acquire().await?;
    let mut other = options.connect().await?;
    let mut sessions = [None; 2];
    // A pooler could give each connection its own session by chance; it would have to do so in
    // every round, in either order.
    for turn in [0, 1, 1, 0].repeat(SESSION_CHECKS) {
        let connection = if turn == 0 { &mut *one } else { &mut other };
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
            .persistent(false)
            .fetch_one(connection)
            .await?;
        if *sessions[turn].get_or_insert(pid) != pid || sessions[1 - turn] == Some(pid) {
            return Ok(None);
        }
    }
    other.close().await?;
    let started = "SELECT pg_backend_pid(), CAST(backend_start AS TEXT) FROM pg_stat_get_activity(pg_backend_pid())";
    let row = sqlx::query(started)
        .persistent(false)
        .fetch_one(&mut *one)
        .await?;
    Ok(Some(ServerSession {
        pid: row.try_get(0)?,
        started: row.try_get(1)?,
    }))
}

/// Records the session on which this process listens from now on, `None` if it does not.
pub(super) async fn note_session(
    sessions: &Arc<Sessions>,
    pool: &Arc<Pool>,
    session: Option<ServerSession>,
) {
    let before = std::mem::replace(&mut lock(&sessions.0).listener, session);
    if let Some(ServerSession { pid, started }) = before {
        // The session has ended although this process has not, so its end must not count as the
        // workers' death.
        let removal = fill(REMOVE, values![i64::from(pid), &started]);
        if let Err(error) = execute(pool, removal).await {
            debug!(%error, "the record of an ended session was not removed; other processes may take this one for dead");
        }
    }
    // The workers are known by the new session from now on.
    for worker in sessions.workers() {
        note_worker(sessions, pool, &worker);
    }
}

/// Records a worker's session on the server, in the background. Until then the worker's death is
/// noticed only by the end of its lease.
pub(super) fn note_worker(sessions: &Arc<Sessions>, pool: &Arc<Pool>, worker: &str) {
    let Some(ServerSession { pid, started }) = sessions.record_worker(worker) else {
        return;
    };
    let statement = fill(RECORD, values![worker, i64::from(pid), &started]);
    let (pool, sessions, worker) = (pool.clone(), sessions.clone(), worker.to_owned());
    tokio::spawn(async move {
        if execute(&pool, statement).await.is_err() {
            // Recorded again at the next lease.
            lock(&sessions.0).workers.insert(worker, None);
        }
    });
}

async fn execute(pool: &Arc<Pool>, statement: String) -> Result<(), sqlx::Error> {
    let mut session = pool.connect(pool.acquire().await?).await?;
    let result = session.execute(statement).await;
    session.release_after(result).map(drop)
}

//! The sessions by which workers are known to live: one ends with its process, however that ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::literal::fill;
use super::pool::Pool;
use crate::sql::values;

/// Says by which session a worker hears.
const NOTE: &str =
    "INSERT INTO adjutant_worker_session (worker, pid, started) VALUES ($1, $2, CAST($3 AS TIMESTAMPTZ))
    ON CONFLICT (worker) DO UPDATE SET pid = excluded.pid, started = excluded.started";

/// Takes back that it does.
const FORGET: &str =
    "DELETE FROM adjutant_worker_session WHERE pid = $1 AND started = CAST($2 AS TIMESTAMPTZ)";

/// Ends the claims of workers whose sessions have ended, as those of a process do with it. After a
/// restart of the server all have, and nothing is known of any; nor is of a session that may not be
/// looked at.
pub(super) const END_CLAIMS: &str = "WITH gone AS (
        DELETE FROM adjutant_worker_session AS known WHERE NOT EXISTS (
            SELECT FROM pg_stat_get_activity(known.pid) AS session
            WHERE session.backend_start = known.started OR session.backend_start IS NULL)
        RETURNING worker, started >= pg_postmaster_start_time() AS is_known
    ), dead AS (
        UPDATE adjutant_worker SET seen_until = adjutant_moment_1(0) WHERE id IN (SELECT worker FROM gone WHERE is_known)
    )
    UPDATE adjutant_conversation SET lease_until = adjutant_moment_1(0)
    WHERE unsettled = 1 AND lease_by IN (SELECT worker FROM gone WHERE is_known)";

/// Times that each of two connections is asked twice which session it has.
const SESSION_LOOKS: usize = 4;

/// A session, as the server tells it from every other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerSession {
    pid: i32,
    started: String,
}

/// The workers of this process, and the session by which it hears.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    hears_by: Option<ServerSession>,
    /// The session that the server was told for each.
    workers: BTreeMap<String, Option<ServerSession>>,
}

impl Sessions {
    /// Takes in a worker. Returns the session that the server has to be told.
    fn works(&self, worker: &str) -> Option<ServerSession> {
        let mut state = self.state();
        let hears_by = state.hears_by.clone();
        match state.workers.get_mut(worker) {
            Some(told) if *told == hears_by => return None,
            Some(told) => told.clone_from(&hears_by),
            None => drop(state.workers.insert(worker.to_owned(), hears_by.clone())),
        }
        hears_by
    }

    fn workers(&self) -> Vec<String> {
        self.state().workers.keys().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half done while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads in which session of the server the connection of a pool of one is. `None`: behind a pooler
/// that gives every transaction another session. There, `LISTEN` would stay with a session of the
/// pooler, which would tell it to whoever gets that session next, and a client that has not asked
/// for it takes that for a broken connection.
pub(super) async fn session_of(
    pool: &PgPool,
    options: &PgConnectOptions,
) -> Result<Option<ServerSession>, sqlx::Error> {
    let mut one = pool.acquire().await?;
    let mut other = options.connect().await?;
    let mut sessions = [None; 2];
    // A pooler that happens to give both their own session would have to do so every time, whoever
    // comes first.
    for turn in [0, 1, 1, 0].repeat(SESSION_LOOKS) {
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

/// Has the server know by which session this process hears from now on; `None`: by none.
pub(super) async fn note_session(
    sessions: &Arc<Sessions>,
    pool: &Arc<Pool>,
    session: Option<ServerSession>,
) {
    let before = std::mem::replace(&mut sessions.state().hears_by, session);
    if let Some(ServerSession { pid, started }) = before {
        // It has ended, and this process has not.
        let _ = tell(pool, fill(FORGET, values![i64::from(pid), &started])).await;
    }
    for worker in sessions.workers() {
        note_worker(sessions, pool, &worker);
    }
}

/// Has the server know by which session a worker of this process hears, in the background. Nothing
/// waits for it: until then the worker is one without.
pub(super) fn note_worker(sessions: &Arc<Sessions>, pool: &Arc<Pool>, worker: &str) {
    let Some(ServerSession { pid, started }) = sessions.works(worker) else {
        return;
    };
    let statement = fill(NOTE, values![worker, i64::from(pid), &started]);
    let (pool, sessions, worker) = (pool.clone(), sessions.clone(), worker.to_owned());
    tokio::spawn(async move {
        if tell(&pool, statement).await.is_err() {
            // The next time it is told again.
            sessions.state().workers.insert(worker, None);
        }
    });
}

async fn tell(pool: &Arc<Pool>, statement: String) -> Result<(), sqlx::Error> {
    let mut session = pool.open(pool.turn().await?).await?;
    let told = session.tell(statement).await;
    session.ended(told).map(drop)
}

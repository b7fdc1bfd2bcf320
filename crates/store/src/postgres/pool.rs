//! Connections to the server, and whoever uses one.
//!
//! The driver's pool asks the server whether a connection is alive before each use and after it:
//! two round trips for each transaction. This one asks when a connection was idle for a while.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection, PgDatabaseError, PgRow, PgSeverity};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::maintenance::Load;

/// How long a transaction waits for a connection: while the server restarts, or while all of them
/// are busy.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Time without use after which a connection is asked whether it is alive before it is used.
const TRUSTED: Duration = Duration::from_secs(1);

/// Time without use after which a connection is closed when another one is given back.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// Age at which a connection is closed when it is given back: what a session gathers on the server
/// goes with it.
const AGE_MAX: Duration = Duration::from_secs(1800);

/// Pause before the second attempt to connect to a server that does not listen; it doubles.
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Pool {
    options: PgConnectOptions,
    /// Those that nobody uses. The last was used last.
    idle: Mutex<Vec<Idle>>,
    /// One permit for each connection.
    turns: Arc<Semaphore>,
    connections_max: u32,
    /// Those who wait for a permit.
    waiting: AtomicU32,
}

#[derive(Debug)]
struct Idle {
    connection: PgConnection,
    made_at: Instant,
    since: Instant,
}

impl Pool {
    pub(super) fn new(options: PgConnectOptions, connections_max: u32) -> Arc<Self> {
        let turns = Arc::new(Semaphore::new(
            usize::try_from(connections_max).unwrap_or(1),
        ));
        Arc::new(Self {
            options,
            idle: Mutex::default(),
            turns,
            connections_max,
            waiting: AtomicU32::new(0),
        })
    }

    /// Waits until the caller may use a connection. Whoever leaves before has taken nothing.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit, sqlx::Error> {
        if let Ok(turn) = self.turns.clone().try_acquire_owned() {
            return Ok(turn);
        }
        let _waiting = Waiting::for_one(&self.waiting);
        turn(&self.turns).await
    }

    /// Returns how busy it is.
    pub(super) fn load(&self) -> Load {
        let free = u32::try_from(self.turns.available_permits()).unwrap_or(u32::MAX);
        Load {
            connections_max: Some(self.connections_max),
            connections_busy: self.connections_max.saturating_sub(free),
            connections_idle: u32::try_from(self.idle().len()).unwrap_or(u32::MAX),
            waiting: self.waiting.load(Ordering::Relaxed),
        }
    }

    /// Returns a connection that lives, as far as is known.
    pub(super) async fn open(
        self: &Arc<Self>,
        turn: OwnedSemaphorePermit,
    ) -> Result<Session, sqlx::Error> {
        loop {
            let Some(Idle {
                mut connection,
                made_at,
                since,
            }) = self.idle().pop()
            else {
                break;
            };
            if since.elapsed() < TRUSTED || connection.ping().await.is_ok() {
                return Ok(self.session(connection, made_at, turn));
            }
        }
        let connected = timeout(PATIENCE, self.connect())
            .await
            .map_err(|_| sqlx::Error::PoolTimedOut)?;
        Ok(self.session(connected?, Instant::now(), turn))
    }

    fn session(
        self: &Arc<Self>,
        connection: PgConnection,
        made_at: Instant,
        turn: OwnedSemaphorePermit,
    ) -> Session {
        Session {
            connection: Some(connection),
            made_at,
            is_over: true,
            pool: self.clone(),
            _turn: turn,
        }
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut pause = RETRY_FIRST;
        loop {
            match self.options.connect().await {
                Err(error) if is_starting(&error) => {
                    if pause == RETRY_FIRST {
                        warn!(%error, "the database does not take connections; it is tried again for a while");
                    }
                    sleep(pause).await;
                }
                connected => return connected,
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// Waits for what is running and closes all connections.
    pub(super) async fn close(&self) {
        // Without them nobody uses a connection. An error: it was closed before.
        let all = self.turns.acquire_many(self.connections_max).await;
        self.turns.close();
        drop(all);
        let idle = std::mem::take(&mut *self.idle());
        for Idle { connection, .. } in idle {
            // The server may be gone, which is an end as well.
            let _ = connection.close().await;
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        // Nothing is half done while it is locked.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who waits, until it is dropped.
struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    fn for_one(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for a permit, as long as for a connection.
pub(super) async fn turn(turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, sqlx::Error> {
    match timeout(PATIENCE, turns.clone().acquire_owned()).await {
        Ok(Ok(turn)) => Ok(turn),
        Ok(Err(_)) => Err(sqlx::Error::PoolClosed),
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}

/// Nobody listens yet, the server starts up, or it has no connection left for now.
fn is_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        sqlx::Error::Database(error) => matches!(error.code().as_deref(), Some("53300" | "57P03")),
        _ => false,
    }
}

/// A connection in use. It goes back to the pool only when the server has said that no transaction
/// is open; else it is closed, and the server rolls back. The driver's own transactions do not keep
/// this promise: it takes a connection to be outside of a transaction until the answer to `BEGIN`
/// has been read.
pub(super) struct Session {
    /// Taken when it is dropped.
    connection: Option<PgConnection>,
    made_at: Instant,
    is_over: bool,
    pool: Arc<Pool>,
    _turn: OwnedSemaphorePermit,
}

impl Session {
    /// Carries out statements, whose values were written into them by [`super::literal`]; returns
    /// all their rows. A transaction may be open afterwards.
    pub(super) async fn ask(&mut self, statements: String) -> Result<Vec<PgRow>, sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(statements))
            .fetch_all(self.busy()?)
            .await
    }

    /// Carries out statements as [`Session::ask`] does; returns how many rows they changed.
    pub(super) async fn tell(&mut self, statements: String) -> Result<u64, sqlx::Error> {
        Ok(sqlx::raw_sql(AssertSqlSafe(statements))
            .execute(self.busy()?)
            .await?
            .rows_affected())
    }

    /// Notes how the last statements ended that leave no transaction open: after them the
    /// connection is free, also if the server has refused them.
    pub(super) fn ended<T>(&mut self, ended: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        self.is_over = match &ended {
            Ok(_) => true,
            Err(sqlx::Error::Database(error)) => error
                .try_downcast_ref::<PgDatabaseError>()
                .is_some_and(|error| {
                    !matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic)
                }),
            Err(_) => false,
        };
        ended
    }

    fn busy(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        self.is_over = false;
        self.connection.as_mut().ok_or(sqlx::Error::PoolClosed)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let is_kept =
            self.is_over && !self.pool.turns.is_closed() && self.made_at.elapsed() < AGE_MAX;
        if let Some(connection) = self.connection.take().filter(|_| is_kept) {
            let mut idle = self.pool.idle();
            idle.retain(|idle| idle.since.elapsed() < IDLE_MAX);
            idle.push(Idle {
                connection,
                made_at: self.made_at,
                since: Instant::now(),
            });
        }
    }
}

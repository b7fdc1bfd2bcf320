//! A pool of connections to the server.
//!
//! The driver's pool pings a connection before each use and after it, which costs two round trips
//! for each transaction. This one tries only a connection that was idle for a while, and asks it for
//! what a new one is asked for, too: the server's start.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection, PgDatabaseError, PgRow, PgSeverity};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::history::History;
use crate::lock::lock;
use crate::maintenance::Load;

/// Time that a transaction waits for a connection while the server restarts or all connections are
/// busy.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Idle time after which a connection is tried before it is used.
const PING_AFTER: Duration = Duration::from_secs(1);

/// Idle time after which a connection is closed, when another one is returned.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// Age at which a connection is closed when it is returned: memory that a session accumulates on
/// the server is freed with it.
const AGE_MAX: Duration = Duration::from_secs(1800);

/// Time after which an answer of the server is logged as slow.
const SLOW: Duration = Duration::from_secs(1);

/// Pause before the second attempt to connect to a server that does not listen; it doubles.
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Pool {
    options: PgConnectOptions,
    pub(super) history: History,
    /// Idle connections, the most recently used last.
    idle: Mutex<Vec<Idle>>,
    /// One permit for each connection.
    permits: Arc<Semaphore>,
    connections_max: u32,
    /// Callers that wait for a permit.
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
        let permits = Arc::new(Semaphore::new(
            usize::try_from(connections_max).unwrap_or(1),
        ));
        Arc::new(Self {
            options,
            history: History::default(),
            idle: Mutex::default(),
            permits,
            connections_max,
            waiting: AtomicU32::new(0),
        })
    }

    /// Waits for permission to use a connection. A caller that is dropped meanwhile has taken
    /// nothing.
    pub(super) async fn acquire(&self) -> Result<OwnedSemaphorePermit, sqlx::Error> {
        if let Ok(permit) = self.permits.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let _waiting = Waiting::for_one(&self.waiting);
        acquire(&self.permits).await
    }

    /// Returns the load on the pool.
    pub(super) fn load(&self) -> Load {
        let free = u32::try_from(self.permits.available_permits()).unwrap_or(u32::MAX);
        Load {
            connections_max: Some(self.connections_max),
            connections_busy: self.connections_max.saturating_sub(free),
            connections_idle: u32::try_from(lock(&self.idle).len()).unwrap_or(u32::MAX),
            waiting: self.waiting.load(Ordering::Relaxed),
        }
    }

    /// Returns an idle connection, or a new one.
    pub(super) async fn connect(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Session, sqlx::Error> {
        loop {
            // Not `while let`, which would hold the lock during the trial.
            let Some(Idle {
                mut connection,
                made_at,
                since,
            }) = lock(&self.idle).pop()
            else {
                break;
            };
            // A connection that the server has closed meanwhile fails, and the next one is tried. A
            // pooler may have another server behind it by now.
            if since.elapsed() < PING_AFTER || self.history.compare(&mut connection).await.is_ok() {
                return Ok(self.session(connection, made_at, permit));
            }
        }
        let connected = timeout(ACQUIRE_TIMEOUT, self.connect_with_retry())
            .await
            .map_err(|_| sqlx::Error::PoolTimedOut)?;
        let mut connected = connected?;
        self.history.compare(&mut connected).await?;
        Ok(self.session(connected, Instant::now(), permit))
    }

    fn session(
        self: &Arc<Self>,
        connection: PgConnection,
        made_at: Instant,
        permit: OwnedSemaphorePermit,
    ) -> Session {
        Session {
            connection: Some(connection),
            made_at,
            is_idle: true,
            pool: self.clone(),
            _permit: permit,
        }
    }

    async fn connect_with_retry(&self) -> Result<PgConnection, sqlx::Error> {
        let mut pause = RETRY_FIRST;
        loop {
            match self.options.connect().await {
                Err(error) if is_starting(&error) => {
                    // Once, and not at every attempt.
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

    /// Waits for running transactions and closes all connections.
    pub(super) async fn close(&self) {
        // With all permits taken no connection is in use. An error means that the pool was closed
        // before.
        let all = self.permits.acquire_many(self.connections_max).await;
        self.permits.close();
        drop(all);
        let idle = std::mem::take(&mut *lock(&self.idle));
        for Idle { connection, .. } in idle {
            // The server may be gone, which closes the connection as well.
            let _ = connection.close().await;
        }
    }
}

/// Counts one waiting caller until it is dropped.
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

/// Waits for a permit, at most [`ACQUIRE_TIMEOUT`].
pub(super) async fn acquire(permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, sqlx::Error> {
    match timeout(ACQUIRE_TIMEOUT, permits.clone().acquire_owned()).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) => Err(sqlx::Error::PoolClosed),
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}

/// Returns true if the server does not listen yet, is starting up, or has no free connection for
/// now.
fn is_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        sqlx::Error::Database(error) => matches!(error.code().as_deref(), Some("53300" | "57P03")),
        _ => false,
    }
}

/// A connection in use. It returns to the pool only if the server has confirmed that no transaction
/// is open; otherwise it is closed, and the server rolls back. The driver's own transactions do not
/// guarantee this: they consider a connection idle until the answer to `BEGIN` has been read.
pub(super) struct Session {
    /// Taken by `drop`.
    connection: Option<PgConnection>,
    made_at: Instant,
    is_idle: bool,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
}

impl Session {
    /// Runs statements that contain their values ([`super::literal`]) and returns all rows. A
    /// transaction may be open afterwards.
    pub(super) async fn fetch_all(
        &mut self,
        statements: String,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let started = Instant::now();
        let rows = sqlx::raw_sql(AssertSqlSafe(statements))
            .fetch_all(self.busy()?)
            .await;
        log_if_slow(started);
        rows
    }

    /// Runs statements as [`Session::fetch_all`] does, and returns the number of rows that they
    /// changed.
    pub(super) async fn execute(&mut self, statements: String) -> Result<u64, sqlx::Error> {
        let started = Instant::now();
        let done = sqlx::raw_sql(AssertSqlSafe(statements))
            .execute(self.busy()?)
            .await?;
        log_if_slow(started);
        Ok(done.rows_affected())
    }

    /// Marks the connection as idle, if the last statements leave no transaction open: after
    /// success, and after an error that the server reported without ending the session.
    pub(super) fn release_after<T>(
        &mut self,
        ended: Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        self.is_idle = match &ended {
            Ok(_) => true,
            Err(sqlx::Error::Database(error)) => error
                .try_downcast_ref::<PgDatabaseError>()
                .is_some_and(|error| {
                    // After these the server has ended the session.
                    !matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic)
                }),
            Err(_) => false,
        };
        ended
    }

    fn busy(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        self.is_idle = false;
        self.connection.as_mut().ok_or(sqlx::Error::PoolClosed)
    }
}

/// Logs a message to the server that took long. Its statements contain values, so they are not
/// logged.
fn log_if_slow(started: Instant) {
    if started.elapsed() >= SLOW {
        let ms = started.elapsed().as_millis();
        info!(ms, "the database was slow to answer");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let is_kept =
            self.is_idle && !self.pool.permits.is_closed() && self.made_at.elapsed() < AGE_MAX;
        if let Some(connection) = self.connection.take().filter(|_| is_kept) {
            let mut idle = lock(&self.pool.idle);
            // Dropping a connection closes it. The pool has no task of its own that would do this.
            idle.retain(|idle| idle.since.elapsed() < IDLE_MAX);
            idle.push(Idle {
                connection,
                made_at: self.made_at,
                since: Instant::now(),
            });
        }
    }
}

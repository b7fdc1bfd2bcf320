//! A store in a PostgreSQL database, which any number of processes share. PostgreSQL 13 or newer.
//!
//! Concurrent writers are excluded by the journal itself: rows that are about to change are locked
//! when they are read, and a second writer violates the primary key. Leases are timed by the
//! server's clock, so clocks of the machines do not matter.

mod address;
mod call_batch;
mod error;
mod history;
mod journal;
mod literal;
mod notify;
mod open;
mod peers;
mod pool;
mod relay;
mod result;
mod transaction;
mod worker_session;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use adjutant_core::port::{Relay, StoreError};

use crate::change_feed::ChangeFeed;
use crate::maintenance::{Load, Replication};
use crate::sql::open_turn_cache::OpenTurnCache;
use crate::sql::{About, Backend, Failure, Row, SqlStore, Value, Work, count};
use address::Address;
use call_batch::CallBatcher;
use literal::fill;
use peers::{PeerAware, Peers};
use pool::{Pool, Session};
use relay::NotifyRelay;
use result::to_rows;
use transaction::Transaction;
use worker_session::{ServerSession, Sessions};

/// Default number of connections of one process.
pub const POOL_MAX: u32 = 10;

/// Tasks, conversations, journal and logs in one PostgreSQL database. Clones share the database.
pub type Store = SqlStore<PostgresDatabase>;

/// One PostgreSQL database and the connections to it.
#[derive(Debug)]
pub struct PostgresDatabase {
    place: Address,
    pool: Arc<Pool>,
    calls: Arc<CallBatcher>,
    open: OpenTurnCache,
    change_feed: ChangeFeed,
    peers: Arc<Peers>,
    sessions: Arc<Sessions>,
}

impl Store {
    /// Connects to `postgres://USER:PASSWORD@HOST:PORT/DATABASE`; what is left out is taken from
    /// the `PG…` variables, as by PostgreSQL's own programs. Opens at most `connections_max`
    /// connections, [`POOL_MAX`] if 0. An older schema is migrated; of several processes that start
    /// at once, one migrates and the others wait.
    ///
    /// # Errors
    /// - [`StoreError::Unusable`]: the address is invalid, the server refuses the user, the
    ///   database does not exist, or it has tables of another program.
    /// - [`StoreError::Unavailable`]: the server cannot be reached.
    /// - [`StoreError::Unreadable`]: the schema is of a newer version.
    ///
    /// # Examples
    /// ```no_run
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// use adjutant_store::postgres::Store;
    ///
    /// let store = Store::connect("postgres://adjutant@localhost/adjutant", 0).await?;
    /// store.close().await;
    /// # Ok::<(), adjutant_core::port::StoreError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn connect(url: &str, connections_max: u32) -> Result<Self, StoreError> {
        Self::connect_and_listen(url, url, connections_max).await
    }

    /// Connects as [`Store::connect`] does, but receives notifications over a connection to
    /// `listen_url`. It leads to the same database past a pooler that `url` leads through: a pooler
    /// in transaction mode does not forward notifications. Where none arrive, this process polls
    /// once a second while a caller waits for a change.
    ///
    /// # Errors
    /// As [`Store::connect`]. `listen_url` is connected to only when a caller waits for a change;
    /// here it is an error only if it is invalid.
    pub async fn connect_and_listen(
        url: &str,
        listen_url: &str,
        connections_max: u32,
    ) -> Result<Self, StoreError> {
        let connections_max = if connections_max == 0 {
            POOL_MAX
        } else {
            connections_max
        };
        let ((place, options), (_, listen_options)) =
            (open::options(url)?, open::options(listen_url)?);
        let peers = Arc::new(Peers::new(options.clone(), listen_options));
        match open::pool(options, connections_max).await {
            Ok(pool) => Ok(Self::new(PostgresDatabase {
                place,
                pool,
                calls: Arc::default(),
                open: OpenTurnCache::default(),
                change_feed: ChangeFeed::default(),
                peers,
                sessions: Arc::default(),
            })),
            Err(failure) => Err(error::explain(failure, &place)),
        }
    }

    /// Waits for running calls and closes the connections, for every clone. Nothing is lost if this
    /// is not called.
    pub async fn close(&self) {
        self.backend.pool.close().await;
        self.backend.peers.close().await;
    }
}

impl PostgresDatabase {
    /// Runs work inside a transaction, in its own task, so that a dropped caller leaves nothing
    /// half done. A caller that is dropped while it waits for a connection cancels the work.
    async fn in_transaction<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        begin: &'static str,
        data: D,
        work: Work<Transaction, D, T>,
    ) -> Result<T, Failure> {
        self.in_session(move |session| async move {
            let mut rows = Transaction::new(session, begin);
            let done = work(&mut rows, &data).await;
            rows.end(done.is_ok()).await?;
            done
        })
        .await
    }

    /// Uses a connection in its own task.
    async fn in_session<T, F>(
        &self,
        with: impl FnOnce(Session) -> F + Send + 'static,
    ) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        // Waited for in the caller's future and not in the task: clients that leave faster than
        // they are served would fill the queue for all others.
        let permit = self.pool.acquire().await?;
        let pool = self.pool.clone();
        let task = tokio::spawn(async move { with(pool.connect(permit).await?).await });
        match task.await {
            Ok(done) => done,
            Err(error) if error.is_panic() => Err(Failure::panicked()),
            // The task was cancelled: the runtime is shutting down.
            Err(_) => {
                let message = "this process is about to end".to_owned();
                Err(StoreError::unavailable(message).into())
            }
        }
    }
}

impl PeerAware for PostgresDatabase {
    fn peers(&self) -> &Arc<Peers> {
        &self.peers
    }

    async fn set_listener_session(&self, session: Option<ServerSession>) {
        worker_session::note_session(&self.sessions, &self.pool, session).await;
    }
}

impl Backend for PostgresDatabase {
    type Connection = Transaction;

    fn current_load(&self) -> Load {
        let pool = self.pool.load();
        Load {
            waiting: pool.waiting.saturating_add(self.calls.waiting()),
            ..pool
        }
    }

    async fn write<D, T>(&self, data: D, work: Work<Transaction, D, T>) -> Result<T, Failure>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.in_transaction(transaction::BEGIN, data, work).await
    }

    async fn read<D, T>(&self, data: D, work: Work<Transaction, D, T>) -> Result<T, Failure>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.in_transaction(transaction::BEGIN_READING, data, work)
            .await
    }

    /// A single statement is a transaction by itself, without `BEGIN` and `COMMIT`.
    async fn execute(&self, statement: &'static str, values: &[Value<'_>]) -> Result<u64, Failure> {
        let statement = fill(statement, values);
        self.in_session(async move |mut session| {
            let result = session.execute(statement).await;
            Ok(session.release_after(result)?)
        })
        .await
    }

    async fn fetch_all(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let statement = fill(statement, values);
        self.in_session(async move |mut session| {
            let result = session.fetch_all(statement).await;
            to_rows(&session.release_after(result)?)
        })
        .await
    }

    fn change_feed(&self) -> &ChangeFeed {
        &self.change_feed
    }

    fn watch(self: &Arc<Self>) {
        if self.change_feed.start_watching() {
            tokio::spawn(peers::watch(Arc::downgrade(self)));
        }
    }

    fn relay(self: &Arc<Self>) -> Arc<dyn Relay> {
        Arc::new(NotifyRelay(self.clone()))
    }

    fn note_worker(&self, worker: &str) {
        worker_session::note_worker(&self.sessions, &self.pool, worker);
    }

    async fn end_leases_of_dead_workers(&self) -> Result<bool, Failure> {
        Ok(self.execute(worker_session::END_LEASES, &[]).await? > 0)
    }

    async fn replication(&self) -> Result<Option<Replication>, Failure> {
        // Other users' rows of the view are there for everybody, without what is in them.
        let found = self
            .fetch_optional(
                "SELECT CAST(CASE current_setting('fsync') WHEN 'on' THEN 1 ELSE 0 END AS BIGINT) AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
                   current_setting('synchronous_standby_names') AS synchronous_standbys,
                   (SELECT count(*) FROM pg_stat_replication) AS receivers",
                &[],
            )
            .await?;
        let Some(mut found) = found else {
            return Ok(None);
        };
        Ok(Some(Replication {
            fsync: found.get::<i64>("fsync")? == 1,
            synchronous_commit: found.get("synchronous_commit")?,
            synchronous_standbys: found.get("synchronous_standbys")?,
            receivers: count(found.get("receivers")?),
        }))
    }

    async fn receives_notifications(&self) -> bool {
        self.peers.listen().await.is_some()
    }

    async fn about(&self) -> Result<About, Failure> {
        let statement = "SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS bytes";
        let found = self.fetch_optional(statement, &[]).await?;
        let mut found = found.ok_or(sqlx::Error::RowNotFound)?;
        let version: String = found.get("version")?;
        Ok(About {
            place: self.place.to_string(),
            product: format!("PostgreSQL {version}"),
            journal_mode: None,
            bytes: found.get("bytes")?,
        })
    }

    /// Returns nothing: the server checks constraints and checksums by itself.
    async fn verify(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    async fn backup(&self, to: &Path) -> Result<(), Failure> {
        let Address {
            database,
            host,
            port,
        } = &self.place;
        Err(StoreError::unusable(format!(
                "PostgreSQL's own program makes its backups: `pg_dump --format=custom --host={host} --port={port} \
                 --file={} {database}`, and `pg_restore --dbname={database} FILE` brings them back",
                to.display()
            ))
        .into())
    }

    fn explain(&self, failure: Failure) -> StoreError {
        error::explain(failure, &self.place)
    }
}

//! A PostgreSQL database that any number of processes share.
//!
//! The journal alone excludes: rows that are about to change are locked when they are read, and a
//! second writer meets the primary key. Times of claims are the server's, so that the clocks of the
//! machines do not matter. PostgreSQL 13 or newer.

mod calls;
mod columns;
mod error;
mod journal;
mod literal;
mod notify;
mod open;
mod others;
mod place;
mod pool;
mod relay;
mod sessions;
mod transaction;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use adjutant_core::port::{Relay, StoreError};

use crate::maintenance::Load;
use crate::news::News;
use crate::sql::open_turns::OpenTurns;
use crate::sql::{About, Backend, Columns, Failure, SqlStore, StoreOptions, Value, Work, count};
use calls::Calls;
use columns::all_columns;
use literal::fill;
use others::{Others, Watched};
use place::Place;
use pool::{Pool, Session};
use relay::Wire;
use sessions::{ServerSession, Sessions};
use transaction::Transaction;

/// Connections of one process, if nothing else is said.
pub const POOL_MAX: u32 = 10;

/// Tasks, conversations, journal and logs in one PostgreSQL database. A clone is the same store.
pub type Store = SqlStore<PostgresDatabase>;

/// One PostgreSQL database and the connections to it.
#[derive(Debug)]
pub struct PostgresDatabase {
    place: Place,
    pool: Arc<Pool>,
    calls: Arc<Calls>,
    open: OpenTurns,
    news: News,
    others: Arc<Others>,
    sessions: Arc<Sessions>,
}

impl Store {
    /// Connects to `postgres://USER:PASSWORD@HOST:PORT/DATABASE` (what is left out comes from the
    /// `PG…` variables, as with PostgreSQL's own programs) with at most `connections_max`
    /// connections, [`POOL_MAX`] if 0. A schema of an older version is brought up to date; of
    /// several processes that start at once, one does it and the others wait.
    ///
    /// # Errors
    /// [`StoreError::Unusable`]: the address is none, the server refuses the user, there is no such database, or it holds
    /// tables of another program. [`StoreError::Unavailable`]: the server cannot be reached.
    /// [`StoreError::Unreadable`]: the schema is of a newer version.
    pub async fn connect(url: &str, connections_max: u32) -> Result<Self, StoreError> {
        Self::connect_and_listen(url, url, connections_max).await
    }

    /// Connects as [`Store::connect`] does, and hears what other processes tell over a connection
    /// to `listen_url`: the same database, where `url` leads through a pooler that gives every
    /// transaction another connection. Such a pooler hands no notifications on; then this process
    /// looks once a second while somebody waits.
    ///
    /// # Errors
    /// As [`Store::connect`]. Nobody connects to `listen_url` before somebody waits; what is wrong
    /// with it is an error now only if it is no address.
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
        let ((place, options), (_, hearing)) = (open::options(url)?, open::options(listen_url)?);
        let others = Arc::new(Others::new(options.clone(), hearing));
        match open::pool(options, connections_max).await {
            Ok(pool) => {
                let (calls, open, news) = (Arc::default(), OpenTurns::default(), News::default());
                let sessions = Arc::default();
                let database = PostgresDatabase {
                    place,
                    pool,
                    calls,
                    open,
                    news,
                    others,
                    sessions,
                };
                Ok(Self(Arc::new(database), StoreOptions::default()))
            }
            Err(failure) => Err(error::at(failure, &place)),
        }
    }

    /// Waits for what is running and closes the connections, for every clone. Nothing is lost
    /// without it.
    pub async fn close(&self) {
        self.0.pool.close().await;
        self.0.others.close().await;
    }
}

impl PostgresDatabase {
    /// Does work inside a transaction, in a task of its own: a caller that goes away leaves nothing
    /// half done. It waits for its turn before, so that a caller who goes away while it waits
    /// leaves nothing to do.
    async fn in_transaction<D, T>(
        &self,
        begin: &'static str,
        data: D,
        work: Work<Transaction, D, T>,
    ) -> Result<T, Failure>
    where
        D: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.in_session(move |session| async move {
            let mut rows = Transaction::new(session, begin);
            let done = work(&mut rows, &data).await;
            rows.end(done.is_ok()).await?;
            done
        })
        .await
    }

    /// Uses a connection in a task of its own.
    async fn in_session<T, F>(
        &self,
        with: impl FnOnce(Session) -> F + Send + 'static,
    ) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let turn = self.pool.turn().await?;
        let pool = self.pool.clone();
        let task = tokio::spawn(async move { with(pool.open(turn).await?).await });
        match task.await {
            Ok(done) => done,
            Err(error) if error.is_panic() => Err(Failure::panicked()),
            Err(_) => {
                let message = "this process is about to end".to_owned();
                Err(StoreError::Unavailable { message }.into())
            }
        }
    }
}

impl Watched for PostgresDatabase {
    fn others(&self) -> &Arc<Others> {
        &self.others
    }

    async fn hears_by(&self, session: Option<ServerSession>) {
        sessions::note_session(&self.sessions, &self.pool, session).await;
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
        self.in_transaction(
            "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            data,
            work,
        )
        .await
    }

    /// One statement is a transaction of its own.
    async fn execute(&self, statement: &'static str, values: &[Value<'_>]) -> Result<u64, Failure> {
        let statement = fill(statement, values);
        self.in_session(async move |mut session| {
            let told = session.tell(statement).await;
            Ok(session.ended(told)?)
        })
        .await
    }

    async fn fetch(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Columns>, Failure> {
        let statement = fill(statement, values);
        self.in_session(async move |mut session| {
            let asked = session.ask(statement).await;
            all_columns(&session.ended(asked)?)
        })
        .await
    }

    async fn fetch_first(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Columns>, Failure> {
        Ok(self.fetch(statement, values).await?.into_iter().next())
    }

    fn news(&self) -> &News {
        &self.news
    }

    fn watch(self: &Arc<Self>) {
        if self.news.begin_to_watch() {
            tokio::spawn(others::watch(Arc::downgrade(self)));
        }
    }

    fn relay(self: &Arc<Self>) -> Arc<dyn Relay> {
        Arc::new(Wire(self.clone()))
    }

    fn note_worker(&self, worker: &str) {
        sessions::note_worker(&self.sessions, &self.pool, worker);
    }

    async fn end_claims_of_the_gone(&self) -> Result<bool, Failure> {
        Ok(self.execute(sessions::END_CLAIMS, &[]).await? > 0)
    }

    async fn hears_others(&self) -> bool {
        self.others.listen().await.is_some()
    }

    async fn about(&self) -> Result<About, Failure> {
        let statement =
            "SELECT current_setting('server_version'), pg_database_size(current_database())";
        let mut found = self.fetch(statement, &[]).await?.into_iter();
        let (version, bytes) = match found.next() {
            Some(mut columns) => (columns.text()?, columns.int()?),
            None => (String::new(), 0),
        };
        Ok(About {
            place: self.place.to_string(),
            product: format!("PostgreSQL {version}"),
            journal_mode: None,
            bytes: count(bytes),
        })
    }

    /// The server keeps its constraints and its checksums by itself.
    async fn verify(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    async fn backup(&self, to: &Path) -> Result<(), Failure> {
        let Place {
            database,
            host,
            port,
        } = &self.place;
        Err(StoreError::Unusable {
            message: format!(
                "PostgreSQL's own program makes its backups: `pg_dump --format=custom --host={host} --port={port} \
                 --file={} {database}`, and `pg_restore --dbname={database} FILE` brings them back",
                to.display()
            ),
        }
        .into())
    }

    fn explain(&self, failure: Failure) -> StoreError {
        error::at(failure, &self.place)
    }
}

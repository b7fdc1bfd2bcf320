//! The connections that only read.

use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::connection::SqliteConnection;
use super::open::FileOptions;
use super::writer::closed;
use crate::lock::lock;
use crate::sql::Failure;

/// Most connections of one store. They are opened on demand.
const READERS: u32 = 4;

#[derive(Debug)]
pub(super) struct Readers {
    options: FileOptions,
    idle: Arc<Mutex<Vec<SqliteConnection>>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(options: FileOptions) -> Self {
        let turns = usize::try_from(READERS).unwrap_or(1);
        Self {
            options,
            idle: Arc::default(),
            turns: Arc::new(Semaphore::new(turns)),
        }
    }

    /// Runs `visit` on a connection, on a thread where it may block. Once it has begun, it is
    /// finished even if the caller is dropped.
    pub(super) async fn visit<T: Send + 'static>(
        &self,
        visit: impl FnOnce(&mut SqliteConnection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        // Waited for here and not on the thread: clients that leave faster than they are served
        // would fill the queue for all others.
        let turn = self
            .turns
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| closed())?;
        let (options, idle) = (self.options.clone(), self.idle.clone());
        let task = spawn_blocking(move || {
            let _turn = turn;
            let kept = lock(&idle).pop();
            let mut connection = match kept {
                Some(connection) => connection,
                None => options.connect_reader()?,
            };
            let done = visit(&mut connection);
            // Also after an error: a read has ended its transaction by then.
            lock(&idle).push(connection);
            done
        });
        match task.await {
            Ok(done) => done,
            Err(error) if error.is_panic() => Err(Failure::panicked()),
            // The task was cancelled: the runtime is shutting down.
            Err(_) => Err(closed()),
        }
    }

    /// Waits for running calls and closes the connections.
    pub(super) async fn close(&self) {
        // An error: another clone of the store has closed it already, and there is nothing to wait
        // for.
        let all = self.turns.acquire_many(READERS).await;
        self.turns.close();
        drop(all);
        lock(&self.idle).clear();
    }
}

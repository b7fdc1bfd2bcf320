//! The connections that only read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::connection::Rows;
use super::open::How;
use super::writer::closed;
use crate::sql::Failure;

/// Connections of one store. They are opened when they are needed.
const READERS: u32 = 4;

#[derive(Debug)]
pub(super) struct Readers {
    how: How,
    idle: Arc<Mutex<Vec<Rows>>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(how: How) -> Self {
        let turns = usize::try_from(READERS).unwrap_or(1);
        Self {
            how,
            idle: Arc::default(),
            turns: Arc::new(Semaphore::new(turns)),
        }
    }

    /// Does something with a connection, on a thread where it may block. It ends even if the caller
    /// leaves meanwhile, unless it has not begun by then.
    pub(super) async fn visit<T: Send + 'static>(
        &self,
        visit: impl FnOnce(&mut Rows) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = self
            .turns
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| closed())?;
        let (how, idle) = (self.how.clone(), self.idle.clone());
        let task = spawn_blocking(move || {
            let _turn = turn;
            let kept = lock(&idle).pop();
            let mut rows = match kept {
                Some(rows) => rows,
                None => how.connect_reader()?,
            };
            let done = visit(&mut rows);
            lock(&idle).push(rows);
            done
        });
        match task.await {
            Ok(done) => done,
            Err(error) if error.is_panic() => Err(Failure::panicked()),
            Err(_) => Err(closed()),
        }
    }

    /// Waits for what is running, and closes the connections.
    pub(super) async fn close(&self) {
        // Closed already, by another clone of the store: then there is nothing to wait for.
        let all = self.turns.acquire_many(READERS).await;
        self.turns.close();
        drop(all);
        lock(&self.idle).clear();
    }
}

fn lock(idle: &Mutex<Vec<Rows>>) -> MutexGuard<'_, Vec<Rows>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

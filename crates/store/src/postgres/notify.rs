//! Notifications on their way to other processes.
//!
//! One is sent after the commit it tells of, over a connection of its own: inside a transaction it
//! would take a lock of the whole server until that is on the disk (PostgreSQL's `async.c`,
//! `PreCommit_Notify`). Those that gather meanwhile go together.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::time::sleep;

use super::literal::fill;
use crate::sql::Value;

/// Bytes of a notification: the server takes fewer than 8000.
pub(super) const BYTES_MAX: usize = 7900;

/// Pause after a message: at most 20 a second.
const GATHERS: Duration = Duration::from_millis(50);

/// Notifications in one message, at most.
const BATCH: usize = 64;

/// Bytes of words that wait to be sent. Changes are few, and are not bounded.
const WORDS_BYTES_MAX: usize = 256 * 1024;

/// Sends what waits, changes before words.
#[derive(Debug)]
pub(super) struct Notifier {
    options: PgConnectOptions,
    waiting: Mutex<Waiting>,
    connection: tokio::sync::Mutex<Option<PgConnection>>,
}

#[derive(Debug, Default)]
struct Waiting {
    changes: VecDeque<Notification>,
    words: VecDeque<Notification>,
    words_bytes: usize,
    /// True while a task sends what waits.
    sends: bool,
}

#[derive(Debug, PartialEq)]
struct Notification {
    /// Letters, digits and underscores.
    channel: Arc<str>,
    payload: String,
}

impl Notifier {
    /// Returns one that connects when there is something to send.
    pub(super) fn new(options: PgConnectOptions) -> Self {
        Self {
            options,
            waiting: Mutex::default(),
            connection: tokio::sync::Mutex::default(),
        }
    }

    /// Sends a change soon, unless the same waits already. One that is too long is left out:
    /// whoever waits for it looks after a second.
    pub(super) fn tell(self: &Arc<Self>, channel: &Arc<str>, payload: String) {
        let notification = Notification {
            channel: channel.clone(),
            payload,
        };
        if notification.payload.len() > BYTES_MAX {
            return;
        }
        let mut waiting = self.waiting();
        if !waiting.changes.contains(&notification) {
            waiting.changes.push_back(notification);
        }
        self.begin(waiting);
    }

    /// Sends words soon, in order. Returns `false` if they are too long, or too many wait already.
    pub(super) fn say(self: &Arc<Self>, channel: Arc<str>, payload: String) -> bool {
        let mut waiting = self.waiting();
        if payload.len() > BYTES_MAX || waiting.words_bytes + payload.len() > WORDS_BYTES_MAX {
            return false;
        }
        waiting.words_bytes += payload.len();
        waiting.words.push_back(Notification { channel, payload });
        self.begin(waiting);
        true
    }

    fn begin(self: &Arc<Self>, mut waiting: MutexGuard<'_, Waiting>) {
        if !std::mem::replace(&mut waiting.sends, true) {
            tokio::spawn(self.clone().send());
        }
    }

    /// Sends until nothing waits. What cannot be sent is left out: whoever waits for it looks
    /// again.
    async fn send(self: Arc<Self>) {
        loop {
            let batch = self.waiting().batch();
            if batch.is_empty() {
                return;
            }
            let calls: Vec<String> = (1..)
                .zip(&batch)
                .map(|(number, notification)| {
                    format!("pg_notify('{}', ${number})", notification.channel)
                })
                .collect();
            let values: Vec<Value<'_>> = batch
                .iter()
                .map(|notification| Value::from(&notification.payload))
                .collect();
            let statement = fill(&format!("SELECT {}", calls.join(", ")), &values);
            let mut connection = self.connection.lock().await;
            // A connection that was lost since the last time is told by the first error.
            for _ in 0..2 {
                if connection.is_none() {
                    *connection = self.options.connect().await.ok();
                }
                let Some(open) = connection.as_mut() else {
                    break;
                };
                let sent = sqlx::raw_sql(AssertSqlSafe(statement.clone()))
                    .execute(open)
                    .await;
                if sent.is_ok() {
                    break;
                }
                *connection = None;
            }
            drop(connection);
            sleep(GATHERS).await;
        }
    }

    /// Closes the connection.
    pub(super) async fn close(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            // The server may be gone, which is an end as well.
            let _ = connection.close().await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing is half done while it is locked.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Takes what is sent next. Nothing: nobody sends any more.
    fn batch(&mut self) -> Vec<Notification> {
        let changes = self.changes.len().min(BATCH);
        let words = self.words.len().min(BATCH - changes);
        let batch: Vec<Notification> = self
            .changes
            .drain(..changes)
            .chain(self.words.drain(..words))
            .collect();
        let sent = batch
            .iter()
            .skip(changes)
            .map(|notification| notification.payload.len());
        self.words_bytes -= sent.sum::<usize>();
        self.sends = !batch.is_empty();
        batch
    }
}

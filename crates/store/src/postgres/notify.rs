//! Notifications to other processes (`pg_notify`).
//!
//! They are sent after the commit that they announce, over a separate connection: inside a
//! transaction a notification takes a lock of the whole server until the commit is on the disk
//! (PostgreSQL's `async.c`, `PreCommit_Notify`). Notifications that gather meanwhile are sent
//! together.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::time::sleep;

use super::literal::fill;
use crate::lock::lock;
use crate::sql::Value;

/// Most bytes of a notification: the server accepts fewer than 8000.
pub(super) const BYTES_MAX: usize = 7900;

/// Pause after each message, so at most 20 are sent a second.
const PAUSE: Duration = Duration::from_millis(50);

/// Most notifications in one message.
const BATCH: usize = 64;

/// Most bytes of relayed messages that wait to be sent. Changes are few, and not bounded.
const MESSAGES_BYTES_MAX: usize = 256 * 1024;

/// A queue of notifications and the connection that sends them, changes before relayed messages.
#[derive(Debug)]
pub(super) struct Notifier {
    options: PgConnectOptions,
    waiting: Mutex<Queue>,
    connection: tokio::sync::Mutex<Option<PgConnection>>,
}

#[derive(Debug, Default)]
struct Queue {
    changes: VecDeque<Notification>,
    messages: VecDeque<Notification>,
    messages_bytes: usize,
    /// True while a task sends the queue.
    is_sending: bool,
}

#[derive(Debug, PartialEq)]
struct Notification {
    /// Letters, digits and underscores only, so it needs no escaping.
    channel: Arc<str>,
    payload: String,
}

impl Notifier {
    /// Creates a notifier that connects when there is something to send.
    pub(super) fn new(options: PgConnectOptions) -> Self {
        Self {
            options,
            waiting: Mutex::default(),
            connection: tokio::sync::Mutex::default(),
        }
    }

    /// Queues the notification of a change, unless the same one waits already. One that is too long
    /// is dropped: its receivers notice the change by polling.
    pub(super) fn notify(self: &Arc<Self>, channel: &Arc<str>, payload: String) {
        let notification = Notification {
            channel: channel.clone(),
            payload,
        };
        if notification.payload.len() > BYTES_MAX {
            return;
        }
        let mut waiting = lock(&self.waiting);
        // One that waits already says the same to every receiver.
        if !waiting.changes.contains(&notification) {
            waiting.changes.push_back(notification);
        }
        self.start_sending(waiting);
    }

    /// Queues a relayed message, in order. Returns false if it is too long, or too many wait.
    pub(super) fn send_message(self: &Arc<Self>, channel: Arc<str>, payload: String) -> bool {
        let mut waiting = lock(&self.waiting);
        if payload.len() > BYTES_MAX || waiting.messages_bytes + payload.len() > MESSAGES_BYTES_MAX
        {
            return false;
        }
        waiting.messages_bytes += payload.len();
        waiting
            .messages
            .push_back(Notification { channel, payload });
        self.start_sending(waiting);
        true
    }

    fn start_sending(self: &Arc<Self>, mut waiting: MutexGuard<'_, Queue>) {
        if !std::mem::replace(&mut waiting.is_sending, true) {
            tokio::spawn(self.clone().send());
        }
    }

    /// Sends until the queue is empty. What cannot be sent is dropped: receivers notice changes by
    /// polling.
    async fn send(self: Arc<Self>) {
        loop {
            let batch = lock(&self.waiting).batch();
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
            // The values are literals, so any number of notifications is one message.
            let statement = fill(&format!("SELECT {}", calls.join(", ")), &values);
            let mut connection = self.connection.lock().await;
            // A connection that was lost since the last message is noticed by the first error.
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
            // The lock is released first, so that `close` does not wait for the pause.
            sleep(PAUSE).await;
        }
    }

    /// Closes the connection.
    pub(super) async fn close(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            // The server may be gone, which closes the connection as well.
            let _ = connection.close().await;
        }
    }
}

impl Queue {
    /// Takes the notifications to send next. If there are none, the sending task ends.
    fn batch(&mut self) -> Vec<Notification> {
        let changes = self.changes.len().min(BATCH);
        let messages = self.messages.len().min(BATCH - changes);
        let batch: Vec<Notification> = self
            .changes
            .drain(..changes)
            .chain(self.messages.drain(..messages))
            .collect();
        let sent = batch
            .iter()
            .skip(changes)
            .map(|notification| notification.payload.len());
        self.messages_bytes -= sent.sum::<usize>();
        self.is_sending = !batch.is_empty();
        batch
    }
}

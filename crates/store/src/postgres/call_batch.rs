//! Batches calls of the database's functions: calls that wait at the same moment are sent as one
//! message.
//!
//! A commit costs a write to the disk, and a message costs a round trip and a context switch of the
//! server, however much is in it. So waiting calls are sent as one message, which the server runs
//! as one transaction. A function that refuses a call says so in its result and has changed
//! nothing. If a call fails with an error, the server rolls the whole message back, and each call
//! is sent again alone. A batch does not wait for a conversation that another transaction has
//! locked: that call is sent again over its own connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use adjutant_core::ConversationKey;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::warn;

use super::pool::{Pool, Session, acquire};
use super::result::to_row;
use crate::lock::lock;
use crate::sql::{Failure, Row};

/// Messages in flight at the same time. With more of them fewer calls would be batched.
const MESSAGES_IN_FLIGHT: usize = 2;

/// Most calls in one message.
const BATCH: usize = 64;

/// The column of a result that says what the function did, and its value if another transaction has
/// the conversation locked.
const OUTCOME: &str = "o_outcome";
const LOCKED: i64 = 7;

/// Bytes of a message after which no further call joins it.
const BATCH_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct CallBatcher {
    queue: Mutex<Queue>,
    /// One permit for each message in flight.
    messages: Arc<Semaphore>,
}

/// Calls that were not sent yet, in the order in which they came.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<QueuedCall>,
    /// The number that the next call gets.
    next: u64,
}

/// A call that was not sent yet.
#[derive(Debug)]
struct QueuedCall {
    number: u64,
    key: ConversationKey,
    /// The statement without its last parameter (see [`super::literal::Call::without_wait`]).
    statement: String,
    answer: oneshot::Sender<Result<Row, Failure>>,
}

impl QueuedCall {
    /// Completes the statement with its last parameter: true if the function waits for locks.
    fn statement(&self, waits: bool) -> String {
        format!(
            "{}{})",
            self.statement,
            if waits { "TRUE" } else { "FALSE" }
        )
    }

    /// Sends the call in a message of its own, waiting for the lock of the conversation.
    async fn send_alone(self, session: &mut Session) {
        let result = session.fetch_all(self.statement(true)).await;
        let result = session.release_after(result).map_err(Failure::from);
        // The caller may have been dropped.
        let _ = self
            .answer
            .send(result.and_then(|rows| first(rows.first())));
    }

    /// Sends the call over a connection that no other call waits for.
    async fn wait(self, pool: Arc<Pool>) {
        let session = async { pool.connect(pool.acquire().await?).await };
        match session.await {
            Ok(mut session) => self.send_alone(&mut session).await,
            Err(error) => fail_all(vec![self], error),
        }
    }
}

impl Default for CallBatcher {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            messages: Arc::new(Semaphore::new(MESSAGES_IN_FLIGHT)),
        }
    }
}

impl CallBatcher {
    /// Sends a call of [`super::literal::Call`] about a conversation and returns its row. Once it
    /// is sent, it is carried out even if the caller is dropped; before that, dropping the caller
    /// cancels it.
    pub(super) async fn call(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        key: &ConversationKey,
        statement: String,
    ) -> Result<Row, Failure> {
        let (answer, mut answered) = oneshot::channel();
        let number = self.push(key.clone(), statement, answer);
        let permits = async || {
            let message = acquire(&self.messages).await?;
            Ok::<_, sqlx::Error>((message, pool.acquire().await?))
        };
        loop {
            let (message, permit) = tokio::select! {
                // An answer that has arrived makes the permits unnecessary, so it is looked at
                // first.
                biased;
                result = &mut answered => return result.unwrap_or_else(|_| Err(Failure::panicked())),
                permits = permits() => permits?,
            };
            let calls = self.take();
            // If calls that came earlier have filled the message, this one needs the next.
            let is_sent = calls.is_empty() || calls.iter().any(|call| call.number == number);
            // Spawned, because the message has other callers, who still wait if this one is
            // dropped.
            tokio::spawn(send(calls, pool.clone(), message, permit));
            if is_sent {
                return answered.await.unwrap_or_else(|_| Err(Failure::panicked()));
            }
        }
    }

    /// Returns the number of calls that were not sent yet.
    pub(super) fn waiting(&self) -> u32 {
        u32::try_from(lock(&self.queue).waiting.len()).unwrap_or(u32::MAX)
    }

    fn push(
        &self,
        key: ConversationKey,
        statement: String,
        answer: oneshot::Sender<Result<Row, Failure>>,
    ) -> u64 {
        let mut queue = lock(&self.queue);
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back(QueuedCall {
            number,
            key,
            statement,
            answer,
        });
        number
    }

    /// Takes the calls for a message, ordered by conversation. All processes use the same order, so
    /// no two messages deadlock on each other's conversations. The sort is stable: calls about one
    /// conversation keep their order.
    fn take(&self) -> Vec<QueuedCall> {
        let (mut taken, mut bytes): (Vec<QueuedCall>, _) = (Vec::new(), 0);
        let mut queue = lock(&self.queue);
        while taken.len() < BATCH && bytes < BATCH_BYTES {
            let Some(call) = queue.waiting.pop_front() else {
                break;
            };
            // Nothing is done for a caller that left before its call was sent.
            if !call.answer.is_closed() {
                bytes += call.statement.len();
                taken.push(call);
            }
        }
        drop(queue);
        taken.sort_by(|a, b| {
            let place = |call: &QueuedCall| call.key.conversation;
            let owner = |call: &QueuedCall| (call.key.agent.clone(), call.key.user.clone());
            place(a)
                .cmp(&place(b))
                .then_with(|| owner(a).cmp(&owner(b)))
        });
        taken
    }
}

/// Sends calls as one message and answers each.
async fn send(
    calls: Vec<QueuedCall>,
    pool: Arc<Pool>,
    message: OwnedSemaphorePermit,
    permit: OwnedSemaphorePermit,
) {
    if calls.is_empty() {
        return;
    }
    let mut session = match pool.connect(permit).await {
        Ok(session) => session,
        Err(error) => return fail_all(calls, error),
    };
    let statements: Vec<String> = calls.iter().map(|call| call.statement(false)).collect();
    let result = session.fetch_all(statements.join(";")).await;
    match session.release_after(result) {
        Err(sqlx::Error::Database(error)) if calls.len() > 1 => {
            warn!(%error, calls = calls.len(), "a message of several calls failed; each is sent again alone");
            for call in calls {
                call.send_alone(&mut session).await;
            }
        }
        Err(error) => fail_all(calls, error),
        Ok(rows) => {
            drop(session);
            let mut rows = rows.iter();
            for call in calls {
                let row = rows.next();
                // A row without the column is an error for the caller, which decodes it.
                let outcome = row.and_then(|row| row.try_get::<i64, _>(OUTCOME).ok());
                if outcome == Some(LOCKED) {
                    tokio::spawn(call.wait(pool.clone()));
                } else {
                    // The caller may have been dropped.
                    let _ = call.answer.send(first(row));
                }
            }
        }
    }
    // Held until here: what gathers meanwhile is sent together as the next message.
    drop(message);
}

/// Converts the one row that every call of a function returns.
fn first(row: Option<&PgRow>) -> Result<Row, Failure> {
    to_row(row.ok_or(sqlx::Error::RowNotFound)?)
}

/// Answers all calls of a message with its error. The driver's errors cannot be cloned, so only the
/// first caller gets the original.
fn fail_all(calls: Vec<QueuedCall>, error: sqlx::Error) {
    let again = |error: &sqlx::Error| match error {
        sqlx::Error::PoolTimedOut => sqlx::Error::PoolTimedOut,
        sqlx::Error::PoolClosed => sqlx::Error::PoolClosed,
        other => sqlx::Error::Io(std::io::Error::other(other.to_string())),
    };
    let mut calls = calls.into_iter();
    let first = calls.next();
    for call in calls {
        // The caller may have been dropped.
        let _ = call.answer.send(Err(again(&error).into()));
    }
    if let Some(call) = first {
        let _ = call.answer.send(Err(error.into()));
    }
}

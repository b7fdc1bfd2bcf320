//! Calls of the database's functions: those that wait at the same moment are written together.
//!
//! A commit costs a write that reaches the disk, and a message the change to the server's process
//! and back, whatever is in it. So calls that wait are sent as one message, which the server
//! carries out as one transaction. What a function refuses it says in its answer, and has then
//! changed nothing; if one fails otherwise, nothing of the message is kept, and each is sent again
//! alone. A conversation that somebody else has locked is not waited for in a message of many: the
//! call is sent again over a connection of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::ConversationKey;
use sqlx::postgres::PgRow;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::warn;

use super::columns::columns;
use super::pool::{Pool, Session, turn};
use crate::sql::{Columns, Failure};

/// Messages that are with the server at the same time. More of them would leave less to be written
/// together.
const MESSAGES: usize = 2;

/// Calls in one message, at most.
const BATCH: usize = 64;

/// The first column of an answer if somebody has the conversation locked.
const LOCKED: i64 = 7;

/// Bytes of a message before no other call joins it.
const BATCH_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Calls {
    queue: Mutex<Queue>,
    /// One permit for each message.
    messages: Arc<Semaphore>,
}

/// The calls that were not sent yet, in the order in which they came.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Number of the next call.
    next: u64,
}

/// A call that was not sent yet.
#[derive(Debug)]
struct Waiting {
    number: u64,
    key: ConversationKey,
    /// Without its last parameter.
    statement: String,
    answer: oneshot::Sender<Result<Columns, Failure>>,
}

impl Waiting {
    /// With the last parameter: whether a lock is waited for.
    fn statement(&self, waits: bool) -> String {
        format!(
            "{}{})",
            self.statement,
            if waits { "TRUE" } else { "FALSE" }
        )
    }

    /// Sends it in a message of its own; waits for whoever has the conversation.
    async fn send_alone(self, session: &mut Session) {
        let asked = session.ask(self.statement(true)).await;
        let asked = session.ended(asked).map_err(Failure::from);
        // The caller may have left.
        let _ = self.answer.send(asked.and_then(|rows| first(rows.first())));
    }

    /// Sends it over a connection that nobody else waits for.
    async fn wait(self, pool: Arc<Pool>) {
        let session = async { pool.open(pool.turn().await?).await };
        match session.await {
            Ok(mut session) => self.send_alone(&mut session).await,
            Err(error) => refuse(vec![self], error),
        }
    }
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            messages: Arc::new(Semaphore::new(MESSAGES)),
        }
    }
}

impl Calls {
    /// Makes a call of [`super::literal::Call`] about a conversation, which is a transaction of its
    /// own or a part of one; returns its row. Once it is sent, it is done, whoever leaves; before,
    /// whoever leaves has left nothing to do.
    pub(super) async fn call(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        key: &ConversationKey,
        statement: String,
    ) -> Result<Columns, Failure> {
        let (answer, mut answered) = oneshot::channel();
        let number = self.push(key.clone(), statement, answer);
        let turns = async || {
            let message = turn(&self.messages).await?;
            Ok::<_, sqlx::Error>((message, pool.turn().await?))
        };
        loop {
            let (message, turn) = tokio::select! {
                biased;
                told = &mut answered => return told.unwrap_or_else(|_| Err(Failure::panicked())),
                turns = turns() => turns?,
            };
            let calls = self.take();
            // Others may have come first, and have filled the message: then this call needs the
            // next one.
            let is_sent = calls.is_empty() || calls.iter().any(|call| call.number == number);
            tokio::spawn(send(calls, pool.clone(), message, turn));
            if is_sent {
                return answered.await.unwrap_or_else(|_| Err(Failure::panicked()));
            }
        }
    }

    /// Returns the number of calls that were not sent yet.
    pub(super) fn waiting(&self) -> u32 {
        // Nothing is half done while it is locked.
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        u32::try_from(queue.waiting.len()).unwrap_or(u32::MAX)
    }

    fn push(
        &self,
        key: ConversationKey,
        statement: String,
        answer: oneshot::Sender<Result<Columns, Failure>>,
    ) -> u64 {
        let mut queue = self.queue();
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back(Waiting {
            number,
            key,
            statement,
            answer,
        });
        number
    }

    /// Takes the calls for a message, in an order that is the same in every process: so that no two
    /// of them wait for each other's conversations. Calls about one conversation stay in theirs.
    fn take(&self) -> Vec<Waiting> {
        let (mut taken, mut bytes): (Vec<Waiting>, _) = (Vec::new(), 0);
        let mut queue = self.queue();
        while taken.len() < BATCH && bytes < BATCH_BYTES {
            let Some(call) = queue.waiting.pop_front() else {
                break;
            };
            if !call.answer.is_closed() {
                bytes += call.statement.len();
                taken.push(call);
            }
        }
        drop(queue);
        taken.sort_by(|a, b| {
            let place = |call: &Waiting| call.key.conversation;
            let owner = |call: &Waiting| (call.key.agent.clone(), call.key.user.clone());
            place(a)
                .cmp(&place(b))
                .then_with(|| owner(a).cmp(&owner(b)))
        });
        taken
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        // Nothing is half done while it is locked.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends calls as one message and tells each what became of it.
async fn send(
    calls: Vec<Waiting>,
    pool: Arc<Pool>,
    message: OwnedSemaphorePermit,
    turn: OwnedSemaphorePermit,
) {
    if calls.is_empty() {
        return;
    }
    let mut session = match pool.open(turn).await {
        Ok(session) => session,
        Err(error) => return refuse(calls, error),
    };
    let statements: Vec<String> = calls.iter().map(|call| call.statement(false)).collect();
    let asked = session.ask(statements.join(";")).await;
    match session.ended(asked) {
        Err(sqlx::Error::Database(error)) if calls.len() > 1 => {
            warn!(%error, calls = calls.len(), "a message of several calls failed; each is sent again alone");
            for call in calls {
                call.send_alone(&mut session).await;
            }
        }
        Err(error) => refuse(calls, error),
        Ok(rows) => {
            drop(session);
            let mut rows = rows.iter();
            for call in calls {
                let row = first(rows.next());
                if row.as_ref().is_ok_and(|row| row.first_is(LOCKED)) {
                    tokio::spawn(call.wait(pool.clone()));
                } else {
                    // The caller may have left.
                    let _ = call.answer.send(row);
                }
            }
        }
    }
    drop(message);
}

/// Every call of a function is answered with one row.
fn first(row: Option<&PgRow>) -> Result<Columns, Failure> {
    match row {
        Some(row) => Ok(columns(row)?),
        None => Err(sqlx::Error::RowNotFound.into()),
    }
}

/// Tells all what went wrong with their message.
fn refuse(calls: Vec<Waiting>, error: sqlx::Error) {
    let again = |error: &sqlx::Error| match error {
        sqlx::Error::PoolTimedOut => sqlx::Error::PoolTimedOut,
        sqlx::Error::PoolClosed => sqlx::Error::PoolClosed,
        other => sqlx::Error::Io(std::io::Error::other(other.to_string())),
    };
    let mut calls = calls.into_iter();
    let first = calls.next();
    for call in calls {
        // The caller may have left.
        let _ = call.answer.send(Err(again(&error).into()));
    }
    if let Some(call) = first {
        let _ = call.answer.send(Err(error.into()));
    }
}

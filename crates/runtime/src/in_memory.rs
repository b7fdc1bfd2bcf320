//! [`InMemory`]: the store that forgets everything when the process ends. It is the default of an
//! agent, and the fastest one for tests.

mod branch; // branches: conversations that begin with the events of another
mod budget; // spending per day
mod changes; // notifications of changes
mod conversation; // one conversation
mod conversations; // lists of conversations
mod inbox; // accepted inputs of a conversation
mod journal; // the journal
mod ledger; // bookings and budget blocks
mod logs; // decision log and tool invocations
mod recovery; // leasing work, and heartbeats
mod search; // conversation search
mod state; // all data, and its eviction
mod user_setting; // settings of users
mod weight; // approximate size of a conversation

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjutant_core::limits::MESSAGES_QUEUED_MAX;
use adjutant_core::{BoxFuture, InMemoryTables, LogContent, StoreId, UserId, UserTables};
use jiff::Timestamp;

use crate::clock::Clock;

use state::State;

/// Conversations, journal, logs, budgets, settings of users and the tables of tools, such as tasks,
/// in memory.
///
/// The memory is bounded: beyond 1,024 conversations ([`InMemory::with_conversations_max`]) or about
/// 16 MiB of them ([`InMemory::with_bytes_max`]), whole conversations are forgotten, with their logs,
/// the ones unused for the longest time first. One that runs, or waits for an answer, is never
/// forgotten.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use adjutant_providers::scripted::{ScriptedModel, text};
/// use adjutant_runtime::{Agent, InMemory};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let store = Arc::new(InMemory::new());
/// let agent = Agent::builder("helper")
///     .model(ScriptedModel::new([text("Hello.")]))
///     .instruction("Be brief.")
///     .journal(store.clone(), "worker-1")
///     .build()?;
/// agent.run("Hi.").await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct InMemory {
    state: Mutex<State>,
    log: LogContent,
    messages_queued_max: NonZeroU32,
    changes: changes::ChangeLog,
    clock: Clock,
}

impl Default for InMemory {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            log: LogContent::default(),
            messages_queued_max: MESSAGES_QUEUED_MAX,
            changes: changes::ChangeLog::default(),
            clock: Clock::default(),
        }
    }
}

impl InMemory {
    /// Creates an empty store that logs full content and uses the system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the clock of task changes. Default: the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Clock(Arc::new(clock));
        self
    }

    /// Sets how much of messages and results the logs contain. Default: [`LogContent::Full`].
    #[must_use]
    pub fn with_log_content(mut self, content: LogContent) -> Self {
        self.log = content;
        self
    }

    /// Sets the most messages that may wait in the inbox of one conversation. Default:
    /// [`MESSAGES_QUEUED_MAX`].
    #[must_use]
    pub fn with_messages_queued_max(mut self, messages: NonZeroU32) -> Self {
        self.messages_queued_max = messages;
        self
    }

    /// Sets the number of conversations beyond which the ones unused for the longest time are
    /// forgotten. Default: 1,024.
    #[must_use]
    pub fn with_conversations_max(self, conversations: NonZeroUsize) -> Self {
        self.state().bounds.conversations = conversations;
        self
    }

    /// Sets the approximate size of all conversations in bytes beyond which the ones unused for the
    /// longest time are forgotten. Default: 16 MiB.
    #[must_use]
    pub fn with_bytes_max(self, bytes: NonZeroUsize) -> Self {
        self.state().bounds.bytes = bytes;
        self
    }

    /// Returns the approximate size of all conversations with their logs, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.state().bytes.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves no partial update: every change is one assignment or push.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InMemoryTables for InMemory {
    fn store_id(&self) -> StoreId {
        StoreId::of(self)
    }

    fn with_tables<R>(
        &self,
        user: &UserId,
        work: impl FnOnce(&mut UserTables, Timestamp) -> R,
    ) -> R {
        let mut state = self.state();
        let now = self.clock.now();
        work(state.users.entry(user.clone()).or_default(), now)
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

//! The store that forgets when the process ends: the library's default, and the quickest for tests.

mod branch; // conversations that begin with the events of another
mod budget; // what users spend
mod conversation; // one conversation
mod conversations; // the lists of them
mod inbox; // the inputs of one
mod journal; // the journal
mod ledger; // spending, and the blocks that are held
mod logs; // the logs
mod news; // for those that wait
mod origin; // where a branch begins
mod past; // searching what was said
mod state; // all there is
mod task_store; // the store of tasks
mod tasks; // the tasks of one user
mod work; // taking work

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjutant_core::limits::MESSAGES_QUEUED_MAX;
use adjutant_core::{BoxFuture, LogContent};
use jiff::Timestamp;

use crate::clock::Clock;

use state::State;

/// Tasks, conversations, journal and logs in memory.
#[derive(Debug)]
pub struct InMemory {
    state: Mutex<State>,
    log: LogContent,
    messages_queued_max: NonZeroU32,
    news: news::News,
    clock: Clock,
}

impl Default for InMemory {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            log: LogContent::default(),
            messages_queued_max: MESSAGES_QUEUED_MAX,
            news: news::News::default(),
            clock: Clock::default(),
        }
    }
}

impl InMemory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with tasks that are created and changed at the times of another clock than the
    /// system's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Clock(Arc::new(clock));
        self
    }

    /// The same, with so much of what is said in its logs. Default: [`LogContent::Full`].
    #[must_use]
    pub fn with_log_content(mut self, content: LogContent) -> Self {
        self.log = content;
        self
    }

    /// The same, in which so many messages may wait in one conversation, accepted and not taken.
    /// Default: [`MESSAGES_QUEUED_MAX`].
    #[must_use]
    pub fn with_messages_queued_max(mut self, messages: NonZeroU32) -> Self {
        self.messages_queued_max = messages;
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves whole values behind: every change is a single assignment or
        // push.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

//! Who runs conversations, and the signs of life they give.

use std::time::Duration;

use super::booking::Booking;
use crate::id::{AgentName, ConversationKey};

/// A process that runs conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker<'a> {
    /// The name of the process.
    pub id: &'a str,
    /// A number of its own for each stretch of time in which it gives signs of life: whoever was
    /// silent for too long goes on under another one, and what it claimed before is not its any
    /// more. 0: it gives none, and its claims hold for the time they were made for.
    pub epoch: i64,
}

/// A worker that gives no signs of life.
impl<'a> From<&'a str> for Worker<'a> {
    fn from(id: &'a str) -> Self {
        Self { id, epoch: 0 }
    }
}

/// A worker that adds to a conversation, and what it books with that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer<'a> {
    /// The worker that has the conversation.
    pub worker: Worker<'a>,
    /// Spending that is booked in the same commit, usually of what is recorded in it.
    pub spent: &'a [Booking],
}

/// A worker that has used nothing.
impl<'a> From<Worker<'a>> for Writer<'a> {
    fn from(worker: Worker<'a>) -> Self {
        Self { worker, spent: &[] }
    }
}

/// A worker that gives no signs of life and has used nothing.
impl<'a> From<&'a str> for Writer<'a> {
    fn from(id: &'a str) -> Self {
        Worker::from(id).into()
    }
}

/// A sign of life, for [`Journal::beat`](super::Journal::beat).
#[derive(Debug, Clone, Copy)]
pub struct Beat<'a> {
    /// The agent whose claims are returned.
    pub agent: &'a AgentName,
    /// The worker that lives.
    pub worker: Worker<'a>,
    /// Time for which all its claims hold from now on.
    pub lease: Duration,
    /// Whether this is the first of the worker's epoch.
    pub is_first: bool,
}

/// A conversation that a worker has claimed, as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The conversation.
    pub key: ConversationKey,
    /// Whether inputs wait that nobody has taken.
    pub has_inputs: bool,
}

/// The worker that has a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// [`Worker::id`].
    pub worker: String,
    /// [`Worker::epoch`].
    pub epoch: i64,
}

impl Holder {
    /// Returns the worker.
    #[must_use]
    pub fn worker(&self) -> Worker<'_> {
        Worker {
            id: &self.worker,
            epoch: self.epoch,
        }
    }
}

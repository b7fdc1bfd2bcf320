//! Workers, which run conversations, and their heartbeats.

use std::time::Duration;

use super::booking::Booking;
use crate::id::{AgentName, ConversationKey};

/// A process that runs conversations, in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker<'a> {
    /// Name of the process, unique among those of the store.
    pub id: &'a str,
    /// Number of the period in which heartbeats arrive without a gap. After a gap the process
    /// continues with a new epoch and does not hold the leases of the old one. 0: it sends no
    /// heartbeats, and its leases end at their expiry.
    pub epoch: i64,
}

/// Creates a worker without heartbeats.
impl<'a> From<&'a str> for Worker<'a> {
    fn from(id: &'a str) -> Self {
        Self { id, epoch: 0 }
    }
}

/// A worker that appends events, with the amounts that it books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer<'a> {
    /// Worker that holds the lease.
    pub worker: Worker<'a>,
    /// Amounts booked in the same commit, usually for the events that it records.
    pub spent: &'a [Booking],
}

/// Creates a writer that books nothing.
impl<'a> From<Worker<'a>> for Writer<'a> {
    fn from(worker: Worker<'a>) -> Self {
        Self { worker, spent: &[] }
    }
}

/// Creates a writer without heartbeats that books nothing.
impl<'a> From<&'a str> for Writer<'a> {
    fn from(id: &'a str) -> Self {
        Worker::from(id).into()
    }
}

/// The arguments of [`Journal::beat`](super::Journal::beat).
#[derive(Debug, Clone, Copy)]
pub struct Beat<'a> {
    /// Agent whose leases are returned.
    pub agent: &'a AgentName,
    /// Worker that sends the heartbeat.
    pub worker: Worker<'a>,
    /// Duration for which all its leases are valid from now.
    pub lease: Duration,
    /// True for the first heartbeat of the epoch.
    pub is_first: bool,
}

/// A conversation for which a worker holds the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Agent, user and id of the conversation.
    pub key: ConversationKey,
    /// True if inputs are queued.
    pub has_inputs: bool,
}

/// The worker that holds the lease of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Name of the process, as in [`Worker::id`].
    pub worker: String,
    /// Epoch of the lease, as in [`Worker::epoch`].
    pub epoch: i64,
}

impl Holder {
    /// Returns the holder as a [`Worker`].
    #[must_use]
    pub fn worker(&self) -> Worker<'_> {
        Worker {
            id: &self.worker,
            epoch: self.epoch,
        }
    }
}

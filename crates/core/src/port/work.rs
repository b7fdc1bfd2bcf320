//! Work that is left to recover: conversations with something to do and no live worker.

use std::time::Duration;

use jiff::Timestamp;

use super::claim::Claim;
use super::worker::Worker;
use crate::id::{AgentName, ConversationKey, UserId};

/// The reason for which a conversation has work to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// An input is queued, or a turn neither ended nor waits for a person.
    Unsettled,
    /// Its turn waits with a call that expired at this time or before, and can go on without an
    /// answer.
    Expired(Timestamp),
}

/// A position in the order in which work is taken: the longest waiting first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkPlace {
    /// Time since which the work waits.
    pub since: Timestamp,
    /// Tie breaker of the store between equal times.
    pub number: i64,
}

/// The arguments of [`Journal::take`](super::Journal::take).
#[derive(Debug, Clone, Copy)]
pub struct Take<'a> {
    /// Agent whose conversations are taken.
    pub agent: &'a AgentName,
    /// User whose conversations are taken. `None`: all users.
    pub user: Option<&'a UserId>,
    /// Kind of work that is taken.
    pub due: Due,
    /// Worker that acquires the leases.
    pub worker: Worker<'a>,
    /// Duration of the leases without a heartbeat.
    pub lease: Duration,
    /// Position after which to take, so that one pass over all work meets each conversation once.
    pub after: Option<WorkPlace>,
    /// Maximum number of conversations to take.
    pub limit: usize,
}

/// A conversation whose lease was acquired by [`Journal::take`](super::Journal::take).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Agent, user and id of the conversation.
    pub key: ConversationKey,
    /// [`Claim::Granted`], or [`Claim::TakenOver`] from a lost worker.
    pub claim: Claim,
    /// Position of the work in the order.
    pub place: WorkPlace,
}

//! Taking work: conversations with something to do that no living worker has.

use std::time::Duration;

use jiff::Timestamp;

use super::claim::Claim;
use super::worker::Worker;
use crate::id::{AgentName, ConversationKey, UserId};

/// A reason for which a conversation has something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// An input was not taken, or a turn neither ended nor waits for a human.
    Unsettled,
    /// Its turn waits for a human with something that expired at this time or before: it goes on
    /// without them.
    Expired(Timestamp),
}

/// A place in the order in which work is taken: that which has waited longest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkPlace {
    /// The time since which the work waits.
    pub since: Timestamp,
    /// The store's own number, which tells apart what waits since the same time.
    pub number: i64,
}

/// A request for work, for [`Journal::take`](super::Journal::take).
#[derive(Debug, Clone, Copy)]
pub struct Take<'a> {
    /// The agent whose conversations are taken.
    pub agent: &'a AgentName,
    /// The user whose conversations are taken. `None`: everybody's.
    pub user: Option<&'a UserId>,
    /// The reason for which they are taken.
    pub due: Due,
    /// The process, for the claims.
    pub worker: Worker<'a>,
    /// Time for which the claims hold without a sign of life.
    pub lease: Duration,
    /// Takes only what comes behind this place, so that one who goes through all of it meets each
    /// conversation once.
    pub after: Option<WorkPlace>,
    /// Number of conversations at most.
    pub limit: usize,
}

/// A conversation that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The conversation.
    pub key: ConversationKey,
    /// [`Claim::Granted`] or [`Claim::TakenOver`].
    pub claim: Claim,
    /// Its place in the order.
    pub place: WorkPlace,
}

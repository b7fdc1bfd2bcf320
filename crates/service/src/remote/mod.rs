//! Event streams of runs between processes that share a store, only while a client needs them.
//!
//! A process whose client follows a run subscribes by a message to all others, and renews the
//! subscription every few seconds. The process that executes the run sends its events in numbered
//! chunks. After a missing number the subscriber subscribes anew after its last complete event; the
//! silence of either side ends the subscription.

mod follow; // subscription to a run in another process
mod message; // messages between processes
mod publish; // publication of this process's runs
#[cfg(test)]
mod tests;

pub(crate) use follow::{Followed, Follower};
pub(crate) use publish::Publisher;

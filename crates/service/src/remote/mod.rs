//! Runs told to other processes that share the store, and by them: only while somebody there asks
//! for one.
//!
//! The process that asks says so to all, and again every few seconds to the one that answered; the
//! one that runs it tells everything from the place on that the other has, in numbered pieces, and
//! goes on telling. A number that lacks has everything behind the last event asked for again, and
//! silence on either side ends it.

mod follow; // a run that another process tells
mod host; // the runs of this process, for others
#[cfg(test)]
mod tests;
mod words; // what is said

pub(crate) use follow::{Followed, Follower};
pub(crate) use host::Host;

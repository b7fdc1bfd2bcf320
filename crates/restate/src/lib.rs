//! Conversations as virtual objects of [Restate](https://restate.dev): it decides where and when a
//! conversation goes on, one call at a time for each; what is true stands in the journal, as
//! everywhere.
//!
//! A [`Worker`] is what Restate calls: every object `Conversation` has one handler, `advance`,
//! which calls [`Agent::advance`](adjutant_runtime::Agent::advance). No handler waits for a person,
//! Restate holds no word of a conversation, and where it is gone, the process that accepted an
//! input does the work itself.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod address; // where it is, and where it finds us
mod admin; // asking Restate about what it has
mod client; // over connections that are kept
mod diagnosis; // what is well with all of it, and what is not
mod dispatch; // asking it
mod error; // why it is not called, and that it is
mod identity; // that it is Restate who calls
mod object; // what it calls
mod port; // where its calls arrive
mod registration; // having it call us
mod worker; // from a socket to an orderly end

pub use address::{InvalidAddress, RestateAddress};
pub use admin::NotReached;
pub use diagnosis::{Calls, Deployed, Diagnosis, diagnose};
pub use error::{WorkerError, WorkerEvent};
pub use worker::Worker;

//! Conversations as virtual objects of [Restate](https://restate.dev): Restate chooses the process
//! that runs a conversation, and runs one call at a time for each. The journal stays the only
//! source of truth.
//!
//! Restate calls a [`Worker`]: every object `Conversation` has one handler, `advance`, which calls
//! [`Agent::run_dispatched`](adjutant_runtime::Agent::run_dispatched). No handler waits for a
//! person, and no message is stored in Restate. If Restate is unreachable, the process that
//! accepted an input runs the turn itself.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod address; // addresses of Restate and of this worker
mod admin; // Restate's admin API
mod client; // the HTTP client
mod diagnosis; // the state of a server and its workers, for operators
mod dispatch; // dispatch through the ingress
mod error; // events and errors of a worker
mod identity; // signatures of Restate's calls
mod object; // the object that Restate calls
mod registration; // registering this worker
mod server; // the HTTP/2 server
mod worker; // the worker: from its socket to its shutdown

pub use address::{InvalidAddress, RestateAddress};
pub use admin::NotReached;
pub use diagnosis::{Calls, Deployed, Diagnosis, diagnose};
pub use error::{WorkerError, WorkerEvent};
pub use worker::Worker;

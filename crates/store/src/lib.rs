//! What survives a crash: tasks, conversations, the journal and its logs.
//!
//! One folder per backend, the same file names in each. What a backend must do is in the ports of `adjutant_core` and,
//! as tests, in the module `contract` (feature `contract`). What follows from an event or a change whatever the database
//! is written once, outside the backends' folders. Nothing here decides what a turn does.
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "sqlite")]
mod journal; // what submitting and appending write
#[cfg(feature = "sqlite")]
mod row; // records as plain columns, and back
#[cfg(feature = "sqlite")]
mod status; // whether a conversation has work to do
#[cfg(feature = "sqlite")]
mod task; // what a change writes
mod worker; // who runs a conversation, and whether they still live

#[cfg(feature = "contract")]
pub mod contract;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use worker::worker_id;

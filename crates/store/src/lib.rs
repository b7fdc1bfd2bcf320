//! What survives a crash: tasks, conversations, the journal and its logs.
//!
//! One folder per backend, the same file names in each. What a backend must do is in the ports of
//! `adjutant_core` and, as tests, in the module `contract` (feature `contract`). What follows from
//! an event or a change whatever the database is written once, outside the backends' folders.
//! Nothing here decides what a turn does.
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod blob; // long values, stored once in a conversation
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod digest; // names of texts
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod maintenance; // what whoever runs a store does with it
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod news; // what changes, for those that wait
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod row; // records as plain columns, and back
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql; // what every SQL database is asked
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod status; // whether a conversation has work to do
mod worker; // who runs a conversation, and whether they still live

#[cfg(feature = "contract")]
pub mod contract;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use maintenance::{
    DatabaseStatus, Finding, Load, Maintenance, Removed, StoredConversation, TableRows,
    UserRemoved, UserRow,
};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use sql::copy::copy;
pub use worker::worker_id;

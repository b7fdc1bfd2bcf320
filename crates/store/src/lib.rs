//! Durable storage for tasks, conversations, the journal and its logs, in SQLite or PostgreSQL.
//!
//! [`sqlite::Store`] and [`postgres::Store`] implement the ports of `adjutant_core`: `Journal`,
//! `TaskStore`, `ConversationStore` and the others. The SQL statements are written once, in the
//! module `sql`; each backend has a folder for connecting, batching writes and explaining errors.
//! The module `contract` (feature `contract`) has the tests that every backend passes. Nothing here
//! decides what a turn does.
//!
//! # Examples
//! ```
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use adjutant_core::UserId;
//! use adjutant_store::sqlite;
//! use adjutant_tools::{TaskChange, TaskDescription, TaskFilter, TaskStore as _};
//!
//! let store = sqlite::Store::in_memory().await?;
//! let user = UserId::local();
//! let description = TaskDescription::new("buy milk")?;
//! store.apply(&user, &TaskChange::Add { description, from_others: false }, None).await?;
//! let open = store.list(&user, TaskFilter::Pending).await?;
//! assert_eq!(open[0].description.to_string(), "buy milk");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod blob; // long values, stored once in each conversation
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod change_feed; // broadcast of changes to subscribers
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod decode_error; // stored values that cannot be decoded
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod digest; // SHA-256 in hexadecimal
#[cfg(feature = "sqlite")]
mod faults; // a clock that steps, for crash tests
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod lock; // mutexes that stay usable after a panic
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod maintenance; // status, check, backup, retention, removal of users
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod record; // encoding of records as columns
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql; // the statements, shared by both databases
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod status; // pending calls and open turn, folded from events
mod worker; // identity of worker processes

#[cfg(feature = "contract")]
pub mod contract;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use maintenance::{
    CommitRisk, DatabaseStatus, Finding, Load, Maintenance, Removed, Replication,
    StoredConversation, TableRows, UserRemoved, UserRow,
};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use sql::copy::copy;
pub use worker::worker_id;

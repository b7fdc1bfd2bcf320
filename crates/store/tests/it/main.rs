//! The store against real files.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "panicking is how a test fails, in its helpers too"
)]

mod copy;
mod crash;
mod damage;
#[cfg(all(unix, feature = "postgres"))]
mod fail_over;
mod first_version;
mod format;
mod leaving;
mod maintenance;
#[cfg(all(unix, feature = "postgres"))]
mod messages;
#[cfg(feature = "postgres")]
#[path = "../../../../tests/not_run.rs"]
mod not_run;
#[cfg(feature = "postgres")]
mod pooler;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod server;
mod sqlite;
#[cfg(all(unix, feature = "postgres"))]
mod standby;

use std::path::PathBuf;

use tempfile::TempDir;

/// A folder that is removed after the test, and the place of a database in it.
fn place() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    (folder, path)
}

//! Turns PostgreSQL's errors into errors that name the database and the next step.

use std::fmt;

use adjutant_core::port::StoreError;

use crate::sql::{Failure, add_place};

/// Converts a failure into the error that the caller gets. `place` names the database for a person.
pub(super) fn explain(failure: Failure, place: &dyn fmt::Display) -> StoreError {
    match failure {
        Failure::Store(error) => add_place(error, place),
        Failure::Postgres(error) => from_driver(&error, place).with_source(error),
        #[cfg(feature = "sqlite")]
        Failure::Sqlite(error) => StoreError::unusable(format!("{place}: {error}")),
    }
}

/// Explains an error by its SQLSTATE. Source: PostgreSQL 17 documentation, appendix A, "PostgreSQL
/// Error Codes" (checked 2026-11).
fn from_driver(error: &sqlx::Error, place: &dyn fmt::Display) -> StoreError {
    match error {
        sqlx::Error::Database(error) if error.is_unique_violation() => StoreError::Conflict,
        sqlx::Error::Database(error) => match error.code().as_deref().unwrap_or_default() {
            "28000" | "28P01" => StoreError::unusable(format!(
                "{place} refuses the user ({}); check the name and the password in the address",
                error.message()
            )),
            "3D000" => StoreError::unusable(format!(
                "{place} does not exist; make it with `createdb`, or check the address"
            )),
            "42501" => StoreError::unusable(format!(
                "{place} does not allow it ({}); the user needs to own the database's schema",
                error.message()
            )),
            "42P07" => StoreError::unusable(format!(
                "{place} has tables of another program ({}); give Adjutant a database of its own",
                error.message()
            )),
            "25006" => StoreError::read_only(format!(
                "{place} is read-only, perhaps a standby; give the address of the primary"
            )),
            "53100" => StoreError::full(format!(
                "there is no space left for {place}; free some, then the same works"
            )),
            "58030" => StoreError::disk_failed(format!(
                "the server's disk fails to read or write {place} ({}); look at the server's log and at its disk",
                error.message()
            )),
            // Deadlock, serialization failure, too many connections, a transaction or a session that
            // was idle for too long because this process did not get to run, and the server shutting
            // down or starting up.
            "40P01" | "40001" | "53300" | "25P03" | "25P04" | "57P01" | "57P02" | "57P03"
            | "57P05" => {
                StoreError::unavailable(format!("{place}: {}; try again", error.message()))
            }
            code => StoreError::unusable(format!(
                "{place} does not do what is asked of it: {} ({code})",
                error.message()
            )),
        },
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
            StoreError::unreadable(format!("{place}: {error}; it is left as it is"))
        }
        sqlx::Error::PoolTimedOut => StoreError::unavailable(format!(
            "{place} gave no connection in time: it is not reachable, or busy; try again"
        )),
        sqlx::Error::Tls(error) => {
            StoreError::unusable(format!("{place}: no secure connection: {error}"))
        }
        other => StoreError::unavailable(format!("{place} cannot be reached: {other}")),
    }
}

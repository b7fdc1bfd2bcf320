//! What PostgreSQL says, in words that name the database and the next step.

use std::fmt;

use adjutant_core::port::StoreError;

use crate::sql::{Failure, placed};

/// As the caller gets it. `place`: the database as a person would name it.
pub(super) fn at(failure: Failure, place: &dyn fmt::Display) -> StoreError {
    match failure {
        Failure::Store(error) => placed(error, place),
        Failure::Postgres(error) => explain(&error, place),
        #[cfg(feature = "sqlite")]
        Failure::Sqlite(error) => StoreError::Unusable {
            message: format!("{place}: {error}"),
        },
    }
}

/// Source: PostgreSQL 17 documentation, appendix A, "PostgreSQL Error Codes" (checked 2026-11).
fn explain(error: &sqlx::Error, place: &dyn fmt::Display) -> StoreError {
    let unusable = |message: String| StoreError::Unusable { message };
    let unavailable = |message: String| StoreError::Unavailable { message };
    match error {
        sqlx::Error::Database(error) if error.is_unique_violation() => StoreError::Conflict,
        sqlx::Error::Database(error) => match error.code().as_deref().unwrap_or_default() {
            "28000" | "28P01" => unusable(format!(
                "{place} refuses the user ({}); check the name and the password in the address",
                error.message()
            )),
            "3D000" => unusable(format!(
                "{place} does not exist; make it with `createdb`, or check the address"
            )),
            "42501" => unusable(format!(
                "{place} does not allow it ({}); the user needs to own the database's schema",
                error.message()
            )),
            "42P07" => unusable(format!(
                "{place} has tables of another program ({}); give Adjutant a database of its own",
                error.message()
            )),
            "25006" => StoreError::ReadOnly {
                message: format!(
                    "{place} is read-only, perhaps a standby; give the address of the primary"
                ),
            },
            "53100" => StoreError::Full {
                message: format!(
                    "there is no space left for {place}; free some, then the same works"
                ),
            },
            // Deadlock, could not serialise, too many connections, shutting down, starting up.
            "40P01" | "40001" | "53300" | "57P01" | "57P02" | "57P03" => {
                unavailable(format!("{place}: {}; try again", error.message()))
            }
            code => unusable(format!(
                "{place} does not do what is asked of it: {} ({code})",
                error.message()
            )),
        },
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreError::Unreadable {
            message: format!("{place}: {error}; it is left as it is"),
        },
        sqlx::Error::PoolTimedOut => unavailable(format!(
            "{place} gave no connection in time: it is not reachable, or busy; try again"
        )),
        sqlx::Error::Tls(error) => unusable(format!("{place}: no secure connection: {error}")),
        other => unavailable(format!("{place} cannot be reached: {other}")),
    }
}

//! What SQLite says, in words that name the file and the next step.

use std::fmt;

use adjutant_core::port::StoreError;
use sqlx::error::DatabaseError;

use crate::sql::Failure;

/// As the caller gets it. `place`: the database as a person would name it.
pub(super) fn at(failure: Failure, place: &dyn fmt::Display) -> StoreError {
    match failure {
        Failure::Store(error) => crate::sql::placed(error, place),
        Failure::Sql(error) => explain(&error, place),
    }
}

/// Somebody else has the database locked.
pub(super) fn is_busy(failure: &Failure) -> bool {
    let Failure::Sql(error) = failure else { return false };
    matches!(error.as_database_error().and_then(primary_code), Some(code::BUSY | code::LOCKED))
}

/// SQLite could not open the file, or one of those that it makes beside it: it says the one of a file system that is mounted
/// for reading, and the other of a folder that may not be written to.
pub(super) fn is_not_openable(failure: &Failure) -> bool {
    let Failure::Sql(error) = failure else { return false };
    let code = error.as_database_error().and_then(extended_code);
    code.is_some_and(|code| code & 0xff == code::CANTOPEN || code == code::READONLY_DIRECTORY)
}

/// Primary result codes, and one extended code. Source: sqlite.org/rescode.html (checked 2026-11).
mod code {
    pub(super) const PERM: i32 = 3;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const READONLY: i32 = 8;
    pub(super) const IOERR: i32 = 10;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const NOTADB: i32 = 26;
    pub(super) const READONLY_DIRECTORY: i32 = 1544;
}

fn explain(error: &sqlx::Error, place: &dyn fmt::Display) -> StoreError {
    let unusable = |message: String| StoreError::Unusable { message };
    let unavailable = |message: String| StoreError::Unavailable { message };
    match error {
        sqlx::Error::Database(error) if error.is_unique_violation() => StoreError::Conflict,
        sqlx::Error::Database(error) => match primary_code(error.as_ref()) {
            Some(code::BUSY | code::LOCKED) => {
                unavailable(format!("{place} is locked by another process; try again, or stop that process"))
            }
            Some(code::PERM | code::READONLY) => StoreError::ReadOnly {
                message: format!(
                    "{place} may not be written to; make the file and its folder writable, or choose another place"
                ),
            },
            Some(code::CANTOPEN) => unusable(format!(
                "{place} cannot be opened; check that its folder exists and that you may read and write there"
            )),
            Some(code::FULL) => StoreError::Full {
                message: format!("there is no space left for {place}; free some, then the same again works"),
            },
            Some(code::IOERR) => unusable(format!(
                "{place} cannot be read or written ({error}); check the disk and its free space"
            )),
            Some(code::NOTADB) => unusable(format!(
                "{place} is not a database, or its start is damaged; it is left as it is: move it away, or put a backup in its place"
            )),
            Some(code::CORRUPT) => StoreError::Unreadable {
                message: format!(
                    "{place} is damaged and left as it is: copy it, then put a backup in its place or try `sqlite3 FILE .recover`"
                ),
            },
            _ => unusable(format!("{place} does not do what is asked of it: {error}")),
        },
        sqlx::Error::Io(error) => unusable(format!("{place} cannot be reached: {error}")),
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
            StoreError::Unreadable { message: format!("{place}: {error}; it is left as it is") }
        }
        sqlx::Error::PoolTimedOut => unavailable(format!("{place} is busy; try again")),
        other => unavailable(format!("{place}: {other}")),
    }
}

fn primary_code(error: &dyn DatabaseError) -> Option<i32> {
    extended_code(error).map(|extended| extended & 0xff)
}

fn extended_code(error: &dyn DatabaseError) -> Option<i32> {
    error.code()?.parse().ok()
}

//! Turns SQLite's errors into errors that name the file and the next step.

use std::fmt;

use adjutant_core::port::StoreError;
use rusqlite::{Error, ffi};

use crate::sql::Failure;

/// Converts a failure into the error that the caller gets. `place` names the database for a person.
pub(super) fn explain(failure: Failure, place: &dyn fmt::Display) -> StoreError {
    match failure {
        Failure::Store(error) => crate::sql::add_place(error, place),
        Failure::Sqlite(error) => from_driver(&error, place).with_source(error),
        #[cfg(feature = "postgres")]
        Failure::Postgres(error) => StoreError::unusable(format!("{place}: {error}")),
    }
}

/// Returns true if another connection holds a lock.
pub(super) fn is_busy(failure: &Failure) -> bool {
    matches!(
        code_of(failure).map(primary),
        Some(code::BUSY | code::LOCKED)
    )
}

/// Returns true if the disk is full.
pub(super) fn is_full(failure: &Failure) -> bool {
    code_of(failure).map(primary) == Some(code::FULL)
}

/// Returns true if SQLite could not open the file or one of those beside it. It reports the first
/// code on a read-only file system, and the second for a folder that may not be written to.
pub(super) fn is_not_openable(failure: &Failure) -> bool {
    let code = code_of(failure);
    code.is_some_and(|code| primary(code) == code::CANTOPEN || code == code::READONLY_DIRECTORY)
}

/// Copies a failure for another caller of the same batch: the driver's errors cannot be cloned.
pub(super) fn copy(failure: &Failure) -> Failure {
    match failure {
        Failure::Store(error) => Failure::Store(error.clone()),
        Failure::Sqlite(Error::SqliteFailure(error, message)) => {
            Error::SqliteFailure(*error, message.clone()).into()
        }
        Failure::Sqlite(other) => StoreError::unavailable(other.to_string()).into(),
        #[cfg(feature = "postgres")]
        Failure::Postgres(other) => StoreError::unavailable(other.to_string()).into(),
    }
}

/// Result codes of SQLite. Source: sqlite.org/rescode.html (checked 2026-11).
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
    pub(super) const CONSTRAINT_PRIMARYKEY: i32 = 1555;
    pub(super) const CONSTRAINT_UNIQUE: i32 = 2067;
}

fn from_driver(error: &Error, place: &dyn fmt::Display) -> StoreError {
    match extended(error) {
        Some(code::CONSTRAINT_PRIMARYKEY | code::CONSTRAINT_UNIQUE) => StoreError::Conflict,
        Some(code) => match primary(code) {
            code::BUSY | code::LOCKED => StoreError::unavailable(format!(
                "{place} is locked by another process; try again, or stop that process"
            )),
            code::PERM | code::READONLY => StoreError::read_only(format!(
                "{place} may not be written to; make the file and its folder writable, or choose another place"
            )),
            code::CANTOPEN => StoreError::unusable(format!(
                "{place} cannot be opened; check that its folder exists and that you may read and write there"
            )),
            code::FULL => StoreError::full(format!(
                "there is no space left for {place}; free some, then the same again works"
            )),
            code::IOERR => StoreError::unusable(format!(
                "{place} cannot be read or written ({error}); check the disk and its free space"
            )),
            code::NOTADB => StoreError::unusable(format!(
                "{place} is not a database, or its start is damaged; it is left as it is: move it away, or put a backup in its place"
            )),
            code::CORRUPT => StoreError::unreadable(format!(
                "{place} is damaged and left as it is: copy it, then put a backup in its place or try `sqlite3 FILE .recover`"
            )),
            _ => StoreError::unusable(format!("{place} does not do what is asked of it: {error}")),
        },
        None => StoreError::unavailable(format!("{place}: {error}")),
    }
}

fn code_of(failure: &Failure) -> Option<i32> {
    let Failure::Sqlite(error) = failure else {
        return None;
    };
    extended(error)
}

fn extended(error: &Error) -> Option<i32> {
    match error {
        Error::SqliteFailure(ffi::Error { extended_code, .. }, _)
        | Error::SqlInputError {
            error: ffi::Error { extended_code, .. },
            ..
        } => Some(*extended_code),
        _ => None,
    }
}

fn primary(extended: i32) -> i32 {
    extended & 0xff
}

//! Turns SQLite's errors into errors that name the file and the next step.

use std::fmt;

use adjutant_core::port::StoreError;
use rusqlite::{Error, ErrorCode, ffi};

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
    let code = code_of(failure).map(|code| code.code);
    matches!(
        code,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Returns true if the disk is full.
pub(super) fn is_full(failure: &Failure) -> bool {
    code_of(failure).is_some_and(|code| code.code == ErrorCode::DiskFull)
}

/// Returns true if SQLite could not open the file or one of those beside it. It reports the first
/// code on a read-only file system, and the second for a folder that may not be written to.
pub(super) fn is_not_openable(failure: &Failure) -> bool {
    code_of(failure).is_some_and(|code| {
        code.code == ErrorCode::CannotOpen || code.extended_code == ffi::SQLITE_READONLY_DIRECTORY
    })
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

/// Returns the error for a database that may only be read.
pub(super) fn read_only(place: &dyn fmt::Display) -> StoreError {
    StoreError::read_only(format!(
        "{place} may not be written to; make the file and its folder writable, or choose another place"
    ))
}

/// Explains an error by its result code. Source: sqlite.org/rescode.html (checked 2026-11).
fn from_driver(error: &Error, place: &dyn fmt::Display) -> StoreError {
    let Some(code) = driver_code(error) else {
        return StoreError::unavailable(format!("{place}: {error}"));
    };
    // The primary code of both is that of every violated constraint.
    if let ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_UNIQUE = code.extended_code {
        return StoreError::Conflict;
    }
    match code.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::unavailable(format!(
            "{place} is locked by another process; try again, or stop that process"
        )),
        ErrorCode::PermissionDenied | ErrorCode::ReadOnly => read_only(place),
        ErrorCode::CannotOpen => StoreError::unusable(format!(
            "{place} cannot be opened; check that its folder exists and that you may read and write there"
        )),
        ErrorCode::DiskFull => StoreError::full(format!(
            "there is no space left for {place}; free some, then the same again works"
        )),
        ErrorCode::SystemIoFailure => StoreError::disk_failed(format!(
            "the disk fails to read or write {place} ({error}); look at the system's log and at the disk, and have a backup at hand"
        )),
        ErrorCode::NotADatabase => StoreError::unusable(format!(
            "{place} is not a database, or its start is damaged; it is left as it is: move it away, or put a backup in its place"
        )),
        ErrorCode::DatabaseCorrupt => StoreError::unreadable(format!(
            "{place} is damaged and left as it is: copy it, then put a backup in its place or try `sqlite3 FILE .recover`"
        )),
        _ => StoreError::unusable(format!("{place} does not do what is asked of it: {error}")),
    }
}

fn code_of(failure: &Failure) -> Option<ffi::Error> {
    let Failure::Sqlite(error) = failure else {
        return None;
    };
    driver_code(error)
}

fn driver_code(error: &Error) -> Option<ffi::Error> {
    match error {
        Error::SqliteFailure(code, _) | Error::SqlInputError { error: code, .. } => Some(*code),
        _ => None,
    }
}

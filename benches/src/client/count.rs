//! Counts statements and commits of SQLite in this process, both for `sqlx` and for `rusqlite`,
//! which link the same library.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::ffi;

static STATEMENTS: AtomicU64 = AtomicU64::new(0);
static COMMITS: AtomicU64 = AtomicU64::new(0);

/// The counters at one point in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    /// Statements started, including `BEGIN` and `COMMIT`.
    pub(crate) statements: u64,
    /// Commits of transactions that wrote something.
    pub(crate) commits: u64,
}

/// Starts counting on every connection that is opened from now on.
#[expect(
    unsafe_code,
    reason = "SQLite's hooks are C functions; these two touch nothing but an atomic number"
)]
pub(crate) fn begin() {
    // SAFETY: the function has the signature SQLite calls it with, and lives as long as the
    // process.
    unsafe { ffi::sqlite3_auto_extension(Some(count_on)) };
}

/// Returns the current counters.
pub(crate) fn so_far() -> Counted {
    Counted {
        statements: STATEMENTS.load(Ordering::Relaxed),
        commits: COMMITS.load(Ordering::Relaxed),
    }
}

#[expect(
    unsafe_code,
    reason = "called by SQLite for a connection it has just opened"
)]
unsafe extern "C" fn count_on(
    connection: *mut ffi::sqlite3,
    _: *mut *mut c_char,
    _: *const ffi::sqlite3_api_routines,
) -> c_int {
    let nothing = std::ptr::null_mut();
    // SAFETY: the connection is open, and the hooks do not use their arguments.
    unsafe {
        ffi::sqlite3_trace_v2(
            connection,
            ffi::SQLITE_TRACE_STMT as c_uint,
            Some(on_statement),
            nothing,
        );
        ffi::sqlite3_commit_hook(connection, Some(on_commit), nothing);
    }
    ffi::SQLITE_OK
}

#[expect(unsafe_code, reason = "the signature SQLite wants")]
unsafe extern "C" fn on_statement(
    _: c_uint,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
) -> c_int {
    STATEMENTS.fetch_add(1, Ordering::Relaxed);
    0
}

#[expect(unsafe_code, reason = "the signature SQLite wants")]
unsafe extern "C" fn on_commit(_: *mut c_void) -> c_int {
    COMMITS.fetch_add(1, Ordering::Relaxed);
    0
}

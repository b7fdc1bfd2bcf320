//! Where the database is.

use std::fmt;

/// The database as a person would name it: without the password.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) database: String,
    pub(super) host: String,
    pub(super) port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the PostgreSQL database {} at {}:{}",
            self.database, self.host, self.port
        )
    }
}

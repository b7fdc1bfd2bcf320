//! The address of the database, for messages to people.

use std::fmt;

/// Database, host and port, without the password.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) database: String,
    pub(super) host: String,
    pub(super) port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the PostgreSQL database {} at {}:{}",
            self.database, self.host, self.port
        )
    }
}

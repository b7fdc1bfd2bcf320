//! The store against real files.

mod sqlite;

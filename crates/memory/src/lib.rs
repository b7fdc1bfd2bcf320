//! What outlives a session: facts and notes, in plain markdown that belongs to its owner.
//!
//! Files are read fresh and written atomically; nothing that was not written here is changed.
#![warn(clippy::print_stdout, clippy::print_stderr)]

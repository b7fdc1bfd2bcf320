//! The real binary, run as its users run it.

//! Who answers: one folder per LLM vendor, and the scripted model for tests and demos.
//!
//! Only this crate knows a vendor's JSON. Translation is pure; one transport holds the only sockets to vendors. No
//! environment variable is read here: whoever builds an adapter says what it needs.

mod retry; // sending again

#[cfg(feature = "scripted")]
pub mod scripted; // answers from a script

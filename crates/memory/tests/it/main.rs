//! Tests of the crate through its public API: files in, files and messages out. Each test has a new
//! vault.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests too"
)]

mod bytes; // the bytes of the owner stay
mod conversations; // conversations as notes
mod corrections; // texts that replace a fact
mod daily;
mod excluded; // notes that are kept from the assistant
mod facts;
mod harness;
mod moment;
mod notes;
mod paths;
mod processes; // two writers, and one that is killed
#[cfg(target_os = "linux")]
mod reads; // how many bytes are read
mod realistic; // vaults as people have them
mod recall; // automatic recall
#[path = "../../../../tests/size.rs"]
mod size; // the number of cases
mod task_lines; // the tasks in the notes
mod task_store; // the same, as the store of an assistant
mod tools;
mod trouble; // errors

//! The vault at its boundary: files in, files and words out. Every test has a vault of its own.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests too"
)]

mod bytes; // what must stay as it is
mod conversations; // what was said, as notes
mod daily;
mod facts;
mod harness;
mod moment;
mod notes;
mod paths;
mod processes; // two writers, and one that is killed
#[cfg(target_os = "linux")]
mod reads; // how much of files is read
mod realistic; // a vault as people have them
#[path = "../../../../tests/size.rs"]
mod size; // how many cases
mod task_lines; // the tasks in the notes
mod task_store; // the same, as the store of an assistant
mod tools;
mod trouble; // what goes wrong

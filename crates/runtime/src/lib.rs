//! Does what the turn machine asks: calls models, executes tools behind the gate, and journals every step, so that a
//! turn can go on after a crash where it stopped.
//!
//! [`Agent::run`] answers once. [`Agent::run_in`] keeps a conversation. [`Agent::stream`] shows the way there; the
//! blocking calls are the same stream, drained.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agent; // what a developer builds and runs
mod context; // what a turn knows
mod error; // why no turn could run
mod event; // what a listener sees
mod execute; // one tool execution: time, panic, cancellation
mod faults; // crash tests
mod in_memory; // the default store
mod run; // the driver
mod steps;

pub use agent::{Agent, AgentBuilder, HumanCall};
pub use context::RunContext;
pub use error::{BuildError, RunError};
pub use event::{RunEvent, RunStream};
pub use in_memory::InMemory;

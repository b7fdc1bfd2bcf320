//! What an agent can do: the task tools, tools made from closures, and what `#[tool]` expands to.
//!
//! Nothing here talks to a model or decides whether a call may run: that is the gate's work. A tool
//! learns who it acts for from its [`ToolContext`](adjutant_core::ToolContext) only, never from its
//! arguments.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod arguments; // JSON to a Rust type
mod function; // a tool from a closure
#[doc(hidden)]
pub mod macro_support; // what `#[tool]` expands to
mod read_result; // what was shown in part
pub mod task; // the task tools

pub use function::FunctionTool;
pub use read_result::ReadResult;
pub use task::task_tools;

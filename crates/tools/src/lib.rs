//! Tools for agents: tasks with their tools, tools made from closures, and what `#[tool]` expands
//! to.
//!
//! Nothing here talks to a model or decides whether a call may run: that is the gate's work. A tool
//! learns who it acts for from its [`ToolContext`](adjutant_core::ToolContext) only, never from its
//! arguments.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod arguments; // deserialisation of arguments
mod function; // tools from closures
#[doc(hidden)]
pub mod macro_support; // what `#[tool]` expands to
mod read_result; // reading on in a long tool result
pub mod task; // tasks: model, ports and tools

pub use function::FunctionTool;
pub use read_result::ReadResult;
pub use task::{
    DELETED_TASK_DAYS, DESCRIPTION_CHARS_MAX, InvalidDescription, NumbersChange, Task, TaskChange,
    TaskChanged, TaskDescription, TaskFilter, TaskId, TaskIndex, TaskNumber, TaskStore, task_tools,
};

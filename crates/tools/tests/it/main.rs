//! The tools at their boundary: arguments in, data and words out.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests too"
)]

mod function_tool;
mod harness;
mod task_tools;
mod tool_macro;

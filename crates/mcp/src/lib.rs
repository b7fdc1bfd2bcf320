//! MCP in both directions: [`server`] offers an agent's tools to MCP clients, and [`client`] makes
//! the tools of MCP servers available to an agent.
//!
//! Calls from clients pass the agent's gate and journal like a model's. The tools of other servers
//! are ordinary [`adjutant_core::Tool`]s and pass the gate of the agent that registers them.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod client; // tools of MCP servers for an agent
mod extension; // recognition of our own client and server
mod lock; // mutexes that stay usable after a panic
pub mod server; // an agent as an MCP server

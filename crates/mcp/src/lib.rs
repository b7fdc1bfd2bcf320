//! MCP both ways: an agent's tools for other clients, and the tools of MCP servers for an agent.
//!
//! What is served passes the agent's gate and log; what is fetched passes the gate of whoever calls
//! it.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod client; // the tools of other servers
mod ours; // how a client and a server of ours know each other
pub mod server; // an agent's tools for other clients

//! An agent's tools for MCP clients, by rmcp's own client.

mod asking; // the agent itself as a tool
mod calls; // what comes of a call
mod confirmation; // what a person has to agree to
mod harness;

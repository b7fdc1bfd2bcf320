//! The tools of other people's MCP servers, as tools of an agent.
//!
//! [`Servers::start`] connects to every configured server; [`Servers::tools`] are
//! [`adjutant_core::Tool`]s that an agent registers like its own, so that each call passes the
//! agent's gate, journal and log. What a server says about its tools is taken as its word and can
//! be overruled ([`ToolRules`]); what it answers is data, bounded and never interpreted.
//!
//! A server may ask its client for a model's answer, for files or for the person's words. All of
//! that is declined.

mod backoff; // how often it is tried again
mod config; // which server, and what it may
mod connection; // one connection, from handshake to end
mod definition; // what a server says of a tool
mod failure; // what a failed request means
mod group; // a child and what it started
mod handler; // what a server asks of us
mod log; // what a server says for people
mod names; // what a tool is called here
mod pins; // what a person agreed to
mod process; // a server in a child process
mod report; // how it is
mod result; // what a tool answered
mod server; // one server, kept running
mod servers; // all of them
mod tool; // one tool

pub use backoff::Backoff;
pub use config::{
    Child, Injected, InvalidServerName, Remote, ServerConfig, ServerName, ToolRules, Via,
};
pub use pins::{ChangedTool, PinnedTools, Pins};
pub use report::{Health, JoinedTool, LeftOut, ServerReport};
pub use servers::{Log, Servers, StartError, Surroundings};

//! A client for MCP servers, whose tools become tools of an agent.
//!
//! [`Servers::start`] connects to every configured server. [`Servers::tools`] returns
//! [`adjutant_core::Tool`]s that an agent registers like its own, so that each call passes the
//! agent's gate, journal and log. A server's annotations are trusted unless [`ToolRules`] overrule
//! them; its results are data, bounded and never interpreted.
//!
//! A server may ask its client for a model's answer (sampling), for files (roots) or for user input
//! (elicitation). All of these are declined.
//!
//! # Examples
//! ```no_run
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use std::sync::Arc;
//!
//! use adjutant_mcp::client::{Child, ClientOptions, ServerConfig, ServerName, Servers, Transport};
//!
//! let git = ServerConfig::new(
//!     ServerName::new("git")?,
//!     Transport::Child(Child {
//!         program: "uvx".into(),
//!         arguments: vec!["mcp-server-git".to_owned()],
//!         variables: [("PATH".to_owned(), std::env::var("PATH")?.into())].into(),
//!         directory: None,
//!     }),
//! );
//! let options = ClientOptions {
//!     http: None,
//!     log: Arc::new(|server, line| eprintln!("{server}: {line}")),
//!     pins: None,
//! };
//! let servers = Servers::start(vec![git], options).await?;
//! for tool in servers.tools() {
//!     println!("{}", tool.definition().name);
//! }
//! servers.stop().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backoff; // reconnection policy
mod call; // one call of a server's tool
mod config; // configuration of a server
mod connection; // handshake and one connection
mod definition; // conversion of tool definitions
mod failure; // classification of failed requests
mod handler; // a server's requests to its client
mod http; // requests to remote servers, and their refusals
mod log; // rate limit for a server's output
mod names; // unique names of tools
mod offered; // tools of a server as agreed to, and now
mod offers; // prompts and resources of a server
mod pins; // accepted tool definitions
mod process; // a server as a child process
mod process_group; // ending a child and its descendants
mod reads; // tools whose names say that they only read
mod report; // state of servers and tools
mod result; // conversion of results
mod server; // supervision of one server
mod server_message; // what the library drops from messages
mod servers; // all servers of an agent
mod throttle; // limit on a server's requests
mod tool; // a server's tool as a tool of the agent

pub use backoff::Backoff;
pub use config::{
    Child, Injected, InvalidServerName, Remote, ServerConfig, ServerName, ToolRules, Transport,
    matches_name,
};
pub use log::Log;
pub use pins::{ChangedTool, PinnedTools, Pins};
pub use report::{Health, JoinedTool, LeftOut, ServerReport};
pub use servers::{ClientOptions, Servers, StartError, UnannotatedReads};

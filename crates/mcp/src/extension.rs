//! The experimental capability by which our client and our server recognise each other.

/// The name of the experimental capability of our server.
pub(crate) const SERVER: &str = "adjutant";

/// The member of a call's `_meta` in which our client sends such a server the conversation of the
/// calling agent, so that an agent that is its own MCP server does not call itself endlessly.
pub(crate) const CALLED_IN: &str = "adjutant/conversation";

//! The agent over HTTP.
//!
//! Who asks is who a token or a proxy says, never who the body or the model says. Every error is a
//! problem document (RFC 9457). What a turn does is the runtime's business: here it is translated
//! and guarded.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod access; // what opens the service for a user, seen and revoked by themselves
mod admin; // how it is, for whoever runs it
mod administration; // what they look at
mod agui; // AG-UI: what a turn is on its wire
mod auth; // who can say who asks
mod branches; // other ways to go on in a conversation
mod chat; // a message in, a turn's response out
mod decisions; // what was decided, and why
mod door; // who is let in, and for how long
pub mod export; // a conversation in a file
mod feedback; // what people think of answers
mod figures; // the figures, for whoever asks for them
mod guard; // which hosts and pages may ask
mod health; // whether it lives, and whether it can work
mod idempotency; // what a client calls its request
mod length; // of texts that clients send
mod limits; // what one user may ask for
mod live; // the runs of this process
mod mcp; // the tools for MCP clients
mod mcp_sessions; // which of them have a session
mod mcp_turns; // turns that they ask for
mod me; // who asks, and whom
#[cfg(feature = "memory")]
mod memory; // what is remembered of the vault's owner
mod metrics; // figures for whoever runs it
mod named; // errors that say which request they are of
#[cfg(feature = "memory")]
mod notes; // where notes that answers link to are opened
mod object; // bodies that are objects
mod observe; // what is known of every request
mod openai; // the agent for clients of OpenAI's API
mod openapi; // the description, and a page to read it
mod origins; // pages of other origins that may ask
mod page; // the web page
mod paging; // lists that are read page by page
mod pending; // everything that waits for an answer
mod problem; // errors as people and programs read them
mod process; // figures of the process
mod remote; // runs told to other processes, and by them
mod request_id; // what a request is called by
mod router; // every address
mod runs; // runs that go on whether anybody listens or not
#[cfg(feature = "memory")]
mod search; // what was said, by what is meant
mod serve; // from a socket to an orderly end
mod session; // the browser's cookie
mod sign_in; // at a provider, and back again
mod slow_body; // what comes slowly
mod state; // what every handler sees
mod tasks; // the tasks beside a conversation
mod threads; // conversations, and what was said in them
mod titles; // what a conversation is called, in the model's words
mod token; // secrets that stand for a user
mod tools; // a tool in a person's own hand
mod trace; // the trace that a request belongs to
mod usage; // what a user may still ask for
mod used; // when tokens were used
mod user; // who a request is from
mod watched; // streams end once whoever asked may not ask any more
mod wire; // what a turn came to, in the words of the wire

pub use administration::{Administration, ServerState, Servers};
pub use auth::{
    AccessRules, Auth, InvalidJwt, InvalidOidc, InvalidProxy, Jwt, KeysError, Oidc, OidcConfig,
    RoleRules, TrustedProxy, networks,
};
pub use door::ConnectionLimits;
pub use ipnet::IpNet;
pub use limits::UserLimits;
pub use metrics::{Gauge, MetricsAccess};
pub use origins::{InvalidOrigin, Origin};
pub use serve::{ServeError, Service, ServiceConfig};
pub use state::{BackgroundPrompts, Gauges, Readiness};
pub use token::{NewToken, NoRandomness, new_token};

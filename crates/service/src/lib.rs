//! The agent over HTTP.
//!
//! Who asks is who the token says, never who the body or the model says. Every error is a problem document (RFC 9457).
//! What a turn does is the runtime's business: here it is translated and guarded.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod auth; // who asks
mod chat; // a message in, a turn's response out
mod guard; // which hosts and pages may ask
mod health; // whether it lives, and whether it can work
mod problem; // errors as people and programs read them
mod router; // every address
mod serve; // from a socket to an orderly end
mod token; // secrets that stand for a user
mod wire; // what a turn came to, in the words of the wire

pub use auth::Auth;
pub use serve::{ServeError, Service, ServiceConfig};
pub use token::{NewToken, NoRandomness, new_token};

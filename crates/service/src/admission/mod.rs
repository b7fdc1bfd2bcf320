//! Admission: the limits on connections, request rates and concurrent turns, and the loop that
//! accepts and serves connections.
//!
//! A request in progress is never cut, except when its client neither sends nor reads. An idle
//! connection is closed after a while, or when its slot is needed.

mod accept; // the accept loop, the task of a connection
mod connection_limits; // number of connections, timeouts
mod connections; // registry of open connections
mod liveness; // the thread that accepts connections
mod observed; // stream and body that record their progress
mod user_limits; // rate limits, concurrent turns

pub(crate) use accept::{Shutdown, serve};
pub use connection_limits::ConnectionLimits;
pub(crate) use connections::{Connection, Connections};
pub(crate) use liveness::serve_with_liveness;
pub use user_limits::UserLimits;
pub(crate) use user_limits::{Limits, Rate, RunningTurn};

//! `/v1/runs`: turns told as AG-UI events while they go on, and told again to whoever lost the
//! connection.
//!
//! A run goes on whether anybody listens or not. What is told is kept for a while in this process;
//! after that, and on any other replica, the same is read from the journal.

mod asked; // what a request asks of the conversation
mod drive; // a turn runs, and is told
mod recorded; // what the journal knows of a turn
mod routes; // the addresses
mod sse; // events on the wire

pub(crate) use routes::routes;

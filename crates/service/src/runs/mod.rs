//! `/v1/runs`: turns as streams of AG-UI events, which can be resumed after a disconnect.
//!
//! A run continues without subscribers. Its events stay in this process for a while; later, and on
//! other replicas, a shorter form is read from the journal.

mod drive; // execution and publication of a run
mod replay; // runs of other processes, or from the journal
mod request; // interpretation of a request
mod routes; // the HTTP routes
mod sse; // server-sent events

pub(crate) use routes::routes;

//! The service over a socket: a script for a model, a real store, real tools.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "panicking is how a test fails, in its helpers too"
)]

mod access;
mod admission;
mod background;
mod branches;
mod chat;
#[cfg(feature = "memory")]
mod conversation_search;
mod counting;
mod deltas;
#[cfg(feature = "memory")]
mod facts;
mod feedback;
mod growth;
mod guard;
mod harness;
mod liveness;
#[path = "../../../../tests/logged.rs"]
mod logged;
mod long_message;
mod mcp;
#[path = "../../../../tests/not_run.rs"]
mod not_run;
mod openai;
mod replicas;
mod report;
mod resources;
mod runs;
mod scopes;
#[path = "../../../store/tests/it/server.rs"]
mod server;
mod settings;
mod text_sent_once;
mod trace;
mod usage;
mod whole_data;

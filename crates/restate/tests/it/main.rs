//! A real Restate server and a real PostgreSQL server, workers that are killed, and what must hold
//! afterwards. The model's words are a script; the tools' work is done in this process, which is
//! never killed and logs every call.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "panicking is how a test fails, in its helpers too"
)]

mod bench; // servers, tools and workers to try things on
mod handles; // Restate's own handles on a call
mod invariants; // what must hold after every run
#[path = "../../../durability/tests/it/journal.rs"]
mod journal; // what must hold of a conversation
mod kills; // a worker killed at every boundary; Restate alone has it gone on with
#[path = "../../../../tests/not_run.rs"]
mod not_run;
mod registration; // which worker it calls
mod restate; // Restate's server
#[path = "../../../store/tests/it/server.rs"]
mod server; // PostgreSQL
mod service; // the whole service, and both killed
mod signed; // Restate signs its calls
mod storm; // killed again and again, under load
mod streams; // what happens in a worker, told where it was asked
mod tools; // what a turn does to the world
mod versions; // one beside another, or in its place
mod worker; // the process under test

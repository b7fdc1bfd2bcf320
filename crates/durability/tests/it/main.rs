//! The fault-injection suite: a worker is killed, suspended, disconnected and doubled at every
//! boundary, and nothing is lost and nothing is done twice.
//!
//! The worker is a process of its own (`src`). Its model and its tools are in this process, which
//! is never killed and logs every call. Boundaries are numbered as they are passed: a run that was
//! not killed at its boundary has passed the last one.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "panicking is how a test fails, in its helpers too"
)]

mod agents; // two agents on one store, and a store from before agents had names
mod bench; // databases and workers to test
mod budgets; // budgets per day of several agents
mod clock; // clocks that step
mod dice; // reproducible random numbers
mod edges; // lost answers, repeats, expiry, cancellation, a full disk
mod fail_over; // a standby that takes over without the last commits
mod invariants; // checks after every run
mod journal; // checks of a conversation
mod kills; // SIGKILL at every boundary, and at every pair of them
mod lost; // lost answers to commits
mod model; // the scripted model
#[path = "../../../../tests/not_run.rs"]
mod not_run;
mod own_store; // calls that change the journal's own store
mod power; // power losses at any time
mod replicas; // recovery shared by replicas
mod scene; // scripted conversations
#[path = "../../../store/tests/it/server.rs"]
mod server; // a PostgreSQL server
#[path = "../../../../tests/size.rs"]
mod size;
#[path = "../../../store/tests/it/standby.rs"]
mod standby; // a standby of a PostgreSQL server
mod storm; // SIGKILL at random times, under load
mod two_agents; // two agents, killed at the same time
mod worker; // the worker process
mod world; // the model and the tools
mod zombie; // SIGSTOP, takeover, SIGCONT

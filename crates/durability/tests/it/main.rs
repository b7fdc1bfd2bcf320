//! The fault-injection suite: a worker is killed, stopped, cut off and doubled at every place it
//! can be, and whatever it did before, nothing is lost and nothing is done twice.
//!
//! The worker is a process of its own (`src`). Its model and its tools are in this process, which
//! is never killed and logs every call. Boundaries number themselves: a run that is not killed has
//! passed the last one.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "panicking is how a test fails, in its helpers too"
)]

mod agents; // two agents on one store, and one that is older than names
mod bench; // databases and workers to try things on
mod budgets; // budgets of the day, of several agents
mod dice; // chance that repeats itself
mod edges; // silence, repeats, lateness, cancellation, a full disk
mod invariants; // what must hold after every run
mod journal; // what must hold of a conversation
mod kills; // SIGKILL at every boundary, and at every pair of them
mod lost; // the answer to a commit is lost
mod model; // what the model answers
#[path = "../../../../tests/not_run.rs"]
mod not_run;
mod own_store; // calls that change the store of the journal
mod power; // the power fails, at any time
mod replicas; // many who take up the same work
mod scene; // what is said in a conversation
#[path = "../../../store/tests/it/server.rs"]
mod server; // PostgreSQL
#[path = "../../../../tests/size.rs"]
mod size;
mod storm; // SIGKILL at any time, under load
mod two_agents; // killed beside each other
mod worker; // the process under test
mod world; // the model and the tools
mod zombie; // SIGSTOP, takeover, SIGCONT

//! Deterministic simulation: runs the real agents of several processes in one thread over a
//! simulated store, clock and network.
//!
//! A seed decides everything that happens in a run: which processes are killed or suspended and
//! when, which messages are lost or late, what a model answers. A failing seed fails again.
//!
//! Everything outside of the engine is simulated: the store behind the `Journal` and `BudgetStore`
//! ports, with the lease rules of the SQL stores; the relay, the dispatcher, the model, the tools,
//! and users. The engine itself (folding, leases, budgets, notifications, dispatch) is the one that
//! ships.

mod chance; // random numbers of a seed
mod chaos; // kills, suspensions, broken connections
mod dispatch; // the dispatcher
mod invariants; // checks of a finished run
mod link; // connection of a process to the store
mod listener; // listening processes
mod lives; // the current life of each worker
mod lock; // locking of shared state
mod model; // the model
mod outside; // systems that tools change
mod people; // users
mod plan; // the faults of a run
mod process; // a process: running, suspended or dead
mod relay; // messages between processes
mod run; // one run, from seed to report
mod store; // the store
mod sweep; // many runs in parallel
mod tools; // tools
mod trace; // the trace of a run
mod worker; // workers
mod world; // the shared environment

pub use plan::{Options, Plant};
pub use run::{Failure, Report, run, run_traced};
pub use sweep::Sweep;

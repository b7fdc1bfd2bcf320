//! Runs the real agents of several processes in one thread over a simulated store, clock and
//! network. A seed decides everything that happens in a run: who is killed or stands still and
//! when, what is lost or late, what a model says. A seed that fails fails again.
//!
//! Simulated is what is outside the engine: the store behind the `Journal` and `BudgetStore` ports,
//! with the rules of the SQL stores for claims; the relay, the dispatcher, the model, the tools,
//! and people. The engine itself (folding, claims, budgets, wake-ups, dispatch) is the one that
//! ships.

mod chance; // what the seed decides
mod chaos; // what breaks
mod dispatch; // who hands conversations to whom
mod ear; // who hears
mod invariants; // what holds
mod link; // the way to the store
mod lives; // who works at present
mod lock; // what is shared
mod model; // what answers
mod outside; // what tools did
mod people; // who asks
mod plan; // the faults of a run
mod process; // what can be killed
mod relay; // what processes tell each other
mod run; // one run
mod store; // what is stored
mod sweep; // many runs
mod tools; // what asks the world outside
mod trace; // what happened
mod worker; // what works
mod world; // what all share

pub use plan::{Options, Plant};
pub use run::{Failure, Report, run, run_traced};
pub use sweep::Sweep;

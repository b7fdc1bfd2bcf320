//! Does what the turn machine asks: calls models, executes tools behind the gate, and journals
//! every step, so that a turn can go on after a crash where it stopped.
//!
//! [`Agent::run`] answers once. [`Agent::run_in`] keeps a conversation. [`Agent::stream`] shows the
//! way there; the blocking calls are the same stream, drained.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agent; // what a developer runs
mod answered; // what became of an input
mod audience; // those who wait for a turn that runs elsewhere
mod branch; // another way to go on
mod builder; // and builds
mod call; // a tool without a model
mod clock; // the time
mod compact; // old turns in few words
mod context; // what a turn knows
mod dispatch; // who has a conversation go on, if not this process
mod edited; // a waiting call with other arguments
mod error; // why no turn could run
mod event; // what a listener sees
mod execute; // one tool execution: time, panic, cancellation
mod faults; // crash tests
mod fresh; // what is said anew every turn
mod give_up; // ending a turn from outside
mod heart; // the signs of life of this process
mod held; // the claim on a conversation, and its state
mod in_memory; // the default store
mod inner; // what an agent consists of
mod log; // what happened in it, and what is not written yet
mod model_call; // calls of the model, for logs and figures
mod name_it; // what a conversation is called
mod output; // the schema of its answers
mod prices; // what a model call costs
mod purse;
mod queue; // who waits for a conversation to be free
mod recall; // what of a memory is told with a message
mod recent; // the conversations that were worked on last
mod respond; // one input, and its answer
mod run; // the driver
mod spending; // what it may spend
mod steps;
mod stream; // the way to an answer
mod sweep; // what nobody works on
mod take_up; // the same in one conversation, watched
mod trace; // where the time of a turn went
mod turn_tools; // which tools it has
mod waiting; // what happens in a conversation meanwhile
mod warning; // what an operator should know
mod window; // how full it is

pub use agent::Agent;
pub use branch::{Branch, BranchError};
pub use builder::AgentBuilder;
pub use call::CallOutcome;
pub use compact::Compaction;
pub use context::RunContext;
pub use dispatch::{Dispatch, DispatchCall, DispatchFigures, NotDispatched, Sent};
pub use error::{BuildError, RunError};
pub use event::RunEvent;
pub use fresh::{FreshInstruction, TurnInstruction};
pub use in_memory::InMemory;
pub use model_call::ModelCall;
pub use prices::Prices;
pub use recall::{Recall, RecallRequest};
pub use stream::RunStream;
pub use sweep::Swept;
pub use trace::read_trace;
pub use window::{ContextUse, Counting};

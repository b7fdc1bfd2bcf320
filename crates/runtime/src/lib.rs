//! The agent runtime: calls models, executes tools behind the gate, and journals every step, so
//! that a turn continues after a crash where it stopped.
//!
//! [`Agent::builder`] makes an [`Agent`]. [`Agent::run`] answers once, [`Agent::run_in`] continues
//! a conversation, and [`Agent::stream`] returns the events of a turn while it runs. The decisions
//! of a turn (call a model, call tools, ask a person, finish) are made by
//! [`adjutant_core::turn`]; this crate does the waiting: sockets, clocks, tools and stores.
//!
//! # How an input becomes an answer
//!
//! 1. **Submit**: the input is accepted durably ([`RunEvent::Accepted`]).
//! 2. **Lease**: this process acquires the exclusive, expiring right to the conversation. A
//!    heartbeat extends it while turns run.
//! 3. **Run**: the turn is driven from one journaled step to the next.
//! 4. **Recover**: what a lost process left open is continued by [`Agent::recover`] in another.
//!
//! An agent made with [`Agent::with_dispatch`] hands step 2 and 3 to another process.
//!
//! # Examples
//!
//! ```
//! use adjutant_providers::scripted::{ScriptedModel, text};
//! use adjutant_runtime::Agent;
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let agent = Agent::builder("greeter")
//!     .model(ScriptedModel::new([text("Hello, Ann!")]))
//!     .instruction("Greet people by their names.")
//!     .build()?;
//! let response = agent.run("I am Ann.").await?;
//! assert_eq!(response.content, "Hello, Ann!");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agent; // the handle that a program runs turns with
mod agent_info; // its accessors: name, model, tools, stores
mod branch; // branches: regenerate an answer, edit a message
mod builder; // collects and checks the parts of an agent
mod call; // tool calls without a model
mod change_notifier; // wakes tasks when a journal reports a change
mod clock; // system time
mod compact; // compaction: summarising old turns on request
mod context; // user, conversation and history of a run
mod daily_budget; // this process's shares of the budgets of a day
mod dispatch; // handing inputs to other processes, with a circuit breaker
mod drop_turn; // ending a stuck turn as an operator
mod edited_call; // a pending call with other arguments
mod error; // errors of building and running
mod event; // the events of a running turn
mod execute; // one tool execution: timeout, panic, cancellation
mod faults; // crash points for tests
mod heartbeat; // keeps the leases of this process alive
mod in_memory; // the default store
mod inner; // the parts of an agent, shared by its clones
mod input_outcome; // the response to an input, read from the journal
mod lease; // acquiring a conversation: its lease and its state
mod log; // the state of a conversation while a turn runs, and its unwritten events
mod model_call; // metrics and log lines of model calls
mod outliving; // calls that outlive the stop of their turn
mod output; // output schemas
mod prices; // the price table
mod queue; // number of inputs that wait for their conversation
mod recall; // automatic recall
mod recent; // cache of conversation states
mod recovery; // turns whose worker was lost
mod respond; // submits one input and returns its response
mod run; // the driver of a turn
mod spending; // budgets of an agent
mod steps; // the journaled steps of a turn
mod stream; // a run as a stream of events
mod title; // generated titles of conversations
mod trace; // the trace of a turn, read from a journal
mod turn_instruction; // text added to the instruction for one turn
mod turn_listeners; // events of turns that run in another task or process
mod turn_tools; // the tools of one turn
mod warning; // warnings for operators
mod window; // context window usage

pub use agent::Agent;
pub use branch::{Branch, BranchError};
pub use builder::AgentBuilder;
pub use call::CallOutcome;
pub use compact::Compaction;
pub use context::RunContext;
pub use dispatch::{Dispatch, DispatchCall, DispatchError, DispatchFigures, SendResult};
pub use edited_call::EditError;
pub use error::{BuildError, RunError};
pub use event::RunEvent;
pub use in_memory::InMemory;
pub use model_call::ModelCall;
pub use prices::Prices;
pub use recall::{Recall, RecallRequest};
pub use recovery::Recovery;
pub use stream::RunStream;
pub use trace::read_trace;
pub use turn_instruction::{InstructionAddition, TurnInstruction};
pub use window::{ContextUse, Counting};

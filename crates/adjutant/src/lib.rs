//! An LLM agent runtime. An agent built on it can touch the world only through tools; every tool call is checked against
//! its schema, confirmed by a human when it destroys something, journaled before it happens, and can be explained
//! afterwards.
//!
//! # Ten lines to an agent with a tool
//!
//! ```no_run
#![doc = include_str!("../examples/hello_agent.rs")]
//! ```
//!
//! # What a turn is
//!
//! [`Agent::run`] takes a message and runs one *turn*: the model is asked; if it calls tools, each call goes through the
//! *gate* (known tool, arguments fit the JSON Schema, references resolved, policy, confirmation), is journaled, executed,
//! and its result goes back to the model, until it answers in words. Every bound is on by default: 5 rounds of tools,
//! 1,024 output tokens, 30 seconds for a tool, 120 seconds for the turn ([`limits`]). A turn always ends in one named
//! [`OutcomeCategory`]; [`Agent::run`] is `Ok` for each of them, with words for the person in
//! [`AgentResponse::content`] and the typed cause in [`AgentResponse::error`].
//!
//! [`Agent::run_in`] keeps a conversation in a [`RunContext`]; [`Agent::stream`] shows the same turn as events.
//!
//! # How to add a tool
//!
//! Annotate an `async fn` with [`tool`](macro@tool): its doc comment becomes the description, its parameters the
//! arguments. A tool with state implements [`Tool`]; one made at run time is a [`FunctionTool`]. `#[tool(destructive)]`
//! makes a human confirm each call: the turn waits, as data, and [`Agent::answer`] or a plain "yes" in
//! [`Agent::run_in`] runs exactly what was shown.
//!
//! # How to add a provider
//!
//! Implement [`LanguageModel`]: `generate` and `stream` take a [`GenerateRequest`] and give a [`GenerateResponse`]. The
//! rules an adapter keeps are in its documentation: retry only before the first delta, keep the provider's opaque state
//! on its part, report what could not be sent, map each failure to a [`ModelError`].
//!
//! # How to add a store
//!
//! Implement [`port::Journal`] and [`port::LogStore`] (and [`port::TaskStore`] for the task tools), and hand it to
//! [`AgentBuilder::journal`]. The default keeps everything in memory ([`InMemory`]); the feature `sqlite` keeps it in a
//! file. The feature `contract` of `adjutant-store` has the tests each backend passes.
//!
//! # Testing without a network
//!
//! [`scripted::ScriptedModel`] answers from a script and records what it was asked:
//!
//! ```
#![doc = include_str!("../examples/testing.rs")]
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `gemini` | yes | Google's Gemini |
//! | `sqlite` | no | the SQLite store |
//! | `embedded` | no | a language model inside the process |
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod error; // what can go wrong on the way to a running agent
mod model; // the model the environment names

pub use adjutant_core::*;
pub use adjutant_macros::tool;
pub use adjutant_providers::scripted;
pub use adjutant_runtime::*;
pub use adjutant_tools::{FunctionTool, task, task_tools};
pub use error::{Error, Result};
pub use model::{Model, ModelFromEnvError};

#[cfg(feature = "embedded")]
pub use adjutant_embedded as embedded;
#[cfg(feature = "gemini")]
pub use adjutant_providers::gemini;
#[cfg(feature = "sqlite")]
pub use adjutant_store::{sqlite, worker_id};

#[doc(hidden)]
pub use adjutant_tools::macro_support as __private;

/// What most programs need: `use adjutant::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Agent, AgentResponse, LanguageModel, Model, RunContext, RunEvent, Tool, ToolContext, ToolError,
        UserId, tool,
    };
}

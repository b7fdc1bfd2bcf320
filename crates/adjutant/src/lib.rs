//! An LLM agent runtime. An agent built on it can touch the world only through tools; every tool
//! call is checked against its schema, confirmed by a human when it destroys something, journaled
//! before it happens, and can be explained afterwards.
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
//! # How to get a value instead of words
//!
//! [`AgentBuilder::output`] (or [`Agent::with_output`], for one request) asks for an answer that fits the JSON Schema of a
//! type; [`AgentResponse::output()`] gives the value. The provider's own form is used where it has one, else the
//! instruction says it; the answer is always checked, asked for again within the bounds if it does not fit, and never
//! a success if it does not. The type derives `JsonSchema`: add the crate `schemars` 1, or write
//! `#[schemars(crate = "adjutant::schemars")]` on it.
//!
//! ```
#![doc = include_str!("../examples/structured.rs")]
//! ```
//!
//! # What a turn costs
//!
//! [`AgentResponse::cost`] is what the provider reports, else what a dated table of [`Prices`] says; `None` is "not known",
//! and never free. [`AgentBuilder::prices`] takes your own.
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
//! file, `postgres` in a database that any number of processes share. The feature `contract` of `adjutant-store` has the tests each backend passes.
//!
//! # How to put it on the network
//!
//! With the feature `serve`, `agent.serve("127.0.0.1:8080").await` is a page, an API and MCP for this machine; the module
//! `service` has the parts for a team: tokens, other addresses, an orderly end. A request that carries the header
//! `Idempotency-Key` may be sent again, also to another process on the same journal, and gets what became of it.
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
//! | `openai` | no | OpenAI, and every server that speaks its language |
//! | `anthropic` | no | Anthropic's Claude |
//! | `ollama` | no | models of an Ollama server |
//! | `sqlite` | no | the SQLite store |
//! | `postgres` | no | the PostgreSQL store |
//! | `memory` | no | facts and notes in a vault of plain Markdown, and the tools for them: the module `memory` |
//! | `serve` | no | the agent as a service: page, HTTP, MCP |
//! | `embedded` | no | a language model inside the process |
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod error; // what can go wrong on the way to a running agent
mod model; // the model the environment names
#[cfg(feature = "serve")]
mod serve; // from an agent to a service

pub use adjutant_core::*;
pub use adjutant_macros::tool;
pub use adjutant_providers::scripted;
pub use adjutant_runtime::*;
pub use adjutant_tools::{FunctionTool, task, task_tools};
pub use error::{Error, Result};
// What `AgentBuilder::output` is generic over, in the version it means.
pub use model::{Model, ModelFromEnvError};
pub use schemars;

#[cfg(feature = "embedded")]
pub use adjutant_embedded as embedded;
#[cfg(feature = "memory")]
pub use adjutant_memory as memory;
#[cfg(feature = "anthropic")]
pub use adjutant_providers::anthropic;
#[cfg(feature = "gemini")]
pub use adjutant_providers::gemini;
#[cfg(feature = "ollama")]
pub use adjutant_providers::ollama;
#[cfg(feature = "openai")]
pub use adjutant_providers::openai;
#[cfg(feature = "_http")]
pub use adjutant_providers::{Connection, HttpModel, Provider, Transport, TransportError};
#[cfg(feature = "serve")]
pub use adjutant_service as service;
#[cfg(feature = "postgres")]
pub use adjutant_store::postgres;
#[cfg(feature = "sqlite")]
pub use adjutant_store::sqlite;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use adjutant_store::worker_id;
#[cfg(feature = "serve")]
pub use serve::Serve;

#[doc(hidden)]
pub use adjutant_tools::macro_support as __private;

/// What most programs need: `use adjutant::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "serve")]
    pub use crate::Serve;
    pub use crate::{
        Agent, AgentResponse, LanguageModel, Model, RunContext, RunEvent, Tool, ToolContext,
        ToolError, UserId, tool,
    };
}

//! An LLM agent runtime: a model, an instruction and tools make an [`Agent`], which answers
//! messages.
//!
//! - **Tools behind a gate.** Every tool call is checked against its JSON Schema and a policy;
//! destructive calls wait for a person's confirmation.
//! - **Durable turns.** Every step is journaled before it takes effect. A turn continues after a
//! crash where it stopped, and no call with an effect runs twice.
//! - **Limits by default.** Rounds of tools, tokens, time and money are limited; every turn ends in
//! one named [`OutcomeCategory`].
//! - **Explainable.** Decisions and tool invocations are logged and can be read per turn.
//!
//! # A first agent
//!
//! An agent with one tool; the model comes from the environment, such as `GEMINI_API_KEY`
//! ([`Model::from_env`]):
//!
//! ```no_run
#![doc = include_str!("../examples/hello_agent.rs")]
//! ```
//!
//! [`Agent::run`] answers one message in a new conversation; [`Agent::run_in`] continues the
//! conversation of a [`RunContext`]. Each runs one *turn*: the model is asked; its tool calls pass
//! the gate, are journaled and executed; their results go back to the model, until it answers in
//! text. By default a turn has at most 5 rounds of tools, 1,024 output tokens per model call, 30
//! seconds for a tool and 120 seconds in all ([`limits`]). [`Agent::run`] is `Ok` for every outcome,
//! with a text for the user in [`AgentResponse::content`] and the typed cause in
//! [`AgentResponse::error`].
//!
//! # Tools
//!
//! Annotate an `async fn` with [`tool`](macro@tool): its doc comment becomes the description, its
//! parameters the arguments. A tool with state implements [`Tool`]; one that is made at run time is
//! a [`FunctionTool`]. Tools that the caller executes, such as a browser, are added with
//! [`Agent::with_client`].
//!
//! ```
//! use adjutant::prelude::*;
//! use adjutant::scripted::{ScriptedModel, call, text};
//! use serde_json::json;
//!
//! /// Converts kilometres to miles.
//! #[tool(read_only)]
//! async fn to_miles(kilometres: f64) -> f64 {
//!     kilometres * 0.621_371
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> adjutant::Result<()> {
//! let model = ScriptedModel::new([
//!     call("to_miles", json!({"kilometres": 42.195})),
//!     text("A marathon is 26.2 miles."),
//! ]);
//! let agent = Agent::builder("converter")
//!     .model(model)
//!     .instruction("Convert units.")
//!     .tool(to_miles)
//!     .build()?;
//! let response = agent.run("How long is a marathon in miles?").await?;
//! assert_eq!(response.content, "A marathon is 26.2 miles.");
//! # Ok(())
//! # }
//! ```
//!
//! # Tests without a network
//!
//! [`scripted::ScriptedModel`] answers from a script and records the requests it gets:
//!
//! ```
#![doc = include_str!("../examples/testing.rs")]
//! ```
//!
//! # Streaming
//!
//! [`Agent::stream`] returns the events of a turn ([`RunEvent`]) while it runs:
//!
//! ```
#![doc = include_str!("../examples/streaming.rs")]
//! ```
//!
//! # Confirmation
//!
//! `#[tool(destructive)]` makes every call wait for a person. The pending call is data, so the turn
//! can wait for days and survive restarts. [`Agent::answer`], or a plain "yes" in
//! [`Agent::run_in`], runs exactly the call that was shown:
//!
//! ```
#![doc = include_str!("../examples/confirmation.rs")]
//! ```
//!
//! # Structured output
//!
//! [`AgentBuilder::output`], or [`Agent::with_output`] for one request, asks for an answer that fits
//! the JSON Schema of a type; [`AgentResponse::output()`] returns the value. The provider's own
//! structured output is used where it has one. The answer is always checked, and asked for again if
//! it does not fit. The type derives `JsonSchema`: add the crate `schemars` 1, or write
//! `#[schemars(crate = "adjutant::schemars")]` on it.
//!
//! ```
#![doc = include_str!("../examples/structured.rs")]
//! ```
//!
//! # Storage
//!
//! By default everything is kept in memory ([`InMemory`]). The feature `sqlite` stores it in a file,
//! `postgres` in a database that any number of processes share. [`Agent::recover`] continues what a
//! crash left open. For another store implement [`port::Journal`], [`port::LogStore`] and
//! [`port::ConversationStore`], and pass it to [`AgentBuilder::journal`]; the feature `contract` of
//! `adjutant-store` has the tests that each backend passes.
//!
//! # Costs and budgets
//!
//! [`AgentResponse::cost`] is the cost that the provider reports, else that of a dated table of
//! [`Prices`]; `None` means unknown, never free. [`AgentBuilder::budgets`] limits tokens, calls, time
//! and money per turn and per day.
//!
//! # Providers
//!
//! A feature per provider adds its adapter (see below). For another one implement [`LanguageModel`]:
//! its documentation lists the rules of adapters, such as to retry only before the first delta, and
//! to map each failure to a [`ModelError`].
//!
//! # Serving over HTTP
//!
//! With the feature `serve`, `agent.serve("127.0.0.1:8080").await` starts a web page, an HTTP API
//! and MCP for this machine. The module `service` has the parts for a team: tokens, other addresses,
//! graceful shutdown. A request with the header `Idempotency-Key` may be repeated, also to another
//! process on the same journal, and gets the response to the first one.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `gemini` | yes | Google's Gemini |
//! | `openai` | no | OpenAI, and every server that speaks its protocol |
//! | `anthropic` | no | Anthropic's Claude |
//! | `ollama` | no | models of an Ollama server |
//! | `sqlite` | no | the SQLite store |
//! | `postgres` | no | the PostgreSQL store |
//! | `memory` | no | facts and notes in a vault of plain Markdown, and their tools: the module `memory` |
//! | `serve` | no | the agent as a service: web page, HTTP, MCP |
//! | `embedded` | no | a language model inside the process |
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod error; // the error type of programs with an agent
mod model; // the model that the environment configures
#[cfg(feature = "serve")]
mod serve; // serving an agent over HTTP

// Everything of these crates: a program needs no other dependency for its own tools and stores.
pub use adjutant_core::*;
pub use adjutant_macros::tool;
pub use adjutant_providers::scripted;
pub use adjutant_runtime::*;
pub use adjutant_tools::{
    DELETED_TASK_DAYS, DESCRIPTION_CHARS_MAX, FunctionTool, InvalidDescription, NumbersChange,
    Task, TaskChange, TaskChanged, TaskDescription, TaskFilter, TaskId, TaskIndex, TaskNumber,
    TaskStore, task, task_tools,
};
pub use adjutant_weak as weak;
pub use error::{Error, Result};
// `AgentBuilder::output` takes a `schemars::JsonSchema`, which must be of this version.
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

/// The items that most programs need: `use adjutant::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "serve")]
    pub use crate::Serve;
    pub use crate::{
        Agent, AgentResponse, LanguageModel, Model, RunContext, RunEvent, Tool, ToolContext,
        ToolError, UserId, tool,
    };
}

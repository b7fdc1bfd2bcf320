//! HTTP service of an agent: chat, runs as event streams, AG-UI, OpenAI-compatible APIs, MCP and a
//! web page.
//!
//! The main types are [`Service`], which listens and serves until it is stopped, and
//! [`ServiceConfig`], its settings. The user of a request comes from its token or from a trusted
//! proxy, never from its body or from a model. Every error is a problem document (RFC 9457), except
//! where a client of another API expects that API's format. Running turns is the task of
//! `adjutant-runtime`; this crate authenticates, admits, translates and streams.
//!
//! # Examples
//!
//! ```
//! use adjutant_core::CancellationToken;
//! use adjutant_providers::scripted::ScriptedModel;
//! use adjutant_runtime::Agent;
//! use adjutant_service::{Auth, Service, ServiceConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::builder("assistant")
//!     .instruction("Answer in one sentence.")
//!     .model(ScriptedModel::demo()?)
//!     .build()?;
//!
//! let config = ServiceConfig::new("127.0.0.1:0".parse()?, Auth::None);
//! let service = Service::bind(agent, config).await?;
//! println!("listening on http://{}", service.address());
//!
//! // `stop` would be cancelled by a signal handler.
//! let stop = CancellationToken::new();
//! stop.cancel();
//! service.run(stop).await?;
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod access; // routes to list, create and revoke tokens and sessions
mod admin; // routes for operators: overview, users, turns
mod administration; // data sources of the operator routes
mod admission; // connection limits, rate limits, concurrent turns
mod agui; // the AG-UI protocol: input, events, messages
mod auth; // authentication: tokens, JWT, OpenID Connect, trusted proxies
mod branches; // editing a message: branches of a conversation
mod chat; // POST /v1/chat: a message in, a response out
mod decisions; // the decision log: list and export
pub mod export; // a conversation as Markdown or JSON
mod extract; // extractors for bodies, queries and path parameters
mod feedback; // ratings of answers
mod guard; // host and origin checks (DNS rebinding, CSRF)
mod health; // liveness and readiness probes
mod idempotency; // the Idempotency-Key header
mod json_object; // JSON bodies that must be objects
mod limit_setting; // settings that change the limits of a turn
mod live; // runs in progress in this process, and their events
mod mcp; // the MCP server's route
mod mcp_error; // errors of /mcp
mod mcp_sessions; // sessions of MCP clients
mod mcp_turns; // turns requested by MCP clients
mod me; // the caller, the agent and its capabilities
#[cfg(feature = "memory")]
mod memory; // facts and notes of a user
mod metrics; // Prometheus metrics
mod metrics_route; // GET /metrics
#[cfg(feature = "memory")]
mod notes; // links to notes
mod observe; // request id, trace, metrics and log line of every request
mod openai; // Chat Completions and Responses APIs
mod openapi; // the OpenAPI document and its page
mod origins; // CORS: origins whose pages may call the service
mod page; // the web page's files
mod paging; // page size and cursors of lists
mod pending; // calls that wait for confirmation or for a result
mod problem; // errors as problem documents (RFC 9457)
mod problem_response; // the error format of the API that was called
mod process; // metrics of the process
mod remote; // event streams of runs in other processes
mod request_id; // the X-Request-Id header
mod router; // all routes and middleware
mod runs; // POST /v1/runs: turns as event streams
#[cfg(feature = "memory")]
mod search; // search in past conversations
mod serve; // binding, serving, recovery and shutdown
mod session; // browser sessions and their cookie
mod settings; // settings of users
mod sign_in; // OpenID Connect login
mod slow_body; // timeouts of request bodies
mod state; // state shared by all handlers
mod stream_access; // ends event streams when access is revoked
mod tasks; // the task list
mod text_length; // length limits of texts in requests
mod thread_id; // ids of conversations in requests
mod threads; // conversations and their messages
mod time_zone; // time zones that clients name
mod titles; // generated conversation titles
mod token; // creation of token secrets
mod token_use; // last-used times of tokens
mod tools; // calling a tool without a model
mod trace; // W3C trace context
mod usage; // what is left of a user's limits and budgets
mod user; // extractors: caller and role
mod whole_data; // requests over all that a user has
mod wire; // response types shared by several routes

pub use administration::{Administration, ServerState, Servers};
pub use admission::{ConnectionLimits, UserLimits};
pub use auth::{
    AccessRules, Auth, InvalidJwt, InvalidOidc, InvalidProxy, Jwt, KeysError, Oidc, OidcConfig,
    RoleRules, TrustedProxy, networks,
};
pub use ipnet::IpNet;
pub use limit_setting::limit_setting;
pub use metrics::{Gauge, MetricsAccess};
pub use origins::{InvalidOrigin, Origin};
pub use serve::{ServeError, Service, ServiceConfig};
pub use state::{BackgroundPrompts, Gauges, Readiness};
pub use token::{NewToken, NoRandomness, new_token};

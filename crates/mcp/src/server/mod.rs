//! An agent's tools and the agent itself for MCP clients, over any transport, with the
//! conversations of their user to be read and ways to begin.
//!
//! A call is one of `Agent::call_tool`: it passes the same gate and journal as a model's. For whom
//! is settled when the session is opened, and nothing in a message can change it. What a person has
//! to confirm is confirmed by a person: through the client, if it can ask them, else on the page or
//! with `adjutant pending`.

mod ask; // whether the person agrees, and how they can be asked
mod begin; // whether a turn may begin
mod call; // what every call has in common
mod describe; // a tool as MCP declares it
mod own_tool; // the agent itself as a tool
mod progress; // a client is told that a call runs
mod prompts; // ways to begin
mod resources; // conversations to be read
mod result; // what came of a call, as MCP says it
mod session; // one client
mod stdio; // over standard input and output
mod turn; // a turn that a client asks for

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::UserId;
use adjutant_runtime::{Agent, RunError};
use rmcp::model::{Implementation, JsonObject, ServerCapabilities, ServerConfig};
use tokio_util::task::TaskTracker;

use crate::ours;

pub use begin::{Begin, Ended};
pub use session::Session;
pub use stdio::{StdioError, serve_stdio};

/// Time that a person has to confirm a call.
const CONFIRMATION: Duration = Duration::from_secs(120);
/// How many tools `tools/list` gives at once.
const PAGE: usize = 50;

/// An agent as an MCP server. Cheap to clone; one for all sessions of a process.
#[derive(Clone)]
pub struct McpServer {
    shared: Arc<Shared>,
}

struct Shared {
    agent: Agent,
    expiry: Duration,
    calls: TaskTracker,
    begin: Option<Begin>,
    page: usize,
    report: Box<dyn Fn(&RunError) + Send + Sync>,
}

/// What of [`McpServer`] can be otherwise than usual.
pub struct McpServerBuilder {
    agent: Agent,
    expiry: Duration,
    calls: TaskTracker,
    begin: Option<Begin>,
    page: usize,
    report: Box<dyn Fn(&RunError) + Send + Sync>,
}

impl std::fmt::Debug for McpServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServerBuilder")
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

impl McpServerBuilder {
    /// Sets how long a client may take to ask its person. Default 2 minutes. What waits for a
    /// person elsewhere waits as long as the agent's own `confirmation_expiry`.
    #[must_use]
    pub fn confirmation_expiry(self, expiry: Duration) -> Self {
        Self { expiry, ..self }
    }

    /// Counts the calls that run, for whoever wants to wait for them at the end.
    #[must_use]
    pub fn calls(self, calls: TaskTracker) -> Self {
        Self { calls, ..self }
    }

    /// Makes the agent itself a tool too, `ask`: a client says something to it, as its user, and
    /// gets its answer. `begin` is asked before each of its turns. Not offered by default: it needs
    /// a model, and each call costs what a turn costs.
    #[must_use]
    pub fn asked(self, begin: Begin) -> Self {
        Self {
            begin: Some(begin),
            ..self
        }
    }

    /// How many tools `tools/list` gives at once. Default 50; 0 is 1.
    #[must_use]
    pub fn page(self, tools: usize) -> Self {
        Self {
            page: tools.max(1),
            ..self
        }
    }

    /// Hears what is wrong with the store. Clients are told that something is, and not what.
    #[must_use]
    pub fn report(self, report: impl Fn(&RunError) + Send + Sync + 'static) -> Self {
        Self {
            report: Box::new(report),
            ..self
        }
    }

    /// The server.
    #[must_use]
    pub fn build(self) -> McpServer {
        let shared = Shared {
            agent: self.agent,
            expiry: self.expiry,
            calls: self.calls,
            begin: self.begin,
            page: self.page,
            report: self.report,
        };
        McpServer {
            shared: Arc::new(shared),
        }
    }
}

impl McpServer {
    /// Starts to make a server of an agent.
    #[must_use]
    pub fn builder(agent: Agent) -> McpServerBuilder {
        McpServerBuilder {
            agent,
            expiry: CONFIRMATION,
            calls: TaskTracker::new(),
            begin: None,
            page: PAGE,
            report: Box::new(|_| {}),
        }
    }

    /// What answers one client, as this user.
    #[must_use]
    pub fn session(&self, user: UserId) -> Session {
        Session::new(self.clone(), user)
    }

    /// The calls that run.
    #[must_use]
    pub fn calls(&self) -> &TaskTracker {
        &self.shared.calls
    }

    fn agent(&self) -> &Agent {
        &self.shared.agent
    }
}

/// Describes the server of an agent to a client: capabilities, name, version and instructions.
#[expect(
    deprecated,
    reason = "logging is deprecated from 2026-07-28 on, and the versions before have it"
)]
fn info(agent: &Agent) -> ServerConfig {
    let capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_prompts()
        .enable_resources()
        .enable_logging()
        .enable_experimental_with(BTreeMap::from([(
            ours::SERVER.to_owned(),
            JsonObject::new(),
        )]))
        .build();
    let implementation = Implementation::new(agent.display_name(), env!("CARGO_PKG_VERSION"))
        .with_description(agent.description());
    let instructions = format!(
        "{} Every result is {{success, data?, error?}}. What destroys something is confirmed by the person first: \
         if a result says confirmation_required, nothing was done yet, and its message says what to do.",
        agent.description()
    );
    ServerConfig::new(capabilities)
        .with_server_info(implementation)
        .with_instructions(instructions.trim())
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer")
            .field("agent", self.agent())
            .finish_non_exhaustive()
    }
}

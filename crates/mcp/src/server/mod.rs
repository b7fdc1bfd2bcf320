//! An agent's tools for MCP clients, over any transport.
//!
//! A call passes the same gate, validation and log as one of `Agent::call_tool`: the client is the human of it. Who that is
//! is settled when the session is opened, and nothing in a message can change it.

mod ask; // whether the person agrees, and how they can be asked
mod confirmation; // tokens that stand for one shown call
mod describe; // a tool as MCP declares it
mod result; // what came of a call, as MCP says it
mod session; // one client
mod stdio; // over standard input and output

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::StoreError;
use adjutant_core::{ToolDefinition, UserId};
use adjutant_runtime::Agent;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use tokio_util::task::TaskTracker;

use confirmation::Confirmations;
pub use confirmation::{NoRandomness, Secret};
pub use session::Session;
pub use stdio::{StdioError, serve_stdio};

/// How long a person has to confirm a call. Source: `DESIGN.md` 4.
const CONFIRMATION: Duration = Duration::from_secs(120);
/// How many tools `tools/list` gives at once.
const PAGE: usize = 50;

/// An agent as an MCP server. Cheap to clone; one for all sessions of a process, because a confirmation may be asked for in
/// one session and given in another.
#[derive(Clone)]
pub struct McpServer {
    shared: Arc<Shared>,
}

struct Shared {
    agent: Agent,
    confirmations: Confirmations,
    calls: TaskTracker,
    page: usize,
    report: Box<dyn Fn(&StoreError) + Send + Sync>,
}

/// What of [`McpServer`] can be otherwise than usual.
pub struct McpServerBuilder {
    agent: Agent,
    secret: Option<Secret>,
    expiry: Duration,
    calls: TaskTracker,
    page: usize,
    report: Box<dyn Fn(&StoreError) + Send + Sync>,
}

impl std::fmt::Debug for McpServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServerBuilder").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl McpServerBuilder {
    /// What confirmation tokens are signed with. Replicas that share it, and the database, take each other's tokens.
    /// Default: random, so that a token is good for the process that made it.
    #[must_use]
    pub fn secret(self, secret: Secret) -> Self {
        Self { secret: Some(secret), ..self }
    }

    /// How long a person has to confirm a call. Default 2 minutes; never longer than the agent's own
    /// `confirmation_expiry`.
    #[must_use]
    pub fn confirmation_expiry(self, expiry: Duration) -> Self {
        Self { expiry, ..self }
    }

    /// Counts the calls that run, for whoever wants to wait for them at the end.
    #[must_use]
    pub fn calls(self, calls: TaskTracker) -> Self {
        Self { calls, ..self }
    }

    /// How many tools `tools/list` gives at once. Default 50; 0 is 1.
    #[must_use]
    pub fn page(self, tools: usize) -> Self {
        Self { page: tools.max(1), ..self }
    }

    /// Hears what is wrong with the store. Clients are told that something is, and not what.
    #[must_use]
    pub fn report(self, report: impl Fn(&StoreError) + Send + Sync + 'static) -> Self {
        Self { report: Box::new(report), ..self }
    }

    /// The server.
    ///
    /// # Errors
    /// [`NoRandomness`] if a secret had to be made.
    pub fn build(self) -> Result<McpServer, NoRandomness> {
        let secret = match self.secret {
            Some(secret) => secret,
            None => Secret::random()?,
        };
        let shared = Shared {
            agent: self.agent,
            confirmations: Confirmations::new(&secret, self.expiry),
            calls: self.calls,
            page: self.page,
            report: self.report,
        };
        Ok(McpServer { shared: Arc::new(shared) })
    }
}

impl McpServer {
    /// Starts to make a server of an agent.
    #[must_use]
    pub fn builder(agent: Agent) -> McpServerBuilder {
        McpServerBuilder {
            agent,
            secret: None,
            expiry: CONFIRMATION,
            calls: TaskTracker::new(),
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

    /// The definition of a tool.
    fn definition(&self, name: &str) -> Option<&ToolDefinition> {
        self.agent().tools().get(name).map(|tool| tool.definition())
    }

    /// What a client is told about this server.
    #[expect(
        deprecated,
        reason = "logging is deprecated from 2026-07-28 on, and the versions before have it"
    )]
    fn info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_logging().build();
        let implementation = Implementation::new(self.agent().name(), env!("CARGO_PKG_VERSION"))
            .with_description(self.agent().description());
        let instructions = format!(
            "{} Every result is {{success, data?, error?}}. What destroys something is confirmed by the person first: \
             if a result says confirmation_required, nothing was done yet; show its preview to the person and do as its \
             message says.",
            self.agent().description()
        );
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(instructions.trim())
    }
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("agent", self.agent()).finish_non_exhaustive()
    }
}

//! An MCP server for an agent: its tools, the agent itself as a tool, the user's conversations as
//! resources, and prompts to start with. Works over any transport.
//!
//! A call is one of `Agent::call_tool` and passes the same gate and journal as a model's. The user
//! is fixed when the session is opened; no message can change it. Confirmations are answered by a
//! person: through the client, if it can ask its user, otherwise on the page or with `adjutant
//! pending`.

mod ask_tool; // the agent itself as a tool
mod call; // idempotency key, HTTP request, errors
mod confirmation; // asking the user for confirmation
mod declaration; // tools as clients see them
mod may_answer; // the right to answer questions
mod progress; // progress notifications
mod prompts; // prompts to start with
mod resources; // conversations as resources
mod result; // results of calls
mod session; // one client
mod stdio; // standard input and output as transport
mod turn;
mod turn_hooks; // callbacks at start and end of a turn

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adjutant_runtime::{Agent, RunError};
use rmcp::model::{Implementation, JsonObject, ServerCapabilities, ServerConfig};
use tokio_util::task::TaskTracker;

use crate::extension;

pub use may_answer::MayNotAnswer;
pub use session::Session;
pub use stdio::{StdioError, serve_stdio};
pub use turn_hooks::{BeginTurn, TurnEnded};

/// Default time for a client to ask its user.
const CONFIRMATION: Duration = Duration::from_secs(120);
/// Default number of tools in a page of `tools/list`.
const PAGE: usize = 50;

/// An agent as an MCP server. Cheap to clone; one for all sessions of a process.
///
/// # Examples
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use adjutant_core::UserId;
/// use adjutant_mcp::server::McpServer;
/// use adjutant_runtime::Agent;
///
/// # fn agent() -> Option<Agent> { None }
/// # let Some(agent) = agent() else { return };
/// let server = McpServer::builder(agent).page(20).build();
/// let session = server.session(UserId::local());
/// assert_eq!(session.user(), &UserId::local());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct McpServer {
    shared: Arc<McpServerBuilder>,
}

/// Options of an [`McpServer`], with defaults set by [`McpServer::builder`].
pub struct McpServerBuilder {
    agent: Agent,
    expiry: Duration,
    calls: TaskTracker,
    begin: Option<BeginTurn>,
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
    /// Sets the time for a client to ask its user. Default 2 minutes. A call that is confirmed
    /// elsewhere waits for the agent's own `confirmation_expiry`.
    #[must_use]
    pub fn confirmation_expiry(self, expiry: Duration) -> Self {
        Self { expiry, ..self }
    }

    /// Sets the tracker of running calls, for waiting for them at the end.
    #[must_use]
    pub fn calls(self, calls: TaskTracker) -> Self {
        Self { calls, ..self }
    }

    /// Offers the agent itself as a tool, `ask`: a client sends it a message as its user and gets
    /// the answer. `begin` is called before each turn. Off by default: it needs a model, and each
    /// call costs a turn.
    #[must_use]
    pub fn offer_agent(self, begin: BeginTurn) -> Self {
        Self {
            begin: Some(begin),
            ..self
        }
    }

    /// Sets the number of tools in a page of `tools/list`. Default 50; 0 is taken as 1.
    #[must_use]
    pub fn page(self, tools: usize) -> Self {
        Self {
            // An empty page would have no last tool to go on from.
            page: tools.max(1),
            ..self
        }
    }

    /// Sets a callback for errors of the store. Clients only learn that there was an error.
    #[must_use]
    pub fn report(self, report: impl Fn(&RunError) + Send + Sync + 'static) -> Self {
        Self {
            report: Box::new(report),
            ..self
        }
    }

    /// Finishes with these options.
    #[must_use]
    pub fn build(self) -> McpServer {
        McpServer {
            shared: Arc::new(self),
        }
    }
}

impl McpServer {
    /// Starts to build a server for an agent.
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

    /// Returns the tracker of running calls.
    #[must_use]
    pub fn calls(&self) -> &TaskTracker {
        &self.shared.calls
    }

    fn agent(&self) -> &Agent {
        &self.shared.agent
    }
}

/// Describes the server to a client: capabilities, name, version and instructions.
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
            extension::SERVER.to_owned(),
            JsonObject::new(),
        )]))
        .build();
    let implementation = Implementation::new(agent.display_name(), env!("CARGO_PKG_VERSION"))
        .with_description(agent.description());
    let instructions = format!(
        "{} Every result is {{success, data?, error?, note?}}. What destroys something is confirmed by the person first: \
         if a result says confirmation_required, nothing was done yet, and its message says what to do.",
        agent.description()
    );
    ServerConfig::new(capabilities)
        .with_server_info(implementation)
        .with_instructions(instructions.trim())
}

//! Reports on servers and their tools, for readiness checks and status pages.

use std::fmt;

use adjutant_core::Annotations;

use super::ServerName;

/// The state of a connection to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// The server is being started, and its tools are those accepted before. A call waits for it.
    Starting,
    /// The connection is open.
    Connected,
    /// The connection was lost and is being restored.
    Restarting {
        /// The reason for the loss.
        reason: String,
    },
    /// The server could not be started or the connection could not be restored. If it once ran, the
    /// next call tries again.
    Failed {
        /// The reason for the failure.
        reason: String,
    },
    /// The server is disabled by its configuration.
    Disabled,
    /// The server was stopped by [`Servers::stop`](super::Servers::stop).
    Stopped,
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::Connected => f.write_str("connected"),
            Self::Restarting { reason } => write!(f, "restarting: {reason}"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
            Self::Disabled => f.write_str("disabled"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// The state of a server and its tools.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// The name under which the server is configured.
    pub name: ServerName,
    /// The program, or the URL without user, password and query.
    pub place: String,
    /// State of the connection.
    pub health: Health,
    /// Name and version of the server's software.
    pub software: Option<String>,
    /// Tools that the agent can call.
    pub tools: Vec<JoinedTool>,
    /// Tools that the agent cannot call, with reasons.
    pub left_out: Vec<LeftOut>,
    /// Names of tools that were added, removed or changed since they were accepted, or since the
    /// start if nothing is pinned ([`Pins`](super::Pins)). They are not called, and new ones are
    /// not registered.
    pub changed: Vec<String>,
    /// Probable mistakes in the configuration.
    pub warnings: Vec<String>,
}

impl ServerReport {
    /// Returns the estimated size of the declarations of its tools in each request to a model, in
    /// tokens.
    #[must_use]
    pub fn tokens(&self) -> u32 {
        let tokens = self.tools.iter().map(|tool| tool.tokens);
        tokens.fold(0, u32::saturating_add)
    }
}

/// A registered tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedTool {
    /// Our name for the tool, `server__tool`.
    pub name: String,
    /// The server's name for the tool.
    pub original: String,
    /// The server's title, for people.
    pub title: Option<String>,
    /// The annotations after the rules were applied.
    pub annotations: Annotations,
    /// Estimated size of its declaration in each request to a model, in tokens.
    pub tokens: u32,
}

/// A tool that is not registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The server's name for the tool.
    pub original: String,
    /// The reason for the rejection.
    pub reason: String,
    /// True if the configuration rejects the tool, so that no warning is needed.
    pub by_rule: bool,
}

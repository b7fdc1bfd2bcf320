//! How a server is, and what of it joined: for `/readyz`, for `adjutant tools`, for a library's own
//! page.

use std::fmt;

use adjutant_core::Annotations;

use super::ServerName;

/// How a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It is being started, and its tools are those that were agreed to before. A call waits for
    /// it.
    Starting,
    /// It answers.
    Connected,
    /// It was lost and is being brought back.
    Restarting {
        /// Why it was lost.
        reason: String,
    },
    /// It could not be started, or could not be brought back. If it once ran, the next call tries
    /// again.
    Failed {
        /// Why.
        reason: String,
    },
    /// It is switched off.
    Disabled,
    /// It was told to end.
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

/// A server and its tools.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// What it is called.
    pub name: ServerName,
    /// The program, or the address without what may be secret in it.
    pub place: String,
    /// How it is.
    pub health: Health,
    /// What it calls itself, with its version.
    pub software: Option<String>,
    /// Tools that joined.
    pub tools: Vec<JoinedTool>,
    /// Tools that did not.
    pub left_out: Vec<LeftOut>,
    /// Tools that came, went or changed since they were agreed to, or since the start if nothing is
    /// kept ([`Pins`](super::Pins)). One that is another by now is not called, and one that came
    /// does not join.
    pub changed: Vec<String>,
    /// What looks like a mistake in its configuration.
    pub warnings: Vec<String>,
}

/// A tool that joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedTool {
    /// What it is called here, `server__tool`.
    pub name: String,
    /// What its server calls it.
    pub original: String,
    /// What its server would show to a person.
    pub title: Option<String>,
    /// What it does to the world, as far as it is believed.
    pub annotations: Annotations,
}

/// A tool that did not join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// What its server calls it.
    pub original: String,
    /// Why.
    pub reason: String,
    /// Whether the person's own rules say so, which nobody needs to be told.
    pub by_rule: bool,
}

//! Errors of tools.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::Empty;

/// The failure of a tool. `Display` is for the model and the log. The message of the tool itself is
/// safe to show to the user; for the other failures the user reads
/// [`words::broke_off`](crate::words::broke_off).
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolError {
    /// The entity that the call names does not exist; list them again before trying again.
    #[error("there is no {what} {id}")]
    NotFound {
        /// The kind of entity, such as `task`.
        what: String,
        /// The id that was searched for.
        id: String,
    },
    /// The arguments fit the schema, and still make no sense.
    #[error("{message}")]
    Invalid {
        /// The problem, and what would be right.
        message: String,
    },
    /// The call certainly had no effect, or the tool itself refused it.
    #[error("{message}")]
    Failed {
        /// The failure, described without internals.
        message: String,
    },
    /// The call may have had its effect: no answer came after the request was sent.
    #[error("{message}")]
    Unknown {
        /// Everything that is known, described without internals.
        message: String,
    },
    /// The tool panicked: a bug in the tool.
    #[error("the tool broke down; this is a bug in the tool")]
    BrokeDown,
    /// The tool took longer than it may.
    #[error("the tool did not finish within {} s ({setting})", .limit.as_secs_f64())]
    TimedOut {
        /// The bound that was exceeded.
        limit: Duration,
        /// The setting that the bound comes from.
        #[serde(default = "default_timeout_setting")]
        setting: String,
    },
}

/// The setting that bounds a tool without a bound of its own.
fn default_timeout_setting() -> String {
    "tool_timeout".to_owned()
}

impl ToolError {
    /// Creates the error for a tool that took longer than the turn's `tool_timeout`.
    #[must_use]
    pub fn timed_out(limit: Duration) -> Self {
        Self::TimedOut {
            limit,
            setting: default_timeout_setting(),
        }
    }

    /// Creates a failure without effect; the same call may succeed later.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
        }
    }

    /// Creates a failure of arguments that make no sense.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid {
            message: message.into(),
        }
    }
}

impl From<Empty> for ToolError {
    fn from(error: Empty) -> Self {
        Self::invalid(error.to_string())
    }
}

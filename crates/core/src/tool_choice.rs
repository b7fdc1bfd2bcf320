//! The tool choice: which tools a model may or has to call.

use serde::{Deserialize, Serialize};

/// The tools that the model may or has to call before it answers in words. The choice holds until
/// the caller has brought results, which come with the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", content = "tool", rename_all = "snake_case")]
pub enum ToolChoice {
    /// Any of them, or none. The default.
    #[default]
    Auto,
    /// None: a call that the model makes all the same is one of a tool that there is not.
    None,
    /// One at least. Words without a call are asked for again, and then an error.
    Required,
    /// The one of this name, and no other.
    Named(String),
}

impl ToolChoice {
    /// Returns whether a tool may be called.
    #[must_use]
    pub fn permits(&self, tool: &str) -> bool {
        match self {
            Self::Auto | Self::Required => true,
            Self::None => false,
            Self::Named(name) => name == tool,
        }
    }

    /// Returns whether an answer without a call is none.
    #[must_use]
    pub fn requires_call(&self) -> bool {
        matches!(self, Self::Required | Self::Named(_))
    }

    /// Returns whether it is the default.
    #[must_use]
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

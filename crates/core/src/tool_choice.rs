//! Tool choice: a constraint on which tools a model may or has to call.

use serde::{Deserialize, Serialize};

/// The tools that the model may or has to call before it answers. Applies until the caller submits
/// results, which bring the next choice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", content = "tool", rename_all = "snake_case")]
pub enum ToolChoice {
    /// Any tool, or none. The default.
    #[default]
    Auto,
    /// No tool. A call that the model makes nevertheless is refused like one of an unknown tool.
    None,
    /// At least one tool. An answer without a call is requested again once, and is then an error.
    Required,
    /// The named tool and no other.
    Named(String),
}

impl ToolChoice {
    /// Returns true if the choice permits calling a tool.
    #[must_use]
    pub fn permits(&self, tool: &str) -> bool {
        match self {
            Self::Auto | Self::Required => true,
            Self::None => false,
            Self::Named(name) => name == tool,
        }
    }

    /// Returns true if an answer must contain a call.
    #[must_use]
    pub fn requires_call(&self) -> bool {
        matches!(self, Self::Required | Self::Named(_))
    }

    /// Returns true for [`ToolChoice::Auto`], the default.
    #[must_use]
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

//! Names of tools.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A tool's name: `^[a-z_][a-z0-9_]*$`, at most 64 bytes.
///
/// The length is the providers' common limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

/// Text that cannot be a tool's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a tool name: lower-case letters, digits and _ only, not starting with a digit, 1 to 64 characters"
)]
pub struct InvalidToolName(pub String);

impl ToolName {
    /// Creates a name from a text.
    ///
    /// # Errors
    /// [`InvalidToolName`] unless it matches `^[a-z_][a-z0-9_]*$` and has at most 64 bytes.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidToolName> {
        let name = name.into();
        let first = name
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let rest = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if first && rest && name.len() <= 64 {
            Ok(Self(name))
        } else {
            Err(InvalidToolName(name))
        }
    }

    /// Accepts a name that another program chose, for a request that is passed on as it is; no tool
    /// can be registered under one that [`ToolName::new`] refuses.
    ///
    /// # Errors
    /// [`InvalidToolName`] unless it is 1 to 128 bytes of letters, digits, `_`, `-`, `.` and `:`,
    /// as the most lenient provider has it.
    pub fn foreign(name: impl Into<String>) -> Result<Self, InvalidToolName> {
        let name = name.into();
        let fits = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte));
        if fits && (1..=128).contains(&name.len()) {
            Ok(Self(name))
        } else {
            Err(InvalidToolName(name))
        }
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0
    }
}

impl TryFrom<String> for ToolName {
    type Error = InvalidToolName;
    fn try_from(name: String) -> Result<Self, InvalidToolName> {
        Self::new(name)
    }
}

//! A schema that is refused.

/// A schema that cannot be used, with what the validator says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableSchema(pub String);

//! The result of one check of `adjutant doctor`, with cause and remedy.

use serde::Serialize;

use crate::error::CliError;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Ok,
    /// It works, but may surprise the user.
    Warn,
    /// It has to be repaired.
    Fail,
}

/// One check and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) group: &'static str,
    pub(crate) status: Status,
    /// The finding in one sentence.
    pub(crate) message: String,
    /// The cause of a warning or failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    /// The next step: a command, or a setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

impl Check {
    pub(crate) fn new(
        group: &'static str,
        name: impl Into<String>,
        status: Status,
        message: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            group,
            status,
            message: message.into(),
            cause: None,
            remedy: None,
        }
    }

    pub(super) fn ok(
        group: &'static str,
        name: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(group, name, Status::Ok, message)
    }

    pub(super) fn warn(
        group: &'static str,
        name: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(group, name, Status::Warn, message)
    }

    pub(super) fn fail(
        group: &'static str,
        name: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(group, name, Status::Fail, message)
    }

    pub(super) fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    pub(super) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Creates a failed check from an error, with the error's first remedy or `remedy` if it has
    /// none.
    pub(super) fn from_error(
        group: &'static str,
        name: impl Into<String>,
        error: &CliError,
        remedy: &str,
    ) -> Self {
        let mut check = Self::fail(group, name, error.message.clone());
        check.cause.clone_from(&error.cause);
        let first = error.tries.first().map_or(remedy, String::as_str);
        check.with_remedy(first)
    }
}

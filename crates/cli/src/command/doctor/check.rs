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

/// A group of checks by its name; [`GROUPS`] has all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Group(pub(super) &'static str);

/// The groups, in the order they are printed.
pub(super) const GROUPS: [Group; 9] = [
    Group("configuration"),
    Group("model"),
    Group("data"),
    Group("memory"),
    Group("tools"),
    Group("service"),
    Group("dispatch"),
    Group("machine"),
    Group("network"),
];

/// One check and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) group: Group,
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

impl Group {
    /// Creates a check without cause and remedy.
    pub(super) fn check(
        self,
        status: Status,
        name: impl Into<String>,
        message: impl Into<String>,
    ) -> Check {
        Check {
            name: name.into(),
            group: self,
            status,
            message: message.into(),
            cause: None,
            remedy: None,
        }
    }

    pub(super) fn ok(self, name: impl Into<String>, message: impl Into<String>) -> Check {
        self.check(Status::Ok, name, message)
    }

    pub(super) fn warn(self, name: impl Into<String>, message: impl Into<String>) -> Check {
        self.check(Status::Warn, name, message)
    }

    pub(super) fn fail(self, name: impl Into<String>, message: impl Into<String>) -> Check {
        self.check(Status::Fail, name, message)
    }

    /// Creates a failed check with message and cause of an error, and the error's first remedy or
    /// `remedy` if it has none.
    pub(super) fn fail_with(
        self,
        name: impl Into<String>,
        error: &CliError,
        remedy: &str,
    ) -> Check {
        let first = error.tries.first().map_or(remedy, String::as_str);
        Check {
            cause: error.cause.clone(),
            ..self.fail(name, &error.message).with_remedy(first)
        }
    }
}

impl Check {
    pub(super) fn because(mut self, cause: impl ToString) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    pub(super) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

//! Why a model call failed, named after what the caller does next.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::ProviderId;

/// Why a model call failed.
///
/// [`ModelError::code`] is the same string in logs, JSON and HTTP.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelError {
    /// Wait, then send again. `retry_after` is what the provider asked for, if it did.
    #[error("rate limited by {provider}{}", after(.retry_after))]
    #[serde(rename = "rate_limit")]
    RateLimited {
        /// Who refused.
        provider: ProviderId,
        /// How long to wait.
        retry_after: Option<Duration>,
    },
    /// The account is out of credit or over its plan; waiting does not help.
    #[error("{provider}: quota exhausted: {message}")]
    Quota {
        /// Who refused.
        provider: ProviderId,
        /// Its words.
        message: String,
    },
    /// No answer in time.
    #[error("{}", .bound.reached(provider, *waited))]
    Timeout {
        /// Who was asked.
        provider: ProviderId,
        /// The bound that was reached.
        waited: Duration,
        /// The kind of that bound. Reads as [`TimeBound::Total`] from records that do not name it.
        #[serde(default)]
        bound: TimeBound,
    },
    /// Could not be reached, or the connection broke before an answer.
    #[error("cannot reach {provider}: {message}")]
    Network {
        /// Who was asked.
        provider: ProviderId,
        /// What the transport said, causes included.
        message: String,
    },
    /// The provider failed on its side.
    #[error("{provider} {}: {message}", how_it_failed(*status))]
    Server {
        /// Who failed.
        provider: ProviderId,
        /// The HTTP status; 200 for an error event inside a stream.
        status: u16,
        /// Its words.
        message: String,
        /// How long it asks to wait, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Duration>,
    },
    /// The key is missing, wrong, or may not do this.
    #[error("{provider} refused the credentials: {message}")]
    #[serde(rename = "auth")]
    Authentication {
        /// Who refused.
        provider: ProviderId,
        /// Its words, or which key is missing and where to put it.
        message: String,
    },
    /// The request is one the provider does not take; sending it again will not help.
    #[error("{provider} rejected the request: {message}")]
    BadRequest {
        /// Who rejected it.
        provider: ProviderId,
        /// Its words.
        message: String,
    },
    /// No such model there.
    #[error("{provider} has no model {model:?}: {message}")]
    NotFound {
        /// Who was asked.
        provider: ProviderId,
        /// The model asked for.
        model: String,
        /// The provider's words, or what to do.
        message: String,
    },
    /// The answer is not what the provider documents; sending again will not help.
    #[error("{provider} sent a response we cannot read: {reason}")]
    InvalidResponse {
        /// Who sent it.
        provider: ProviderId,
        /// What is wrong with it.
        reason: String,
        /// The answer, cut at 64 KiB.
        raw: String,
    },
    /// The stream ended before its last event.
    #[error("the answer of {provider} ended early: {reason}")]
    Truncated {
        /// Who sent it.
        provider: ProviderId,
        /// Where it stopped.
        reason: String,
    },
    /// The request does not fit the model's window.
    #[error("too long for {provider}: {message}")]
    ContextTooLong {
        /// Who was asked.
        provider: ProviderId,
        /// What does not fit.
        message: String,
    },
    /// The provider's safety system refused to answer.
    #[error("{provider} refused to answer: {message}")]
    Refused {
        /// Who refused.
        provider: ProviderId,
        /// Its words or its reason code.
        message: String,
    },
}

/// A bound of time that a model call can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimeBound {
    /// The caller's own time for the whole answer.
    #[default]
    Total,
    /// Opening a connection.
    Connect,
    /// Nothing came for so long; from a server of the person's own also in the middle of an answer.
    Silence,
    /// Nothing more came for so long from a vendor that had begun to answer: it was at work, and
    /// what it did may be charged.
    Pause,
}

impl TimeBound {
    fn reached(self, provider: &ProviderId, waited: Duration) -> String {
        // What is left of a bound is a little less than the bound.
        let seconds = (waited.as_secs_f64() * 1_000.0).round() / 1_000.0;
        match self {
            Self::Total => format!("{provider} did not answer within {seconds} s"),
            Self::Connect => format!("{provider} could not be connected to within {seconds} s"),
            Self::Silence => format!("{provider} said nothing for {seconds} s"),
            Self::Pause => format!(
                "{provider} began to answer and then said nothing for {seconds} s; it was not asked again, because what it \
                 did may be charged"
            ),
        }
    }
}

fn after(wait: &Option<Duration>) -> String {
    wait.map(|wait| format!("; asks to wait {} s", wait.as_secs_f64()))
        .unwrap_or_default()
}

/// A failure inside an answer came with the status of a success, which would read as if nothing
/// were wrong.
fn how_it_failed(status: u16) -> String {
    if status == 200 {
        "answered with a failure".to_owned()
    } else {
        format!("failed (HTTP {status})")
    }
}

impl ModelError {
    /// Returns the error's code: one word that does not change, for logs and programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "rate_limit",
            Self::Quota { .. } => "quota",
            Self::Timeout { .. } => "timeout",
            Self::Network { .. } => "network",
            Self::Server { .. } => "server",
            Self::Authentication { .. } => "auth",
            Self::BadRequest { .. } => "bad_request",
            Self::NotFound { .. } => "not_found",
            Self::InvalidResponse { .. } => "invalid_response",
            Self::Truncated { .. } => "truncated",
            Self::ContextTooLong { .. } => "context_too_long",
            Self::Refused { .. } => "refused",
        }
    }

    /// Whether the same request may succeed if it is sent again: time-outs, network errors, 5xx and 429.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Timeout { .. }
            | Self::Network { .. }
            | Self::Server { .. }
            | Self::Truncated { .. } => true,
            Self::Quota { .. }
            | Self::Authentication { .. }
            | Self::BadRequest { .. }
            | Self::NotFound { .. }
            | Self::InvalidResponse { .. }
            | Self::ContextTooLong { .. }
            | Self::Refused { .. } => false,
        }
    }

    /// How long the provider asked to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Server { retry_after, .. } => {
                *retry_after
            }
            Self::Quota { .. }
            | Self::Timeout { .. }
            | Self::Network { .. }
            | Self::Authentication { .. }
            | Self::BadRequest { .. }
            | Self::NotFound { .. }
            | Self::InvalidResponse { .. }
            | Self::Truncated { .. }
            | Self::ContextTooLong { .. }
            | Self::Refused { .. } => None,
        }
    }

    /// The unreadable answer, if that was the trouble.
    #[must_use]
    pub fn raw(&self) -> Option<&str> {
        if let Self::InvalidResponse { raw, .. } = self {
            Some(raw)
        } else {
            None
        }
    }
}

//! Errors of model calls, named after what the caller does next.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::id::ProviderId;

/// The error of a model call.
///
/// [`ModelError::code`] is the same string in logs, JSON and HTTP. The error of the transport or of
/// the decoder is the [source](std::error::Error::source), as long as the process that met it still
/// has it; the message says the same in text, because that is what journals keep.
#[derive(Debug, Clone, thiserror::Error, Serialize, Deserialize)]
// The codes are stored in journals; see `code`.
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelError {
    /// Too many requests: wait, then send the request again.
    #[error("rate limited by {provider}{}{}", after(.retry_after), in_its_words(message))]
    #[serde(rename = "rate_limit")]
    RateLimited {
        /// Provider that rejected the request.
        provider: ProviderId,
        /// Message from the provider's response; empty if there is none, and in older records.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        /// Waiting time that the provider asks for, if it does.
        retry_after: Option<Duration>,
    },
    /// The account is out of credit or over its plan; waiting does not help.
    #[error("{provider}: quota exhausted: {message}")]
    Quota {
        /// Provider that rejected the request.
        provider: ProviderId,
        /// Message from the provider's response.
        message: String,
    },
    /// There was no response in time.
    #[error("{}", .bound.reached(provider, *waited))]
    Timeout {
        /// Provider that the request was sent to.
        provider: ProviderId,
        /// Timeout that was reached.
        waited: Duration,
        /// Kind of that timeout. Older records without it mean [`TimeBound::Total`].
        #[serde(default)]
        bound: TimeBound,
    },
    /// The provider could not be reached, or the connection broke before a response.
    #[error("cannot reach {provider}: {message}")]
    Network {
        /// Provider that the request was sent to.
        provider: ProviderId,
        /// Error of the transport with its causes.
        message: String,
        /// Error below, as long as the process that met it still has it; it is not journaled.
        #[serde(skip)]
        source: Option<Cause>,
    },
    /// The provider failed on its side.
    #[error("{provider} {}: {message}", how_it_failed(*status))]
    Server {
        /// Provider that had the failure.
        provider: ProviderId,
        /// HTTP status; 200 for an error event inside a stream.
        status: u16,
        /// Message from the provider's response.
        message: String,
        /// Waiting time that the provider asks for, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Duration>,
    },
    /// The provider does not serve this account, place or network, or the plan does not cover the
    /// request. The key is not the reason, and waiting does not help.
    #[error("{provider} does not permit this: {message}")]
    NotPermitted {
        /// Provider that rejected the request.
        provider: ProviderId,
        /// Message from the provider's response.
        message: String,
    },
    /// The API key is missing, wrong, or lacks the permission.
    #[error("{provider} refused the credentials: {message}")]
    #[serde(rename = "auth")]
    Authentication {
        /// Provider that rejected the request.
        provider: ProviderId,
        /// Message of the provider, or the missing key and where to put it.
        message: String,
    },
    /// The provider rejects the request; sending it again does not help.
    #[error("{provider} rejected the request: {message}")]
    BadRequest {
        /// Provider that rejected the request.
        provider: ProviderId,
        /// Message from the provider's response.
        message: String,
    },
    /// The provider has no model of that name.
    #[error("{provider} has no model {model:?}: {message}")]
    NotFound {
        /// Provider that the request was sent to.
        provider: ProviderId,
        /// Name of the requested model.
        model: String,
        /// Message of the provider, or the next step.
        message: String,
    },
    /// The response is not in the documented form; sending the request again does not help.
    #[error("{provider} sent a response we cannot read: {reason}")]
    InvalidResponse {
        /// Provider that sent the response.
        provider: ProviderId,
        /// Description of the deviation.
        reason: String,
        /// The response, truncated to 64 KiB.
        raw: String,
        /// Error below, as long as the process that met it still has it; it is not journaled.
        #[serde(skip)]
        source: Option<Cause>,
    },
    /// The stream ended before its last event.
    #[error("the answer of {provider} ended early: {reason}")]
    Truncated {
        /// Provider that sent the response.
        provider: ProviderId,
        /// Description of where the stream stopped.
        reason: String,
        /// Error below, as long as the process that met it still has it; it is not journaled.
        #[serde(skip)]
        source: Option<Cause>,
    },
    /// The request does not fit the context window.
    #[error("too long for {provider}: {message}")]
    ContextTooLong {
        /// Provider that the request was sent to.
        provider: ProviderId,
        /// Description of what does not fit.
        message: String,
    },
    /// The provider's safety system refused to answer.
    #[error("{provider} refused to answer: {message}")]
    Refused {
        /// Provider that rejected the request.
        provider: ProviderId,
        /// Message or reason code of the provider.
        message: String,
    },
}

// Equal as their journaled forms: an error that was read from the journal has lost its source, and
// sources cannot be compared.
impl PartialEq for ModelError {
    fn eq(&self, other: &Self) -> bool {
        serde_json::to_value(self).ok() == serde_json::to_value(other).ok()
    }
}

/// The timeouts that a model call can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimeBound {
    /// The caller's own limit for the whole response.
    #[default]
    Total,
    /// The limit for opening a connection.
    Connect,
    /// The limit of silence before a response; from self-hosted servers also within one.
    Silence,
    /// The limit of silence within a response of a provider, whose work so far may be charged.
    Pause,
}

impl TimeBound {
    fn reached(self, provider: &ProviderId, waited: Duration) -> String {
        // The rest of a timeout is slightly less than the timeout.
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

/// Returns the provider's message as the end of a sentence.
fn in_its_words(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    }
}

/// Returns the status for messages. A failure inside a response has the status of a success, which
/// would be misleading.
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
            Self::NotPermitted { .. } => "not_permitted",
            Self::Authentication { .. } => "auth",
            Self::BadRequest { .. } => "bad_request",
            Self::NotFound { .. } => "not_found",
            Self::InvalidResponse { .. } => "invalid_response",
            Self::Truncated { .. } => "truncated",
            Self::ContextTooLong { .. } => "context_too_long",
            Self::Refused { .. } => "refused",
        }
    }

    /// Returns true if the same request may succeed when sent again: timeouts, network errors, 5xx
    /// and 429.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Timeout { .. }
                | Self::Network { .. }
                | Self::Server { .. }
                | Self::Truncated { .. }
        )
    }

    /// Returns the waiting time that the provider asks for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Server { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    /// Sets the error that caused this one. Kinds that have none stay as they are.
    #[must_use]
    pub fn with_source(
        mut self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        if let Self::Network { source, .. }
        | Self::InvalidResponse { source, .. }
        | Self::Truncated { source, .. } = &mut self
        {
            *source = Some(Cause::new(cause));
        }
        self
    }

    /// Returns the unreadable response, if there is one.
    #[must_use]
    pub fn raw(&self) -> Option<&str> {
        if let Self::InvalidResponse { raw, .. } = self {
            Some(raw)
        } else {
            None
        }
    }
}

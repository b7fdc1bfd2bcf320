//! Exit codes, and errors in the form `Error / cause / try`.

use std::time::Duration;

use adjutant_core::{AgentResponse, ModelError, OutcomeCategory, ProviderId, TimeBound, TurnError};
use adjutant_providers::Provider;
use adjutant_runtime::{BuildError, RunError};

/// Exit codes of `adjutant`. Scripts depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success. A refusal of the model and a question are answers too.
    Ok = 0,
    /// Failure.
    Failed = 1,
    /// Invalid command line or prompt.
    Usage = 2,
    /// Invalid configuration, credentials, or data folder.
    Configuration = 3,
    /// A call waits for confirmation, and the user could not be asked.
    ConfirmationNeeded = 4,
    /// The provider is unavailable or rate limited.
    Unavailable = 5,
    /// A limit was reached.
    Limit = 6,
    /// Ctrl-C.
    Interrupted = 130,
    /// SIGTERM, or a closed terminal; the number that shells give for SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// Returns the exit code of a turn: by the model's error if there was one, else by the outcome.
    pub(crate) fn for_response(response: &AgentResponse) -> Self {
        match &response.error {
            Some(TurnError::Model { error }) => Self::from_model_error(error),
            // Also for a call in doubt or one that waits for its result: the user has to act.
            _ if !response.decision.pending.is_empty() => Self::ConfirmationNeeded,
            _ => Self::of_outcome(response.outcome),
        }
    }

    /// Converts a failed model call to an error message with exit code and remedies.
    pub(crate) fn from_model_error(error: &ModelError) -> Self {
        match error {
            ModelError::Authentication { .. }
            | ModelError::NotPermitted { .. }
            | ModelError::NotFound { .. } => Self::Configuration,
            ModelError::ContextTooLong { .. } => Self::Limit,
            ModelError::Refused { .. } => Self::Ok,
            // Rate limit, quota, timeout, network, server, bad request, unreadable or incomplete
            // answer.
            _ => Self::Unavailable,
        }
    }

    pub(crate) fn of_outcome(outcome: OutcomeCategory) -> Self {
        use OutcomeCategory as Outcome;
        match outcome {
            // A failed tool is explained in the answer, and over HTTP it is a 200 too.
            Outcome::ResponseGiven
            | Outcome::TaskCompleted
            | Outcome::UnclearIntent
            | Outcome::OutOfScope
            | Outcome::ToolFailure
            | Outcome::ContentFilter
            | Outcome::ConfirmationDenied => Self::Ok,
            Outcome::PendingConfirmation | Outcome::PendingResult => Self::ConfirmationNeeded,
            Outcome::RateLimited | Outcome::LlmFailure => Self::Unavailable,
            Outcome::IterationsLimit
            | Outcome::MaxTokensLimit
            | Outcome::IdenticalCallsLimit
            | Outcome::DeadlineLimit
            | Outcome::BudgetLimit
            | Outcome::ContextLimit => Self::Limit,
            Outcome::Cancelled => Self::Interrupted,
            // The call was approved and not executed, or its result is not known.
            Outcome::ConfirmationExpired | Outcome::InDoubt | Outcome::NoResult => Self::Failed,
            // `Outcome` is non-exhaustive.
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A failed command: message, cause and remedies.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    /// A stable identifier for `--json`.
    pub(crate) code: &'static str,
    /// The failure in one sentence.
    pub(crate) message: String,
    /// The cause, if more is known than the message says.
    pub(crate) cause: Option<String>,
    /// Remedies, one line each.
    pub(crate) tries: Vec<String>,
    pub(crate) retry_after: Option<Duration>,
}

/// The code of [`CliError::read_only`].
pub(crate) const READ_ONLY: &str = "read_only";

impl CliError {
    fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            exit,
            code,
            message,
            cause: None,
            tries: Vec::new(),
            retry_after: None,
        }
    }

    /// The command line or the prompt is invalid.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// A setting, a key, a model's name or a path has to be changed first.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(Exit::Configuration, "configuration", message)
    }

    /// The command has to write in a read-only environment.
    pub(crate) fn read_only(message: impl Into<String>) -> Self {
        Self::new(Exit::Configuration, READ_ONLY, message)
    }

    /// A provider needs a key, and none is set.
    pub(crate) fn no_key(message: impl Into<String>) -> Self {
        Self::new(Exit::Configuration, "auth", message)
    }

    /// The named model or provider does not exist.
    pub(crate) fn no_such_model(message: impl Into<String>) -> Self {
        Self::new(Exit::Configuration, "not_found", message)
    }

    /// The operation was tried and failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, "failed", message)
    }

    /// The named object does not exist.
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, "unknown", message)
    }

    /// The user pressed Ctrl-C.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self::new(Exit::Interrupted, "cancelled", message)
    }

    /// The process received a termination signal.
    pub(crate) fn terminated() -> Self {
        Self::new(
            Exit::Terminated,
            "terminated",
            "ended by a signal; the conversation is saved",
        )
        .or_try("adjutant -c …    goes on with it")
    }

    /// A call needs a confirmation, and the user cannot be asked.
    pub(crate) fn confirmation_needed(message: impl Into<String>) -> Self {
        Self::new(Exit::ConfirmationNeeded, "confirmation_needed", message)
    }

    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    pub(crate) fn or_try(mut self, way: impl Into<String>) -> Self {
        self.tries.push(way.into());
        self
    }

    /// Converts the error of a model call.
    pub(crate) fn from_model_error(error: &ModelError) -> Self {
        let mut shown = Self::new(
            Exit::from_model_error(error),
            error.code(),
            error.to_string(),
        );
        shown.retry_after = error.retry_after();
        shown.tries = remedies(error);
        shown
    }

    /// Converts the error of a turn; `None` if the answer says everything.
    pub(crate) fn from_response(response: &AgentResponse) -> Option<Self> {
        let error = response.error.as_ref()?;
        let mut shown = Self::new(
            Exit::for_response(response),
            error.code(),
            error.to_string(),
        );
        match error {
            TurnError::Model { error } => return Some(Self::from_model_error(error)),
            TurnError::Limit {
                limit,
                value,
                stored_setting,
            } => {
                shown.message = format!("the bound of {limit} was reached: {value}");
                shown.tries.push(
                    match adjutant_service::limit_setting(limit).or_else(|| stored_setting.clone())
                    {
                        Some(setting) => format!("raise {setting}, or ask for less at once"),
                        None => "ask for less at once".to_owned(),
                    },
                );
            }
            _ => {}
        }
        Some(shown)
    }
}

/// Returns remedies for the error of a model call.
fn remedies(error: &ModelError) -> Vec<String> {
    let way: &str = match error {
        ModelError::RateLimited { .. } => {
            "wait a little, or use another model: adjutant -m embedded …"
        }
        ModelError::Quota { .. } => {
            "look at your plan with the provider, or use another model: -m embedded"
        }
        ModelError::NotPermitted { .. } => {
            "the key is not the reason: look at the account, plan and region with the provider, or use another model: -m embedded"
        }
        ModelError::Timeout {
            provider,
            waited,
            bound: TimeBound::Silence | TimeBound::Pause,
        } => {
            return vec![more_time(provider, *waited)];
        }
        ModelError::Network { provider, .. }
        | ModelError::Timeout {
            provider,
            bound: TimeBound::Connect,
            ..
        } => match Provider::find(provider.as_str()) {
            Some(row) if row.local => {
                "is the server running, and at this address? (adjutant config show --origin)"
            }
            _ => "look at your connection (proxy, firewall), or work offline: -m embedded",
        },
        ModelError::Timeout { .. } => "try again, or ask for less at once",
        ModelError::Server { .. } | ModelError::Truncated { .. } => "try again in a moment",
        ModelError::Authentication { provider, .. } => {
            let name = variable(provider, |row| row.key_variable).map(|name| format!(": {name}"));
            return vec![format!(
                "check the key{} in the environment or the .env file",
                name.unwrap_or_default()
            )];
        }
        ModelError::NotFound { provider, .. } if provider.as_str() == "embedded" => {
            "fetch it again: adjutant models rm NAME, then adjutant models pull NAME; or name another file: -m embedded:FILE.gguf"
        }
        ModelError::NotFound { provider, .. } => {
            let or = variable(provider, |row| row.model_variable).map(|name| format!(", {name}"));
            return vec![format!(
                "check the model's name: -m {provider}/NAME{}, or `model` in the configuration (adjutant config show)",
                or.unwrap_or_default()
            )];
        }
        ModelError::InvalidResponse { .. } => {
            "try again; the answer itself is in the log: adjutant log show"
        }
        ModelError::ContextTooLong { .. } => "shorten the prompt, or start a new conversation",
        _ => return Vec::new(),
    };
    vec![way.to_owned()]
}

/// Returns the setting for a longer timeout of the provider, with a sufficient value.
fn more_time(provider: &ProviderId, waited: Duration) -> String {
    /// Round timeouts in seconds.
    const STEPS: [u64; 11] = [2, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200];
    let now = waited.as_secs().max(1);
    // Twice the time that was not enough, rounded up.
    let more = STEPS
        .into_iter()
        .find(|step| *step >= now.saturating_mul(2))
        .unwrap_or(now.saturating_mul(2));
    match Provider::find(provider.as_str()) {
        Some(row) => format!(
            "adjutant config set {}.timeout {more}s    (now {now}s)",
            row.name
        ),
        None => format!("LLM_TIMEOUT={more} adjutant …    (now {now})"),
    }
}

/// Returns the name of a provider's environment variable.
fn variable(
    provider: &ProviderId,
    which: fn(&Provider) -> Option<&'static str>,
) -> Option<&'static str> {
    Provider::find(provider.as_str()).and_then(which)
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::EmptyMessage | RunError::MessageTooLarge { .. } | RunError::MayNotAnswer => {
                Self::usage(error.to_string())
            }
            RunError::MessageTooLong { .. } => Self::usage(error.to_string())
                .or_try("agent.long_message = \"cut\", to have the beginning of it read"),
            RunError::Store(error) => error.into(),
            _ => Self::failed(error.to_string()),
        }
    }
}

impl From<BuildError> for CliError {
    fn from(error: BuildError) -> Self {
        Self::configuration(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_exit_code() {
        let table: Vec<(&str, u8)> = OutcomeCategory::ALL
            .iter()
            .map(|outcome| (outcome.as_str(), Exit::of_outcome(*outcome) as u8))
            .collect();
        assert_eq!(
            table,
            [
                ("SUCCESS:RESPONSE_GIVEN", 0),
                ("SUCCESS:TASK_COMPLETED", 0),
                ("AMBIGUITY:UNCLEAR_INTENT", 0),
                ("REFUSAL:OUT_OF_SCOPE", 0),
                ("REFUSAL:RATE_LIMITED", 5),
                ("ERROR:LLM_FAILURE", 5),
                ("ERROR:TOOL_FAILURE", 0),
                ("PENDING:CONFIRMATION", 4),
                ("PENDING:RESULT", 4),
                ("INTERRUPTED:NO_RESULT", 1),
                ("REFUSAL:CONFIRMATION_DENIED", 0),
                ("REFUSAL:CONFIRMATION_EXPIRED", 1),
                ("REFUSAL:CONTENT_FILTER", 0),
                ("LIMIT:ITERATIONS", 6),
                ("LIMIT:MAX_TOKENS", 6),
                ("LIMIT:IDENTICAL_CALLS", 6),
                ("LIMIT:DEADLINE", 6),
                ("LIMIT:BUDGET", 6),
                ("LIMIT:CONTEXT", 6),
                ("CANCELLED:BY_USER", 130),
                ("INTERRUPTED:IN_DOUBT", 1),
                ("ERROR:POISONED", 1),
            ]
        );
    }

    #[test]
    fn every_model_error_has_the_exit_code_of_the_design() {
        let provider = || ProviderId::new("gemini").unwrap();
        let message = || "…".to_owned();
        let errors = [
            (
                ModelError::RateLimited {
                    provider: provider(),
                    message: message(),
                    retry_after: None,
                },
                5,
            ),
            (
                ModelError::Quota {
                    provider: provider(),
                    message: message(),
                },
                5,
            ),
            (
                ModelError::Timeout {
                    provider: provider(),
                    waited: Duration::from_secs(30),
                    bound: TimeBound::Silence,
                },
                5,
            ),
            (
                ModelError::Network {
                    provider: provider(),
                    message: message(),
                    source: None,
                },
                5,
            ),
            (
                ModelError::Server {
                    provider: provider(),
                    status: 500,
                    message: message(),
                    retry_after: None,
                },
                5,
            ),
            (
                ModelError::Authentication {
                    provider: provider(),
                    message: message(),
                },
                3,
            ),
            (
                ModelError::NotPermitted {
                    provider: provider(),
                    message: message(),
                },
                3,
            ),
            (
                ModelError::BadRequest {
                    provider: provider(),
                    message: message(),
                },
                5,
            ),
            (
                ModelError::NotFound {
                    provider: provider(),
                    model: message(),
                    message: message(),
                },
                3,
            ),
            (
                ModelError::InvalidResponse {
                    provider: provider(),
                    reason: message(),
                    raw: message(),
                    source: None,
                },
                5,
            ),
            (
                ModelError::Truncated {
                    provider: provider(),
                    reason: message(),
                    source: None,
                },
                5,
            ),
            (
                ModelError::ContextTooLong {
                    provider: provider(),
                    message: message(),
                },
                6,
            ),
            (
                ModelError::Refused {
                    provider: provider(),
                    message: message(),
                },
                0,
            ),
        ];
        for (error, exit) in errors {
            assert_eq!(
                Exit::from_model_error(&error) as u8,
                exit,
                "{}",
                error.code()
            );
        }
    }
}

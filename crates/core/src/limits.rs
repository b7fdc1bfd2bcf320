//! The bounds of a turn, with their defaults. All are on by default.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{Capabilities, MaxTokens, WindowShare};

/// Most rounds of tools in a turn.
pub const TOOL_ITERATIONS_MAX: u32 = 5;
/// Most calls of one answer that run at the same time: pools of connections and rate limits behind
/// tools are small.
pub const PARALLEL_TOOLS_MAX: NonZeroU32 = NonZeroU32::new(8).unwrap();
/// Visible output of one answer, in tokens.
pub const OUTPUT_TOKENS_MAX: u32 = 1024;
/// Sampling temperature: the most likely token each time, so that runs repeat.
pub const TEMPERATURE: f64 = 0.0;
/// The share of the usable context window at which old turns are summarised, for agents that enable
/// compaction.
pub const SUMMARIZE_AT: f64 = 0.80;
/// Length of a summary, in tokens; in a small context window an eighth of what is usable.
pub const SUMMARY_TOKENS_MAX: u32 = 1024;
/// Length of a message, in Unicode characters. [`LongMessage`] is the treatment of a longer one.
pub const MESSAGE_CHARS_MAX: usize = 4000;
/// Length of a message to a model that can read it, in Unicode characters.
pub const LONG_MESSAGE_CHARS_MAX: usize = 100_000;
/// Length of a message to a model with constrained tool calling, in Unicode characters.
pub const SMALL_MODEL_MESSAGE_CHARS_MAX: usize = 8_000;
/// Size of a message, in bytes. A larger one is refused before a turn starts, whatever the limits.
pub const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Messages that wait in one conversation, submitted and not run yet; one more is refused.
pub const MESSAGES_QUEUED_MAX: NonZeroU32 = NonZeroU32::new(100).unwrap();
/// Number of tools that the sender of a message may bring; OpenAI's API has the same bound.
pub const CLIENT_TOOLS_MAX: usize = 128;
/// Size of their definitions together, in bytes: they are in every request of the turn, and in the
/// journal.
pub const CLIENT_TOOLS_BYTES_MAX: usize = 256 * 1024;
/// Size of the context that the sender of a message may add, in bytes.
pub const CLIENT_CONTEXT_BYTES_MAX: usize = 64 * 1024;
/// Number of user and assistant messages of history that a turn is given.
pub const HISTORY_MESSAGES_MAX: usize = 20;
/// Time of one tool execution.
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(30);
/// Time of a whole turn, waiting for people not counted. A turn of a self-hosted model has no
/// deadline unless one is set.
pub const TURN_DEADLINE: Duration = Duration::from_secs(120);
/// Executions of one call (same tool, same arguments) in a turn.
pub const IDENTICAL_CALLS_MAX: u32 = 3;
/// Repeated requests in a row for an unusable answer (empty, cut inside a call).
pub const REASKS_MAX: u32 = 1;
/// Time in which a confirmation can be given.
pub const CONFIRMATION_EXPIRY: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Time for which a person is asked before each call that must not be repeated, after the database
/// has lost commits.
pub const ASK_AFTER_LOST_COMMITS: Duration = Duration::from_secs(10 * 60);
/// Time in which a confirmation can be given by a client that keeps the conversation itself, as
/// those of the OpenAI-compatible API do.
pub const CONFIRMATION_EXPIRY_STATELESS: Duration = Duration::from_secs(10 * 60);

/// The treatment of a message that is longer than [`TurnLimits::message_chars_max`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LongMessage {
    /// The message is cut, a note for the model and a notice for the user say so, and the rest is
    /// acted on.
    #[default]
    Cut,
    /// The message is refused before anything is submitted.
    Refuse,
}

impl LongMessage {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

fn are_usual_parallel_tools(max: &NonZeroU32) -> bool {
    *max == PARALLEL_TOOLS_MAX
}

/// The bounds of one turn. They are recorded with it, so that a turn that another worker recovers
/// keeps the bounds it started with.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use adjutant_core::TurnLimits;
///
/// let limits = TurnLimits {
///     tool_iterations_max: 10,
///     turn_deadline: Some(Duration::from_secs(300)),
///     ..TurnLimits::default()
/// };
/// assert_eq!(limits.identical_calls_max, 3);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnLimits {
    /// Most rounds of tools. Default: [`TOOL_ITERATIONS_MAX`].
    pub tool_iterations_max: u32,
    /// Most calls of one answer that run at the same time. Further ones of a group that may run
    /// concurrently start as others end. Default: [`PARALLEL_TOOLS_MAX`].
    #[serde(skip_serializing_if = "are_usual_parallel_tools")]
    pub parallel_tools_max: NonZeroU32,
    /// Most executions of one identical call. Default: [`IDENTICAL_CALLS_MAX`].
    pub identical_calls_max: u32,
    /// Most repeated requests in a row for an unusable answer. Default: [`REASKS_MAX`].
    pub reasks_max: u32,
    /// Length of a message, in characters. `None`: only the context window bounds it. Default:
    /// [`MESSAGE_CHARS_MAX`].
    pub message_chars_max: Option<usize>,
    /// The treatment of a longer message. Default: [`LongMessage::Cut`].
    #[serde(skip_serializing_if = "LongMessage::is_usual")]
    pub long_message: LongMessage,
    /// Number of user and assistant messages of history. Beyond it the oldest turns are left out of
    /// requests until half of it remains, with the notice `history_trimmed`, or summarised if
    /// [`TurnLimits::summarize_at`] is set. `None`: only the context window bounds it. Default:
    /// [`HISTORY_MESSAGES_MAX`].
    pub history_messages_max: Option<usize>,
    /// The share of the usable context window at which old turns are summarised; with it, turns
    /// beyond [`TurnLimits::history_messages_max`] are summarised too. `None`: never; the oldest
    /// turns are left out. Default: `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarize_at: Option<WindowShare>,
    /// Time of one tool execution. Default: [`TOOL_TIMEOUT`].
    pub tool_timeout: Duration,
    /// Time of the whole turn, waiting for people not counted, and of the model call of a summary.
    /// `None`: no deadline. Default: [`TURN_DEADLINE`].
    pub turn_deadline: Option<Duration>,
    /// Time in which a confirmation can be given. Default: [`CONFIRMATION_EXPIRY`].
    pub confirmation_expiry: Duration,
    /// Visible output of one answer, in tokens, where the turn may have less than the agent allows.
    /// `None`: as much as the agent allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens_max: Option<MaxTokens>,
    /// True for a turn that only answers in text: no tools, and a short instruction in the place of
    /// the agent's. For requests that are about a conversation and not part of one, such as finding
    /// a title for it. Default: `false`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub words_only: bool,
}

impl TurnLimits {
    /// Returns the longest message that leaves a model half of its context window, in Unicode
    /// characters: at most [`LONG_MESSAGE_CHARS_MAX`], and [`SMALL_MODEL_MESSAGE_CHARS_MAX`] with
    /// constrained tool calling. A token counts as four characters.
    #[must_use]
    pub fn long_message_chars_max(capabilities: &Capabilities) -> usize {
        let most = match capabilities.weak_tools {
            true => SMALL_MODEL_MESSAGE_CHARS_MAX,
            false => LONG_MESSAGE_CHARS_MAX,
        };
        let half = u64::from(capabilities.context_window) / 2 * 4;
        usize::try_from(half).map_or(most, |half| half.min(most))
    }

    /// Returns the default limits for a model: a turn of a self-hosted one has no deadline.
    #[must_use]
    pub fn for_model(capabilities: &Capabilities) -> Self {
        let limits = Self::default();
        Self {
            // A small machine may need longer for one answer than a provider for a whole turn.
            turn_deadline: limits.turn_deadline.filter(|_| !capabilities.self_hosted),
            ..limits
        }
    }
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            tool_iterations_max: TOOL_ITERATIONS_MAX,
            parallel_tools_max: PARALLEL_TOOLS_MAX,
            identical_calls_max: IDENTICAL_CALLS_MAX,
            reasks_max: REASKS_MAX,
            message_chars_max: Some(MESSAGE_CHARS_MAX),
            long_message: LongMessage::Cut,
            history_messages_max: Some(HISTORY_MESSAGES_MAX),
            summarize_at: None,
            tool_timeout: TOOL_TIMEOUT,
            turn_deadline: Some(TURN_DEADLINE),
            confirmation_expiry: CONFIRMATION_EXPIRY,
            output_tokens_max: None,
            words_only: false,
        }
    }
}

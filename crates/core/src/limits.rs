//! Every bound of a turn, with its default and its name. All are on by default.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{Capabilities, MaxTokens, WindowShare};

/// Tool rounds in a turn. Key `agent.max_tool_iterations`, variable `MAX_TOOL_ITERATIONS`. Source:
/// seeds 000, 001.
pub const TOOL_ITERATIONS_MAX: u32 = 5;
/// Visible output of one answer, in tokens. Key `llm.max_tokens`, variable `LLM_MAX_TOKENS`.
/// Source: seeds 000, 001.
pub const OUTPUT_TOKENS_MAX: u32 = 1024;
/// Sampling temperature. Key `llm.temperature`, variable `LLM_TEMPERATURE`. Source: seeds 000, 001.
pub const TEMPERATURE: f64 = 0.0;
/// The share of the usable window at which old turns are put into a few words, for agents that want
/// it. Key `agent.summarize_at`.
pub const SUMMARIZE_AT: f64 = 0.80;
/// A summary, in tokens; in a small window an eighth of what is usable.
pub const SUMMARY_TOKENS_MAX: u32 = 1024;
/// A message in the task assistant, in Unicode characters; what becomes of a longer one says
/// [`LongMessage`]. Key `agent.message_chars_max`.
pub const MESSAGE_CHARS_MAX: usize = 4000;
/// A message anywhere, in bytes; larger is refused before a turn starts.
pub const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Messages that wait in one conversation, accepted and not taken; one more is refused. Key
/// `serve.messages_queued`.
pub const MESSAGES_QUEUED_MAX: NonZeroU32 = NonZeroU32::new(100).unwrap();
/// Tools that the sender of a message may bring. Source: the bound of OpenAI's API.
pub const CLIENT_TOOLS_MAX: usize = 128;
/// Their definitions in all, in bytes: they are in every request of the turn, and in the journal.
pub const CLIENT_TOOLS_BYTES_MAX: usize = 256 * 1024;
/// Bytes of context that the sender of a message may add.
pub const CLIENT_CONTEXT_BYTES_MAX: usize = 64 * 1024;
/// User and assistant messages of history a turn is given.
pub const HISTORY_MESSAGES_MAX: usize = 20;
/// What history is trimmed down to once it is over its bound, so that the prefix stays stable for a
/// while.
pub const HISTORY_MESSAGES_KEPT: usize = 10;
/// One tool execution. Key `agent.tool_timeout`.
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(30);
/// A whole turn, waiting for people not counted; a turn of a self-hosted model has no deadline
/// unless one is set. Key `agent.turn_deadline`.
pub const TURN_DEADLINE: Duration = Duration::from_secs(120);
/// How often one call (same tool, same arguments) is executed in a turn. Key
/// `agent.identical_calls_max`.
pub const IDENTICAL_CALLS_MAX: u32 = 3;
/// How often in a row an unusable answer (empty, cut inside a call) is asked for again.
pub const REASKS_MAX: u32 = 1;
/// How long a confirmation can be given. Key `agent.confirmation_expiry`.
pub const CONFIRMATION_EXPIRY: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long a confirmation can be given by a client that keeps the conversation itself (the
/// OpenAI-compatible addresses).
pub const CONFIRMATION_EXPIRY_STATELESS: Duration = Duration::from_secs(10 * 60);

/// The treatment of a message that is longer than [`TurnLimits::message_chars_max`]. Key
/// `agent.long_message`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LongMessage {
    /// It is cut, the model and the person are told, and what is left of it is acted on.
    #[default]
    Cut,
    /// It is refused before anything is accepted.
    Refuse,
}

impl LongMessage {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// The bounds of one turn. Kept with the turn, so that a resumed turn has the bounds it started
/// with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnLimits {
    /// Tool rounds; see [`TOOL_ITERATIONS_MAX`].
    pub tool_iterations_max: u32,
    /// Executions of one identical call; see [`IDENTICAL_CALLS_MAX`].
    pub identical_calls_max: u32,
    /// Re-asks in a row; see [`REASKS_MAX`].
    pub reasks_max: u32,
    /// Characters of a message. `None`: only the window bounds it.
    pub message_chars_max: Option<usize>,
    /// The treatment of a longer one. Default: [`LongMessage::Cut`].
    #[serde(skip_serializing_if = "LongMessage::is_usual")]
    pub long_message: LongMessage,
    /// User and assistant messages of history. `None`: only the window bounds it.
    pub history_messages_max: Option<usize>,
    /// The share of the usable window at which old turns are put into a few words. `None`: never;
    /// the oldest turns are left out when the window is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarize_at: Option<WindowShare>,
    /// One tool execution.
    pub tool_timeout: Duration,
    /// The whole turn, waiting for people not counted, and the model call of a summary. `None`: as
    /// long as work goes on.
    pub turn_deadline: Option<Duration>,
    /// How long a confirmation can be given.
    pub confirmation_expiry: Duration,
    /// Visible output of one answer, where the turn may have less than the agent's own bound.
    /// `None`: that bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens_max: Option<MaxTokens>,
    /// Words and nothing else: no tools, and a short instruction in the place of the agent's. For
    /// requests that are about a conversation and not part of one, such as finding a title for it.
    /// Default `false`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub words_only: bool,
}

impl TurnLimits {
    /// The defaults for a model: of a self-hosted one, a turn has no deadline.
    #[must_use]
    pub fn for_model(capabilities: &Capabilities) -> Self {
        let limits = Self::default();
        Self {
            turn_deadline: limits.turn_deadline.filter(|_| !capabilities.self_hosted),
            ..limits
        }
    }
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            tool_iterations_max: TOOL_ITERATIONS_MAX,
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

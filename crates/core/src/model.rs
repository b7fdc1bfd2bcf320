//! Who answers: what a model is asked, what it answers, what it can do.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cost::Cost;
use crate::id::ModelId;
use crate::message::{Message, Part, calls_of, text_of};
use crate::tool::ToolCall;
use crate::tool_choice::ToolChoice;
use crate::tool_set::ToolSet;
use crate::trace_context::TraceContext;

/// A setting outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} must be {range}, not {value}")]
pub struct OutOfRange {
    /// The setting's name.
    pub name: &'static str,
    /// What it may be.
    pub range: &'static str,
    /// What it was.
    pub value: String,
}

macro_rules! ranged {
    ($(#[$doc:meta])* $name:ident: $inner:ty as $serde:literal, $label:literal, $range:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[serde(try_from = $serde, into = $serde)]
        pub struct $name($inner);

        impl $name {
            #[doc = concat!("# Errors\n[`OutOfRange`] unless the value is ", $range, ".")]
            pub fn new(value: $inner) -> Result<Self, OutOfRange> {
                let check: fn($inner) -> bool = $check;
                if check(value) {
                    Ok(Self(value))
                } else {
                    Err(OutOfRange { name: $label, range: $range, value: value.to_string() })
                }
            }

            /// The number.
            #[must_use]
            pub fn get(self) -> $inner {
                self.0
            }
        }

        impl TryFrom<$inner> for $name {
            type Error = OutOfRange;
            fn try_from(value: $inner) -> Result<Self, OutOfRange> {
                Self::new(value)
            }
        }

        impl From<$name> for $inner {
            fn from(value: $name) -> $inner {
                value.0
            }
        }
    };
}

ranged!(
    /// Sampling temperature, no unit, `0.0..=2.0`. Default `0.0`, so that runs repeat.
    ///
    /// Source: seeds 001 (`LLM_TEMPERATURE`) and 004 (`GenerateContentConfig`).
    Temperature: f64 as "f64", "temperature", "between 0.0 and 2.0", |value| (0.0..=2.0).contains(&value)
);
ranged!(
    /// Nucleus sampling mass, no unit, `0.0..=1.0`. Unset by default: the provider's own.
    TopP: f64 as "f64", "top_p", "between 0.0 and 1.0", |value| (0.0..=1.0).contains(&value)
);
ranged!(
    /// Number of candidate tokens that are considered, at least 1. Unset by default: the provider's
    /// own.
    TopK: u32 as "u32", "top_k", "at least 1", |value| value > 0
);
ranged!(
    /// Bound of the visible output, in tokens, at least 1. Default 1,024.
    MaxTokens: u32 as "u32", "max_tokens", "at least 1", |value| value > 0
);

ranged!(
    /// A share of what of a model's window can be used for a request, `0.1..=1.0`.
    WindowShare: f64 as "f64", "a share of the window", "between 0.1 and 1.0", |value| (0.1..=1.0).contains(&value)
);

/// How an answer is generated. `None` means: the default of [`crate::limits`], left out where a
/// vendor refuses it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GenerationConfig {
    /// Explicit temperature. Sent, or an error where the model refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// Explicit nucleus mass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<TopP>,
    /// Explicit candidate count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<TopK>,
    /// Explicit bound of the visible output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<MaxTokens>,
    /// What the model does not take is left out and reported as a loss, instead of being an error.
    /// Default `false`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drop_unsupported: bool,
    /// Settings go out exactly as given: no default is filled in, nothing is added for thinking,
    /// nothing is checked. For passing somebody else's request on. Default `false`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub verbatim: bool,
}

/// Everything one model call needs. The same request encodes to the same bytes. A clone shares the
/// messages' parts and the tools.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateRequest {
    /// The transcript, the instruction first.
    pub messages: Vec<Message>,
    /// What the model may call.
    pub tools: ToolSet,
    /// The tool choice: which of the tools it may or has to call.
    pub tool_choice: ToolChoice,
    /// How the answer is generated.
    pub config: GenerationConfig,
    /// JSON Schema the whole answer must fit, if it must.
    pub response_schema: Option<Value>,
    /// How long the caller can still wait, retries included. `None`: as long as the adapter's own
    /// bounds allow.
    pub time_left: Option<Duration>,
    /// The trace that the call belongs to. Adapters that ask over HTTP hand it on as `traceparent`
    /// and `tracestate`. `None`: no trace.
    pub trace: Option<TraceContext>,
}

impl GenerateRequest {
    /// A request with nothing but a transcript.
    #[must_use]
    pub fn new(messages: Vec<Message>) -> Self {
        Self {
            messages,
            tools: ToolSet::default(),
            tool_choice: ToolChoice::Auto,
            config: GenerationConfig::default(),
            response_schema: None,
            time_left: None,
            trace: None,
        }
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It wants tools.
    ToolCalls,
    /// It hit the output bound.
    MaxTokens,
    /// The provider filtered the answer.
    ContentFilter,
    /// The model made a call the provider itself found malformed (Gemini's
    /// `MALFORMED_FUNCTION_CALL`).
    MalformedCall,
}

/// Tokens, as the provider counted them. `None`: it did not say.
///
/// Input includes what was read from a cache and what was written to one, output includes thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, cached ones included.
    #[serde(alias = "prompt_tokens")]
    pub input_tokens: Option<u64>,
    /// Tokens written, thinking included.
    #[serde(alias = "completion_tokens")]
    pub output_tokens: Option<u64>,
    /// Of the input: read from a cache.
    pub cached_tokens: Option<u64>,
    /// Of the input: written to a cache, where a provider counts and prices that apart (Anthropic).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_written_tokens: Option<u64>,
    /// Of the output: thinking.
    pub thinking_tokens: Option<u64>,
}

impl Usage {
    /// Input plus output, if the provider said both.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        Some(self.input_tokens?.saturating_add(self.output_tokens?))
    }

    /// Adds another call's tokens: a count is known as soon as one call reported it.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
            match (a, b) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
            }
        }
        Self {
            input_tokens: add(self.input_tokens, other.input_tokens),
            output_tokens: add(self.output_tokens, other.output_tokens),
            cached_tokens: add(self.cached_tokens, other.cached_tokens),
            cache_written_tokens: add(self.cache_written_tokens, other.cache_written_tokens),
            thinking_tokens: add(self.thinking_tokens, other.thinking_tokens),
        }
    }
}

/// The input and the output counter of a provider as it sent them. What they include differs
/// between providers; [`Usage`] has one meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// The one for what was read.
    pub input: Option<u64>,
    /// The one for what was written.
    pub output: Option<u64>,
}

impl Counters {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerateResponse {
    /// The pieces, in order, each with its provider state.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub finish: FinishReason,
    /// What it cost in tokens.
    #[serde(default)]
    pub usage: Usage,
    /// The provider's own two counters, before they were made comparable.
    #[serde(default, skip_serializing_if = "Counters::is_empty")]
    pub counters: Counters,
    /// What it cost in money, if the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The model that answered, as the provider names it.
    pub model: ModelId,
    /// What of the request could not be sent as asked, in words: settings left out, parts dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
}

impl GenerateResponse {
    /// All text parts, joined. Neither thinking nor refusals.
    #[must_use]
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }

    /// The calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        calls_of(&self.parts)
    }
}

/// Progress of a model that reads a prompt, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptProgress {
    /// Tokens read so far, those from a cache included.
    pub done: u32,
    /// Tokens of the prompt.
    pub total: u32,
    /// Of those read, tokens on disk: another process need not read them again.
    pub kept: u32,
    /// Time for the rest at the rate measured so far. `None`: nothing was measured yet.
    pub left: Option<Duration>,
}

impl PromptProgress {
    /// Returns the share that was read, in whole percent, rounded down.
    #[must_use]
    pub fn percent(&self) -> u32 {
        let percent = u64::from(self.done) * 100 / u64::from(self.total.max(1));
        u32::try_from(percent).unwrap_or(100).min(100)
    }
}

/// A piece of an answer on its way.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Delta {
    /// More words.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A call took shape; it is complete only in [`Delta::Finished`].
    ToolCall {
        /// Which call of this answer, from 0.
        index: usize,
        /// The tool's name, as far as it is known.
        name: String,
        /// More of the arguments' JSON text.
        arguments: String,
    },
    /// The model reads the prompt, and can say how far it is. Only before the answer begins.
    Reading(PromptProgress),
    /// The adapter waits and sends again; no part of an answer was emitted before.
    Retrying {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How long it waits.
        wait: Duration,
        /// Why, in words.
        reason: String,
    },
    /// The whole answer. The last item of a stream that did not fail.
    Finished(GenerateResponse),
}

/// Whether a model keeps to a JSON Schema for its answer, in the provider's own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaSupport {
    /// It has to be asked in words, and its answer checked.
    Prompted,
    /// Only in a request without tools.
    WithoutTools,
    /// In any request.
    Native,
}

impl SchemaSupport {
    /// Whether a request with or without tools may carry a schema.
    #[must_use]
    pub fn covers(self, with_tools: bool) -> bool {
        match self {
            Self::Prompted => false,
            Self::WithoutTools => !with_tools,
            Self::Native => true,
        }
    }
}

/// What a model can do, as data. Core decides by this and never by a vendor's name.
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    /// Tokens that fit in one request together with its answer.
    pub context_window: u32,
    /// The model cannot be trusted to call tools freely: it gets a constrained list of actions (see
    /// [`crate::weak`]).
    pub weak_tools: bool,
    /// Whether it keeps to a JSON Schema for its answer.
    pub response_schema: SchemaSupport,
    /// Runs on the user's own machine: nothing is paid, nothing leaves.
    pub local: bool,
    /// Tokens an answer may take beyond the visible output, for thinking.
    pub thinking_allowance: u32,
    /// Runs on hardware of the person's own, this machine or a server beside it, at the pace that
    /// has: a turn has no deadline unless one is set.
    pub self_hosted: bool,
}

//! Requests to models, their responses, and their capabilities.

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

/// The error for a value outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} must be {range}, not {value}")]
pub struct OutOfRange {
    /// Name of the setting, such as `temperature`.
    pub name: &'static str,
    /// Description of the allowed range.
    pub range: &'static str,
    /// The rejected value, as text.
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
                // NaN is in no range, so it is refused like any other value outside.
                let check: fn($inner) -> bool = $check;
                if check(value) {
                    Ok(Self(value))
                } else {
                    Err(OutOfRange { name: $label, range: $range, value: value.to_string() })
                }
            }

            /// Returns the validated number.
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
    Temperature: f64 as "f64", "temperature", "between 0.0 and 2.0", |value| (0.0..=2.0).contains(&value)
);
ranged!(
    /// Probability mass of nucleus sampling, no unit, `0.0..=1.0`. Unset by default: the provider's
    /// own.
    TopP: f64 as "f64", "top_p", "between 0.0 and 1.0", |value| (0.0..=1.0).contains(&value)
);
ranged!(
    /// Number of candidate tokens that are considered, at least 1. Unset by default: the provider's
    /// own.
    TopK: u32 as "u32", "top_k", "at least 1", |value| value > 0
);
ranged!(
    /// Limit of the visible output, in tokens, at least 1. Default 1,024.
    MaxTokens: u32 as "u32", "max_tokens", "at least 1", |value| value > 0
);

ranged!(
    /// Share of the context window that requests may use, `0.1..=1.0`.
    WindowShare: f64 as "f64", "a share of the window", "between 0.1 and 1.0", |value| (0.1..=1.0).contains(&value)
);

/// Settings of a model call. `None` means the default of [`crate::limits`], which is left out if
/// the provider rejects it.
///
/// # Examples
///
/// ```
/// use adjutant_core::{GenerationConfig, MaxTokens, Temperature};
///
/// let config = GenerationConfig {
///     temperature: Some(Temperature::new(0.7)?),
///     max_tokens: Some(MaxTokens::new(400)?),
///     ..GenerationConfig::default()
/// };
/// assert!(Temperature::new(3.0).is_err());
/// # let _ = config;
/// # Ok::<(), adjutant_core::OutOfRange>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
// A misspelt setting would silently be the default.
#[serde(deny_unknown_fields, default)]
pub struct GenerationConfig {
    /// Sampling temperature. An error if the model does not accept one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// Probability mass of nucleus sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<TopP>,
    /// Number of candidate tokens at each step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<TopK>,
    /// Limit of the visible output, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<MaxTokens>,
    /// Leaves out settings that the model does not accept and reports them in
    /// [`GenerateResponse::losses`], instead of failing. Default `false`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drop_unsupported: bool,
    /// Sends the settings exactly as given: no defaults, no allowance for thinking, no validation.
    /// For forwarding requests of others. Default `false`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub verbatim: bool,
}

/// A model call. Equal requests encode to equal bytes. Clones share the messages' parts and the
/// tools.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateRequest {
    /// Messages in order, the instruction first.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    pub tools: ToolSet,
    /// Constraint on which tools the model may or has to call.
    pub tool_choice: ToolChoice,
    /// Sampling settings and output limit.
    pub config: GenerationConfig,
    /// JSON Schema that the whole response must fit, if one is required.
    pub response_schema: Option<Value>,
    /// Time that the caller still waits, including retries. `None`: the adapter's own timeouts
    /// apply.
    pub time_left: Option<Duration>,
    /// True if another model is asked if this one cannot answer, so that an overload is not waited
    /// for. Default `false`.
    pub has_fallback: bool,
    /// Trace context that HTTP adapters send as `traceparent` and `tracestate`. `None`: no trace.
    pub trace: Option<TraceContext>,
}

impl GenerateRequest {
    /// Creates a request with messages only: no tools and default settings.
    #[must_use]
    pub fn new(messages: Vec<Message>) -> Self {
        Self {
            messages,
            tools: ToolSet::default(),
            tool_choice: ToolChoice::Auto,
            config: GenerationConfig::default(),
            response_schema: None,
            time_left: None,
            has_fallback: false,
            trace: None,
        }
    }
}

/// The reason for which a model stopped generating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The response is complete.
    Stop,
    /// The model called tools and waits for their results.
    ToolCalls,
    /// The output limit was reached, so the response is cut.
    MaxTokens,
    /// The provider's content filter removed the response.
    ContentFilter,
    /// The provider rejected the model's own call as malformed (Gemini's
    /// `MALFORMED_FUNCTION_CALL`).
    MalformedCall,
}

/// Token counts as the provider reported them. `None`: not reported.
///
/// Input includes tokens read from and written to a cache; output includes thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    // The name in OpenAI's API.
    #[serde(alias = "prompt_tokens")]
    pub input_tokens: Option<u64>,
    /// Tokens of the response, thinking included.
    #[serde(alias = "completion_tokens")]
    pub output_tokens: Option<u64>,
    /// Input tokens that were read from a cache.
    pub cached_tokens: Option<u64>,
    /// Input tokens that were written to a cache, if the provider prices that separately
    /// (Anthropic).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_written_tokens: Option<u64>,
    /// Output tokens that were spent on thinking.
    pub thinking_tokens: Option<u64>,
}

impl Usage {
    /// Returns input plus output tokens, if both are known.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        Some(self.input_tokens?.saturating_add(self.output_tokens?))
    }

    /// Adds the tokens of another call. A count is known if at least one call reported it.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
            match (a, b) {
                // Not reported is not the same as zero.
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

/// A provider's own two token counters. What they include differs between providers; [`Usage`] is
/// comparable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// The provider's counter of input tokens.
    pub input: Option<u64>,
    /// The provider's counter of output tokens.
    pub output: Option<u64>,
}

impl Counters {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A complete response of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerateResponse {
    /// Parts in order, each with its provider state.
    pub parts: Vec<Part>,
    /// Reason for which the model stopped.
    pub finish: FinishReason,
    /// Token counts of the call.
    #[serde(default)]
    pub usage: Usage,
    /// The provider's own counters, before they were made comparable.
    #[serde(default, skip_serializing_if = "Counters::is_empty")]
    pub counters: Counters,
    /// Cost, if the provider reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Model that responded, as the provider names it.
    pub model: ModelId,
    /// Probability of the answer among all that the schema allows, `0.0..=1.0`. `None` without a
    /// schema, or if the provider does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<f32>,
    /// Parts and settings of the request that could not be sent as given, as messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
}

impl GenerateResponse {
    /// Returns all text parts, concatenated, without thinking and refusals.
    #[must_use]
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }

    /// Returns the calls of the response in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        calls_of(&self.parts)
    }
}

/// Progress of a model that is processing its prompt, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptProgress {
    /// Tokens processed so far, including cached ones.
    pub done: u32,
    /// Tokens of the whole prompt.
    pub total: u32,
    /// Processed tokens whose state is on disk, so that another process need not repeat them.
    pub kept: u32,
    /// Estimated time for the rest. `None`: nothing was measured yet.
    pub left: Option<Duration>,
}

impl PromptProgress {
    /// Returns the processed share in whole percent, rounded down.
    #[must_use]
    pub fn percent(&self) -> u32 {
        // The total of an empty prompt is 0.
        let percent = u64::from(self.done) * 100 / u64::from(self.total.max(1));
        u32::try_from(percent).unwrap_or(100).min(100)
    }
}

/// A piece of a streamed response.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Delta {
    /// The next piece of text.
    Text(String),
    /// The next piece of reasoning.
    Thinking(String),
    /// A piece of a tool call, which is complete only in [`Delta::Finished`].
    ToolCall {
        /// Index of the call in the response, from 0.
        index: usize,
        /// Name of the tool as far as it is known.
        name: String,
        /// The next piece of the arguments' JSON text.
        arguments: String,
    },
    /// Progress of processing the prompt. Only before the response begins.
    Reading(PromptProgress),
    /// The adapter waits before it sends the request again. Only before the response begins.
    Retrying {
        /// Number of the failed attempt, from 1.
        attempt: u32,
        /// Time until the next attempt.
        wait: Duration,
        /// Description of the failure.
        reason: String,
    },
    /// The complete response: the last item of a stream that did not fail.
    Finished(GenerateResponse),
}

/// A model's native support for JSON Schema in responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaSupport {
    /// None: the schema is part of the prompt, and the response is validated.
    Prompted,
    /// Supported in requests that have no tools.
    WithoutTools,
    /// Supported in every request, with and without tools.
    Native,
}

impl SchemaSupport {
    /// Returns true if a request with or without tools may carry a schema.
    #[must_use]
    pub fn covers(self, with_tools: bool) -> bool {
        match self {
            Self::Prompted => false,
            Self::WithoutTools => !with_tools,
            Self::Native => true,
        }
    }
}

/// Limits and features of a model, as data. Decisions depend on these and never on a provider's
/// name.
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    /// Size of the context window: tokens of a request together with its response.
    pub context_window: u32,
    /// The model calls tools unreliably, so it gets constrained tool calling instead (crate
    /// `adjutant-weak`).
    pub weak_tools: bool,
    /// Native support for a JSON Schema of the response.
    pub response_schema: SchemaSupport,
    /// The model runs on the user's own machine: nothing is paid, and no data leaves it.
    pub local: bool,
    /// Tokens that thinking may use beyond the visible output.
    pub thinking_allowance: u32,
    /// The model runs on the person's own hardware, this machine or a server, at its pace: turns
    /// have no deadline unless one is set.
    pub self_hosted: bool,
}

//! [`OllamaOptions`], and the limits and settings of a model: as set by the user, as described by
//! the server.

use adjutant_core::SchemaSupport;
use serde_json::Value;

use super::server::ModelInfo;
use crate::family::{FamilyLimits, Images, Setting};

/// Tokens added for the thinking of a model that thinks: `num_predict` bounds thinking and visible
/// output together.
const THINKING_ALLOWANCE: u32 = 8_192;

/// The options with which an Ollama server runs a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OllamaOptions {
    /// The context window in tokens, prompt and answer together. Always sent, because the server's
    /// own default is small and cuts prompts silently. Default 32,768.
    pub num_ctx: u32,
    /// The time for which the model stays in memory after a request: a Go duration (`10m`, `-1s`
    /// for ever) or a number of seconds. Default: the server's own, 5 minutes.
    pub keep_alive: Option<String>,
    /// The amount of thinking before the answer. Default: the model's own.
    pub think: Option<Think>,
    /// True to ask the server once, before the first request, for the model's capabilities. A
    /// request with [`adjutant_core::GenerationConfig::verbatim`] never asks. Default `true`.
    pub probe: bool,
}

impl Default for OllamaOptions {
    fn default() -> Self {
        Self {
            num_ctx: 32_768,
            keep_alive: None,
            think: None,
            probe: true,
        }
    }
}

/// The amount of thinking before an answer. A model that cannot think refuses everything but
/// [`Think::Off`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Think {
    /// The model does not think before it answers.
    Off,
    /// The model thinks for as long as it chooses.
    On,
    /// Brief thinking. Only some models, such as gpt-oss, support levels.
    Low,
    /// The middle of the three levels.
    Medium,
    /// Long thinking, the highest of the three levels.
    High,
    /// The most thinking that the model supports.
    Max,
}

impl Think {
    /// Parses `off`, `on`, `low`, `medium`, `high` or `max`; `None` for anything else.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "off" => Self::Off,
            "on" => Self::On,
            "low" => Self::Low,
            "medium" => Self::Medium,
            "high" => Self::High,
            "max" => Self::Max,
            _ => return None,
        })
    }

    pub(super) fn to_json(self) -> Value {
        match self {
            Self::Off => false.into(),
            Self::On => true.into(),
            Self::Low => "low".into(),
            Self::Medium => "medium".into(),
            Self::High => "high".into(),
            Self::Max => "max".into(),
        }
    }
}

/// The limits and settings of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    /// Limits and settings that every vendor's models have.
    pub(super) common: FamilyLimits,
    /// True if the model calls tools; a request with tools is an error otherwise.
    pub(super) tools: bool,
}

impl Family {
    /// Combines the user's options with the server's description of the model. An unknown
    /// capability is assumed, because the server refuses what it lacks.
    pub(super) fn new(options: &OllamaOptions, model: Option<&ModelInfo>) -> Self {
        let can = |what: &str| model.is_none_or(|model| model.can(what));
        let thinks =
            model.is_some_and(|model| model.can("thinking")) && options.think != Some(Think::Off);
        Self {
            common: Self::common(options, thinks, can("vision")),
            tools: can("tools"),
        }
    }

    /// Returns upper bounds for a model of which nothing is known: it may think, and see images.
    pub(super) fn upper_bounds(options: &OllamaOptions) -> FamilyLimits {
        Self::common(options, options.think != Some(Think::Off), true)
    }

    fn common(options: &OllamaOptions, thinks: bool, sees: bool) -> FamilyLimits {
        FamilyLimits {
            context_window: options.num_ctx,
            output_max: options.num_ctx,
            thinking_allowance: if thinks { THINKING_ALLOWANCE } else { 0 },
            // Vendors of thinking models advise against greedy decoding, because they then repeat
            // themselves without end (model cards of Qwen3, DeepSeek-R1, gpt-oss). Without a value
            // the server uses the model file's.
            temperature: if thinks {
                Setting::AdvisedAgainst
            } else {
                Setting::Taken
            },
            top_p: Setting::Taken,
            top_k: Setting::Taken,
            // A schema constrains every token, so that no tool can be called (`ollama#11037`).
            schema: SchemaSupport::WithoutTools,
            images: if sees { Images::Bytes } else { Images::None },
            unknown: false,
        }
    }
}

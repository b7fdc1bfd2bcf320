//! What differs between the models of a server: what the person set, and what the server says.

use adjutant_core::SchemaSupport;
use serde_json::Value;

use super::server::ModelInfo;
use crate::family::{Common, Images, Setting};

/// Tokens of room for the thinking of a model that thinks, on top of the visible output:
/// `num_predict` counts both.
const THINKING_ALLOWANCE: u32 = 8_192;

/// How a model is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OllamaOptions {
    /// Tokens the model can hold, prompt and answer together. Always sent, because the server's own
    /// default is small and cuts silently. Default 32,768.
    pub num_ctx: u32,
    /// How long the model stays in memory afterwards: a Go duration (`10m`, `-1s` for ever) or a
    /// number of seconds. Default: the server's own, 5 minutes.
    pub keep_alive: Option<String>,
    /// Whether the model thinks first. Default: as it likes.
    pub think: Option<Think>,
    /// Ask the server once, before the first request, what the model can do. A request with
    /// [`adjutant_core::GenerationConfig::verbatim`] never asks. Default `true`.
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

/// Whether, and how long, a model thinks first. A model that cannot think refuses everything but
/// [`Think::Off`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Think {
    /// Not at all.
    Off,
    /// As long as it likes.
    On,
    /// Briefly. Only some models, such as gpt-oss, know levels.
    Low,
    /// For some time.
    Medium,
    /// Long.
    High,
    /// As long as it can.
    Max,
}

impl Think {
    /// What a word means: `off`, `on`, `low`, `medium`, `high` or `max`. `None`: none of them.
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

/// What a request is encoded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    /// What every vendor's models differ in.
    pub(super) common: Common,
    /// Calls tools; a request with tools is an error otherwise.
    pub(super) tools: bool,
}

impl Family {
    /// As set, and as far as it is known. What is not known is taken for possible: the server says
    /// no if it is not.
    pub(super) fn of(options: &OllamaOptions, model: Option<&ModelInfo>) -> Self {
        let can = |what: &str| model.is_none_or(|model| model.can(what));
        let thinks =
            model.is_some_and(|model| model.can("thinking")) && options.think != Some(Think::Off);
        Self {
            common: Self::common(options, thinks, can("vision")),
            tools: can("tools"),
        }
    }

    /// What a model may take at most, before anything is known of it: it may think, and see.
    pub(super) fn at_most(options: &OllamaOptions) -> Common {
        Self::common(options, options.think != Some(Think::Off), true)
    }

    fn common(options: &OllamaOptions, thinks: bool, sees: bool) -> Common {
        Common {
            context_window: options.num_ctx,
            output_max: options.num_ctx,
            thinking_allowance: if thinks { THINKING_ALLOWANCE } else { 0 },
            // Who makes models that think advises against greedy decoding: they repeat themselves
            // without end (model cards of Qwen3, DeepSeek-R1, gpt-oss). The server then takes what
            // the model's own file says.
            temperature: if thinks {
                Setting::AdvisedAgainst
            } else {
                Setting::Taken
            },
            top_p: Setting::Taken,
            top_k: Setting::Taken,
            // A schema binds every token, so that no tool can be called (`ollama#11037`).
            schema: SchemaSupport::WithoutTools,
            images: if sees { Images::Bytes } else { Images::None },
            unknown: false,
        }
    }
}

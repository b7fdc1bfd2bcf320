//! What differs between the models of a vendor, as data: one row a family.

use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use adjutant_core::{Capabilities, SchemaSupport};

/// Tokens that an answer of a model nobody knows may have, thinking included, where no bound was
/// set.
pub(crate) const UNKNOWN_OUTPUT: u32 = 16_384;

/// What a family of models takes and does. A vendor's table is made of these; its `family.rs` says
/// where each fact is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Common {
    /// Tokens in and out together.
    pub(crate) context_window: u32,
    /// The most tokens one answer may have, thinking included.
    pub(crate) output_max: u32,
    /// Tokens on top of the visible output, for thinking that the vendor counts inside its cap. 0:
    /// does not think, or counts it apart.
    pub(crate) thinking_allowance: u32,
    /// Sampling temperature.
    pub(crate) temperature: Setting,
    /// Nucleus sampling.
    pub(crate) top_p: Setting,
    /// Candidate count.
    pub(crate) top_k: Setting,
    /// An answer that keeps to a JSON Schema.
    pub(crate) schema: SchemaSupport,
    /// Pictures.
    pub(crate) images: Images,
    /// No table knows the model: it may think inside its output and refuse settings for sampling,
    /// so none of ours go out.
    pub(crate) unknown: bool,
}

/// Whether a model takes a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Any value in range.
    Taken,
    /// Takes it, but its vendor advises against it: the default is left out, an explicit value is
    /// sent.
    AdvisedAgainst,
    /// Answers with an error.
    Refused,
}

/// How pictures can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Images {
    /// Not at all.
    None,
    /// Their bytes only.
    Bytes,
    /// Their bytes, or an address the vendor fetches.
    BytesOrUrl,
}

impl Common {
    /// The same on a server of the person's own: what it runs was chosen by the person, and its
    /// windows are small.
    pub(crate) fn at_home(self) -> Self {
        Self {
            unknown: false,
            ..self
        }
    }

    /// What the rest of the house needs to know of it.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let room = UNKNOWN_OUTPUT.saturating_sub(OUTPUT_TOKENS_MAX);
        Capabilities {
            context_window: self.context_window,
            weak_tools: false,
            response_schema: self.schema,
            local: false,
            thinking_allowance: if self.unknown {
                room
            } else {
                self.thinking_allowance
            },
            self_hosted: false,
        }
    }
}

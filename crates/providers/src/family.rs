//! Limits and supported settings of model families, as data: one row per family.

use adjutant_core::limits::OUTPUT_TOKENS_MAX;
use adjutant_core::{Capabilities, SchemaSupport};

/// The default bound of tokens in an answer of an unknown model, thinking included.
pub(crate) const UNKNOWN_OUTPUT: u32 = 16_384;

/// The limits and the supported settings of a model family, for every vendor. A vendor's table in
/// its `family.rs` is made of these, with the source of each fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FamilyLimits {
    /// Tokens of prompt and answer together.
    pub(crate) context_window: u32,
    /// Tokens of one answer at most, thinking included.
    pub(crate) output_max: u32,
    /// Tokens added to the caller's bound for thinking, because the vendor counts thinking inside
    /// that bound. 0 if the model does not think, or the vendor counts it apart.
    pub(crate) thinking_allowance: u32,
    /// Support of `temperature`.
    pub(crate) temperature: Setting,
    /// Support of `top_p`, nucleus sampling.
    pub(crate) top_p: Setting,
    /// Support of `top_k`.
    pub(crate) top_k: Setting,
    /// Support of answers that conform to a JSON Schema.
    pub(crate) schema: SchemaSupport,
    /// The forms in which images may be sent.
    pub(crate) images: Images,
    /// True if no table knows the model: it may think inside its output bound and refuse sampling
    /// settings, so none of our defaults are sent.
    pub(crate) unknown: bool,
}

/// The support of a sampling setting by a model family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Any value in range is accepted.
    Taken,
    /// Accepted, but the vendor advises against it: no default is sent, an explicit value is.
    AdvisedAgainst,
    /// The vendor answers with an error.
    Refused,
}

/// The forms in which images may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Images {
    /// Images are refused.
    None,
    /// The bytes of the image, as base64.
    Bytes,
    /// The bytes, or an address from which the vendor fetches them.
    BytesOrUrl,
}

impl FamilyLimits {
    /// Returns the limits for a self-hosted server: the user chose the model, so it is treated as
    /// known; its context window is small, so no space is reserved for thinking.
    pub(crate) fn for_self_hosted(self) -> Self {
        Self {
            unknown: false,
            ..self
        }
    }

    /// Returns the limits as the rest of the workspace knows them.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let allowance_if_unknown = UNKNOWN_OUTPUT.saturating_sub(OUTPUT_TOKENS_MAX);
        Capabilities {
            context_window: self.context_window,
            weak_tools: false,
            response_schema: self.schema,
            local: false,
            thinking_allowance: if self.unknown {
                allowance_if_unknown
            } else {
                self.thinking_allowance
            },
            self_hosted: false,
        }
    }
}

/// Parses the version that the text begins with, such as that of `4.1-mini`. A missing part is 0;
/// `None` if the text begins with no number.
pub(crate) fn parse_version(text: &str) -> Option<(u32, u32)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let version = &text[..end.unwrap_or(text.len())];
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    let (major, minor) = (numbers.next()?, numbers.next().unwrap_or(0));
    (!version.is_empty()).then_some((major, minor))
}

//! Limits and supported settings of Gemini models, as one table.

use adjutant_core::SchemaSupport;

use crate::family::{FamilyLimits, Images, Setting, parse_version};

/// A family of Gemini models: one row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    /// Limits and settings that every vendor's models have.
    pub(super) common: FamilyLimits,
    /// True if calls in the transcript need a thought signature.
    pub(super) checks_signatures: bool,
}

/// Gemini 1.x and 2.0, and names we do not know (Gemma, tuned models).
const CLASSIC: Family = Family {
    common: FamilyLimits {
        context_window: 1_048_576,
        output_max: 8_192,
        thinking_allowance: 0,
        temperature: Setting::Taken,
        top_p: Setting::Taken,
        top_k: Setting::Taken,
        schema: SchemaSupport::WithoutTools,
        images: Images::BytesOrUrl,
        unknown: false,
    },
    checks_signatures: false,
};

/// Gemini 2.5: thinks. Source: "Gemini thinking" and "Structured outputs" in the vendor's guide,
/// checked 2026-11-21.
const TWO_FIVE: Family = Family {
    common: FamilyLimits {
        thinking_allowance: 8_192,
        output_max: 65_536,
        ..CLASSIC.common
    },
    checks_signatures: false,
};

/// Gemini 3: thinks more; sampling settings are deprecated since 2026-07-21 (release notes) and
/// advised against since 3.0; calls need their signatures ("Thought signatures"); tools and
/// structured output may be combined ("Gemini 3 developer guide").
const THREE: Family = Family {
    common: FamilyLimits {
        thinking_allowance: 16_384,
        temperature: Setting::AdvisedAgainst,
        schema: SchemaSupport::Native,
        ..TWO_FIVE.common
    },
    checks_signatures: true,
};

/// Returns the family of a model by its name. Aliases without a version (`gemini-flash-latest`) are
/// of the newest family.
pub(super) fn for_model(model: &str) -> Family {
    let Some(rest) = model.strip_prefix("gemini-") else {
        return CLASSIC;
    };
    match parse_version(rest) {
        None | Some((3.., _)) => THREE,
        Some((2, 5..)) => TWO_FIVE,
        Some((_, _)) => CLASSIC,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_row() {
        for (name, family) in [
            ("gemini-1.5-flash", CLASSIC),
            ("gemini-2.0-flash-lite", CLASSIC),
            ("gemini-2.5-pro", TWO_FIVE),
            ("gemini-3-flash-preview", THREE),
            ("gemini-3.8-flash", THREE),
            ("gemini-4-argon", THREE),
            ("gemini-flash-latest", THREE),
            ("gemma-3-27b-it", CLASSIC),
            ("tunedModels/mine", CLASSIC),
        ] {
            assert_eq!(for_model(name), family, "{name}");
        }
    }
}

//! Limits and supported settings of Claude models, as one table.
//!
//! Source: "Models overview", the page of each model and its migration guide, "Structured outputs",
//! "Preserved thinking" (all checked 2026-11-22).

use adjutant_core::SchemaSupport;

use crate::encode::Forcing;
use crate::family::{FamilyLimits, Images, Setting};

/// A family of Claude models: one row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    /// Limits and settings that every vendor's models have.
    pub(super) common: FamilyLimits,
    /// True if a thinking block may go back only after the very transcript it was generated from.
    /// Anything else is an error, unless the request asks for the block to be dropped instead.
    pub(super) binds_thinking: bool,
    /// The required calls that the model can be held to: none while it thinks.
    pub(super) forcing: Forcing,
    /// True if a message may have the role `system`, which applies from its place on and leaves the
    /// prefix before it as it was.
    pub(super) takes_system_messages: bool,
}

impl Family {
    /// Returns a family that differs from this one in these limits and settings.
    const fn with(self, common: FamilyLimits) -> Self {
        Self { common, ..self }
    }
}

/// Claude 3 and earlier.
const THREE: Family = Family {
    common: FamilyLimits {
        context_window: 200_000,
        output_max: 4_096,
        thinking_allowance: 0,
        temperature: Setting::Taken,
        top_p: Setting::Taken,
        top_k: Setting::Taken,
        schema: SchemaSupport::Prompted,
        images: Images::BytesOrUrl,
        unknown: false,
    },
    binds_thinking: false,
    forcing: Forcing::Any,
    takes_system_messages: false,
};

/// Names without a version: models of other vendors behind the same API.
const OTHER: Family = Family {
    // They may think as well.
    forcing: Forcing::Never,
    ..THREE.with(FamilyLimits {
        unknown: true,
        ..THREE.common
    })
};

/// Claude 3.7 and 4.
const FOUR: Family = THREE.with(FamilyLimits {
    output_max: 64_000,
    ..THREE.common
});

/// Claude 4.5: enforces response schemas. Does not think unless asked to, which we do not.
const FOUR_FIVE: Family = FOUR.with(FamilyLimits {
    schema: SchemaSupport::Native,
    ..FOUR.common
});

/// Claude 4.6.
const FOUR_SIX: Family = FOUR_FIVE.with(FamilyLimits {
    context_window: 1_000_000,
    ..FOUR_FIVE.common
});

/// Claude 4.7: sampling settings are an error unless they equal the vendor's defaults.
const FOUR_SEVEN: Family = FOUR_SIX.with(FamilyLimits {
    output_max: 128_000,
    temperature: Setting::Refused,
    top_p: Setting::Refused,
    top_k: Setting::Refused,
    ..FOUR_SIX.common
});

/// Claude 4.8: takes system messages in the middle. Source: "Mid-conversation system messages"
/// (checked 2026-11-28).
const FOUR_EIGHT: Family = Family {
    takes_system_messages: true,
    ..FOUR_SEVEN
};

/// Claude 5: thinks unasked ("adaptive"), inside `max_tokens`.
const FIVE: Family = Family {
    forcing: Forcing::Never,
    ..FOUR_EIGHT.with(FamilyLimits {
        thinking_allowance: 16_384,
        ..FOUR_SEVEN.common
    })
};

/// Claude 5.1 and later. Thinking blocks are bound to their transcript: Fable and Mythos since 5.1,
/// the others since 5.5.
const FIVE_ONE: Family = Family {
    binds_thinking: true,
    ..FIVE
};

/// Returns the family of a model by its name, which proxies may prefix
/// (`anthropic/claude-haiku-4.5`). A Claude without a version is the newest.
pub(super) fn for_model(model: &str) -> Family {
    let Some((prefix, rest)) = model.split_once("claude-") else {
        return OTHER;
    };
    let family = of_version(rest);
    // Bedrock (`us.anthropic.claude-...`) and Vertex AI (`claude-...@20260528`) have no system
    // messages in the middle.
    let at_a_cloud = prefix.ends_with("anthropic.") || rest.contains('@');
    Family {
        takes_system_messages: family.takes_system_messages && !at_a_cloud,
        ..family
    }
}

/// Returns the family by the part of a name that follows `claude-`.
fn of_version(rest: &str) -> Family {
    let words = || rest.split(['-', '.', '@', ':', '/']);
    // A date (`20250929`) is no part of the version.
    let is_number = |word: &&str| word.len() < 3 && word.parse::<u32>().is_ok();
    let mut numbers = words()
        .skip_while(|word| !is_number(word))
        .take_while(is_number)
        .filter_map(|word| word.parse().ok());
    let number: (Option<u32>, u32) = (numbers.next(), numbers.next().unwrap_or(0));
    let output = |family: Family, output_max| {
        family.with(FamilyLimits {
            output_max,
            ..family.common
        })
    };
    let is = |size: &str| words().any(|word| word == size);
    match number {
        // The preview of Mythos was released before version 5 but thinks like it.
        (None, _) if is("preview") => Family {
            takes_system_messages: false,
            ..FIVE
        },
        (None, _) => FIVE_ONE,
        (Some(0..=2), _) | (Some(3), 0..=4) => THREE,
        (Some(3), 5..=6) => output(THREE, 8_192),
        (Some(3), _) => FOUR,
        (Some(4), 0..=4) if is("opus") => output(FOUR, 32_000),
        (Some(4), 0..=4) => FOUR,
        (Some(4), 5) => FOUR_FIVE,
        (Some(4), 6) if is("opus") => output(FOUR_SIX, 128_000),
        (Some(4), 6) => FOUR_SIX,
        (Some(4), 7) => FOUR_SEVEN,
        (Some(4), _) => FOUR_EIGHT,
        (Some(5), 0) => FIVE,
        (Some(5..), _) => FIVE_ONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_row() {
        let output = |family: Family, output_max| Family {
            common: FamilyLimits {
                output_max,
                ..family.common
            },
            ..family
        };
        for (name, family) in [
            ("claude-3-haiku-20240307", THREE),
            ("claude-3-5-sonnet-20241022", output(THREE, 8_192)),
            ("claude-3-7-sonnet-latest", FOUR),
            ("claude-opus-4-20250514", output(FOUR, 32_000)),
            ("claude-opus-4-1", output(FOUR, 32_000)),
            ("claude-sonnet-4@20250514", FOUR),
            ("claude-sonnet-4-5-20250929", FOUR_FIVE),
            ("anthropic/claude-haiku-4.5", FOUR_FIVE),
            ("claude-opus-4-6", output(FOUR_SIX, 128_000)),
            ("claude-sonnet-4-6", FOUR_SIX),
            ("claude-opus-4-7", FOUR_SEVEN),
            ("claude-opus-4-8", FOUR_EIGHT),
            ("claude-opus-4-8@20260528", FOUR_SEVEN),
            ("us.anthropic.claude-opus-4-8-v1:0", FOUR_SEVEN),
            (
                "claude-mythos-preview",
                Family {
                    takes_system_messages: false,
                    ..FIVE
                },
            ),
            ("claude-sonnet-5", FIVE),
            ("claude-fable-5-1", FIVE_ONE),
            (super::super::DEFAULT_MODEL, FIVE_ONE),
            ("claude-haiku-6", FIVE_ONE),
            ("kimi-k3", OTHER),
        ] {
            assert_eq!(for_model(name), family, "{name}");
        }
    }
}

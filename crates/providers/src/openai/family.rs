//! Limits and supported settings of OpenAI's models, as one table. The API reports none of it.
//!
//! Sources, checked 2026-11-22: "Compare models" and the models' own pages (windows, output limits,
//! images), "Reasoning models" (room for thinking, refused settings), "Structured outputs" (which
//! models enforce schemas) in the vendor's guide.

use adjutant_core::SchemaSupport;

use crate::family::{FamilyLimits, Images, Setting, parse_version};

/// A family of models behind OpenAI's APIs: one row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    /// Limits and settings that every vendor's models have.
    pub(super) common: FamilyLimits,
    /// True if it may think before it answers. Responses returns that as encrypted items on
    /// request.
    pub(super) reasons: bool,
    /// Support of functions in Chat Completions.
    pub(super) functions: Functions,
}

impl Family {
    /// Returns a family that differs from this one in these limits and settings.
    const fn with(self, common: FamilyLimits) -> Self {
        Self { common, ..self }
    }
}

/// The support of a model's functions in Chat Completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Functions {
    /// Functions are accepted.
    Taken,
    /// Accepted only with `reasoning_effort` `none`: the vendor's error says so, also if no effort
    /// was sent (checked 2026-11-22, `BerriAI/litellm#34569`), and so does the page of `gpt-6-sol`.
    WithoutEffort,
    /// Refused: the same error, and `none` is not among the efforts (checked 2026-11-23,
    /// `bolna-ai/bolna#1019` and the page of `gpt-6.2-sol`).
    Refused,
}

/// GPT-4o, and at OpenAI itself unknown names (other than `gpt-5` and later).
const FOUR_O: Family = Family {
    common: FamilyLimits {
        context_window: 128_000,
        output_max: 16_384,
        thinking_allowance: 0,
        temperature: Setting::Taken,
        top_p: Setting::Taken,
        top_k: Setting::Refused,
        schema: SchemaSupport::Native,
        images: Images::BytesOrUrl,
        unknown: false,
    },
    reasons: false,
    functions: Functions::Taken,
};

/// GPT-4.1.
const FOUR_ONE: Family = FOUR_O.with(FamilyLimits {
    context_window: 1_047_576,
    output_max: 32_768,
    ..FOUR_O.common
});

/// GPT-4 Turbo: released before Structured Outputs, which begin with `gpt-4o-2024-08-06`.
const FOUR_TURBO: Family = FOUR_O.with(FamilyLimits {
    output_max: 4_096,
    schema: SchemaSupport::Prompted,
    ..FOUR_O.common
});

/// The first GPT-4.
const FOUR: Family = FOUR_TURBO.with(FamilyLimits {
    context_window: 8_192,
    output_max: 8_192,
    images: Images::None,
    ..FOUR_TURBO.common
});

/// GPT-3.5.
const THREE_FIVE: Family = FOUR.with(FamilyLimits {
    context_window: 16_385,
    output_max: 4_096,
    ..FOUR.common
});

/// The o series: thinks inside its output limit. "Reasoning models" advises to reserve at least
/// 25,000 tokens for that, and says that `temperature` and `top_p` are refused.
const O_SERIES: Family = Family {
    common: FamilyLimits {
        context_window: 200_000,
        output_max: 100_000,
        thinking_allowance: 25_000,
        temperature: Setting::Refused,
        top_p: Setting::Refused,
        ..FOUR_O.common
    },
    reasons: true,
    functions: Functions::Taken,
};

const O3_MINI: Family = O_SERIES.with(FamilyLimits {
    images: Images::None,
    ..O_SERIES.common
});

/// GPT-5 and the models after it that think.
const FIVE: Family = O_SERIES.with(FamilyLimits {
    context_window: 400_000,
    output_max: 128_000,
    ..O_SERIES.common
});

/// 5.1, 5.2 and 5.4 do not think unless told to (effort `none` is their default), and accept
/// sampling settings then ("Using GPT-5.4", parameter compatibility). There are reports of both
/// being refused all the same (`johny-b/llmcomp#69`), so no default is sent.
const FIVE_QUIET: Family = FIVE.with(FamilyLimits {
    thinking_allowance: 0,
    temperature: Setting::AdvisedAgainst,
    top_p: Setting::Taken,
    ..FIVE.common
});

/// The models behind ChatGPT; the first of them accepts sampling settings, the later ones do not.
const FIVE_CHAT: Family = FIVE.with(FamilyLimits {
    context_window: 128_000,
    output_max: 16_384,
    thinking_allowance: 0,
    ..FIVE.common
});

/// The larger context window, in tokens.
const MILLION: u32 = 1_050_000;

/// Returns the family of a model by its name. An unknown name is passed on unchanged, with the row
/// of GPT-4o.
pub(super) fn for_model(model: &str) -> Family {
    known(model).unwrap_or(FOUR_O)
}

/// Returns the family of a deployment, which may have any name. If it is not a model's name,
/// nothing is known of the model.
pub(super) fn for_deployment(name: &str) -> Family {
    known(name).unwrap_or(FOUR_O.with(FamilyLimits {
        unknown: true,
        ..FOUR_O.common
    }))
}

fn known(model: &str) -> Option<Family> {
    let model = model.strip_prefix("ft:").unwrap_or(model);
    // Some servers put the vendor in front.
    let model = model.strip_prefix("openai/").unwrap_or(model);
    let has = |word: &str| model.split('-').any(|part| part == word);
    if let Some(rest) = model.strip_prefix("gpt-") {
        return Some(match parse_version(rest)? {
            // The second is Azure's spelling of 3.5.
            (3 | 35, _) => THREE_FIVE,
            // "Model incompatible request arguments supplied: temperature, top_p"
            // (`charmbracelet/mods#480`).
            (4, 0) if rest.starts_with("4o") => with_sampling(FOUR_O, !has("search")),
            (4, 0) if has("turbo") => FOUR_TURBO,
            (4, 0) => FOUR,
            (4, _) => FOUR_ONE,
            (5, minor) if has("chat") => with_sampling(FIVE_CHAT, minor == 0),
            (5, 1 | 2) if !(has("codex") || has("pro")) => FIVE_QUIET,
            (5, 0..=3) => FIVE,
            (5, 4) if has("mini") || has("nano") => FIVE_QUIET,
            (5, 4) if has("pro") || has("codex") => with_window(FIVE, MILLION),
            (5, 4) => with_window(FIVE_QUIET, MILLION),
            (5, 5) => with_window(FIVE, MILLION),
            (5, 6) => Family {
                functions: Functions::WithoutEffort,
                ..with_window(FIVE, MILLION)
            },
            (6, 0) if has("sol") || has("luna") => for_model("gpt-5.6"),
            // Their efforts begin with `low`; later models are assumed to be alike.
            (5.., _) => Family {
                functions: Functions::Refused,
                ..with_window(FIVE, MILLION)
            },
            (_, _) => return None,
        });
    }
    match model.split('-').next() {
        Some("o3") if has("mini") => Some(O3_MINI),
        Some("o1" | "o3" | "o4" | "codex") => Some(O_SERIES),
        Some("chatgpt") => Some(FOUR_O),
        _ => None,
    }
}

fn with_window(family: Family, context_window: u32) -> Family {
    family.with(FamilyLimits {
        context_window,
        ..family.common
    })
}

fn with_sampling(family: Family, taken: bool) -> Family {
    let setting = if taken {
        Setting::Taken
    } else {
        Setting::Refused
    };
    family.with(FamilyLimits {
        temperature: setting,
        top_p: setting,
        ..family.common
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_row() {
        for (name, family) in [
            ("gpt-3.5-turbo-0125", THREE_FIVE),
            ("gpt-4", FOUR),
            ("gpt-4-0613", FOUR),
            ("gpt-4-turbo-2024-04-09", FOUR_TURBO),
            ("gpt-4o-mini", FOUR_O),
            ("chatgpt-4o-latest", FOUR_O),
            ("ft:gpt-4.1-mini-2025-04-14:acme::x", FOUR_ONE),
            ("gpt-4.1-nano", FOUR_ONE),
            ("gpt-5", FIVE),
            ("gpt-5-mini-2025-08-07", FIVE),
            ("gpt-5.2", FIVE_QUIET),
            ("gpt-5.3-codex", FIVE),
            ("gpt-5.4-mini", FIVE_QUIET),
            ("o1-pro", O_SERIES),
            ("o3-mini", O3_MINI),
            ("o4-mini-2025-04-16", O_SERIES),
            ("openai/o3", O_SERIES),
            ("my-deployment", FOUR_O),
        ] {
            assert_eq!(for_model(name), family, "{name}");
        }
    }

    #[test]
    fn a_deployment_has_any_name() {
        let (named, other) = (for_deployment("gpt-4.1-mini"), for_deployment("prod-chat"));
        assert_eq!(
            (named, for_deployment("gpt-35-turbo")),
            (FOUR_ONE, THREE_FIVE)
        );
        assert!(other.common.unknown && !for_model("prod-chat").common.unknown);
    }

    #[test]
    fn the_newest_need_room_and_say_how_they_take_functions() {
        let sol = for_model("gpt-5.6-sol");
        assert_eq!(
            (sol.common.context_window, sol.common.output_max),
            (MILLION, 128_000)
        );
        assert_eq!(
            (sol.common.temperature, sol.common.thinking_allowance),
            (Setting::Refused, 25_000)
        );
        assert_eq!(
            [
                "gpt-5.4",
                "gpt-5.5",
                "gpt-5.6",
                "gpt-6-sol",
                "gpt-6-astra",
                "gpt-6.2-sol"
            ]
            .map(|name| for_model(name).functions),
            [
                Functions::Taken,
                Functions::Taken,
                Functions::WithoutEffort,
                Functions::WithoutEffort,
                Functions::Refused,
                Functions::Refused
            ]
        );
        assert_eq!(
            [
                "gpt-5-chat-latest",
                "gpt-5.2-chat-latest",
                "gpt-4o-mini-search-preview"
            ]
            .map(|name| for_model(name).common.temperature),
            [Setting::Taken, Setting::Refused, Setting::Refused]
        );
    }
}

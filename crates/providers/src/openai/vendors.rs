//! Vendors and servers with the Chat Completions API: one row each, with its differences from
//! OpenAI's.
//!
//! Addresses, key variables and limits are those of each vendor's own "OpenAI compatibility" page
//! or reference, checked 2026-11-22; where a difference has another source, the row says so. A
//! server that is not here is `openai-compatible`.

use adjutant_core::{ModelError, SchemaSupport};

use super::chat;
use super::common::{
    BASE_URL, BASE_URL_VARIABLE, DEFAULT_CHAT_MODEL, KEY_ADVICE, KEY_VARIABLE, VERSION,
};
use super::dialect::{Address, CallIds, Dialect, InText, OutputBound};
use super::family::{self, Family, Functions};
use crate::adapter::HttpModel;
use crate::connection::Connection;
use crate::encode::Forcing;
use crate::family::{FamilyLimits, Images, Setting};
use crate::provider::Provider;

/// A row of the table: a vendor and the dialect of its API.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) provider: Provider,
    pub(super) dialect: Dialect,
}

const OPENAI: Dialect = Dialect {
    address: Address::Version(VERSION),
    family: family::for_model,
    may_be_self_hosted: false,
    output_bound: OutputBound::MaxCompletionTokens,
    call_ids: CallIds::UpTo40,
    counts_streams_on_request: true,
    takes_thinking: false,
    insists_on_thinking: false,
    wants_alternation: false,
    forcing: Forcing::Any,
    takes_refusals: true,
    in_text: InText::Nothing,
    costs_in_dollars: false,
    model_advice: "",
};

const OTHERS: Dialect = Dialect {
    family: |model| any_model(model, HOSTED),
    output_bound: OutputBound::MaxTokens,
    takes_thinking: true,
    wants_alternation: true,
    takes_refusals: false,
    // Open models write their thinking into the text, and hosts differ in what they take out.
    in_text: InText::Thinking,
    ..OPENAI
};

const LOCAL: Dialect = Dialect {
    family: |model| open_model(model, ON_THIS_MACHINE),
    in_text: InText::ThinkingAndCalls,
    ..OTHERS
};

/// Servers on this machine whose `tool_choice` is a word only: an object is ignored by llama.cpp and
/// refused by LM Studio.
const WITHOUT_NAMED_CHOICE: Dialect = Dialect {
    forcing: Forcing::Required,
    ..LOCAL
};

pub(super) const OPENAI_CHAT: Row = Row {
    provider: Provider {
        model_variable: Some("OPENAI_MODEL"),
        default_model: Some(DEFAULT_CHAT_MODEL),
        // "Chat completions are stored by default for new accounts" ("Migrate to Responses").
        stores_unless_told: true,
        ..hosted(
            "openai-chat",
            &[],
            KEY_VARIABLE,
            KEY_ADVICE,
            BASE_URL_VARIABLE,
            BASE_URL,
        )
    },
    dialect: OPENAI,
};

pub(super) const COMPATIBLE: Row = Row {
    provider: Provider {
        needs_key: false,
        ..hosted(
            "openai-compatible",
            &[],
            "OPENAI_COMPATIBLE_API_KEY",
            "Set OPENAI_COMPATIBLE_API_KEY to the server's key.",
            "OPENAI_COMPATIBLE_BASE_URL",
            "",
        )
    },
    dialect: Dialect {
        family: |model| any_model(model, HOSTED_WITH_TOP_K),
        may_be_self_hosted: true,
        ..OTHERS
    },
};

/// Every row: OpenAI itself, any server, vendors, servers on this machine.
pub(super) const ROWS: &[Row] = &[
    OPENAI_CHAT,
    COMPATIBLE,
    Row {
        provider: hosted(
            "azure",
            &["azure-openai"],
            "AZURE_OPENAI_API_KEY",
            "Set AZURE_OPENAI_API_KEY to a key of the resource.",
            "AZURE_OPENAI_ENDPOINT",
            "",
        ),
        dialect: Dialect {
            address: Address::Azure,
            family: family::for_deployment,
            model_advice: "On Azure the model's name is the deployment's.",
            ..OPENAI
        },
    },
    Row {
        provider: hosted(
            "groq",
            &[],
            "GROQ_API_KEY",
            "Set GROQ_API_KEY to a key from https://console.groq.com/keys.",
            "GROQ_BASE_URL",
            "https://api.groq.com/openai/v1",
        ),
        dialect: Dialect {
            family: listed_model,
            output_bound: OutputBound::MaxCompletionTokens,
            // Refuses fields of an assistant message that it does not know (`janhq/jan#8136`).
            takes_thinking: false,
            ..OTHERS
        },
    },
    Row {
        provider: hosted(
            "deepseek",
            &[],
            "DEEPSEEK_API_KEY",
            "Set DEEPSEEK_API_KEY to a key from https://platform.deepseek.com/api_keys.",
            "DEEPSEEK_BASE_URL",
            "https://api.deepseek.com",
        ),
        // "The reasoning_content in the thinking mode must be passed back"
        // (`Astro-Han/pawwork#250`).
        dialect: Dialect {
            family: deepseek,
            insists_on_thinking: true,
            ..OTHERS
        },
    },
    Row {
        provider: hosted(
            "mistral",
            &[],
            "MISTRAL_API_KEY",
            "Set MISTRAL_API_KEY to a key from https://console.mistral.ai/api-keys.",
            "MISTRAL_BASE_URL",
            "https://api.mistral.ai",
        ),
        dialect: Dialect {
            family: |model| {
                any_model(
                    model,
                    FamilyLimits {
                        schema: SchemaSupport::WithoutTools,
                        ..HOSTED
                    },
                )
            },
            call_ids: CallIds::Nine,
            // Counts come unasked, and the question is refused (`openai/openai-agents-python#442`).
            counts_streams_on_request: false,
            ..OTHERS
        },
    },
    Row {
        provider: hosted(
            "xai",
            &["grok"],
            "XAI_API_KEY",
            "Set XAI_API_KEY to a key from https://console.x.ai.",
            "XAI_BASE_URL",
            "https://api.x.ai",
        ),
        dialect: Dialect {
            family: |model| {
                any_model(
                    model,
                    FamilyLimits {
                        context_window: 256_000,
                        schema: SchemaSupport::Native,
                        ..HOSTED
                    },
                )
            },
            output_bound: OutputBound::MaxCompletionTokens,
            // Chat Completions there has no place for it; Responses has.
            takes_thinking: false,
            ..OTHERS
        },
    },
    Row {
        provider: hosted(
            "openrouter",
            &[],
            "OPENROUTER_API_KEY",
            "Set OPENROUTER_API_KEY to a key from https://openrouter.ai/settings/keys.",
            "OPENROUTER_BASE_URL",
            "https://openrouter.ai/api/v1",
        ),
        dialect: Dialect {
            family: |model| any_model(model, HOSTED_WITH_TOP_K),
            // Counts always come; the question is deprecated.
            counts_streams_on_request: false,
            // "Usage accounting": cost in credits, which are dollars.
            costs_in_dollars: true,
            ..OTHERS
        },
    },
    Row {
        provider: hosted(
            "together",
            &["togetherai"],
            "TOGETHER_API_KEY",
            "Set TOGETHER_API_KEY.",
            "TOGETHER_BASE_URL",
            "https://api.together.xyz",
        ),
        dialect: OTHERS,
    },
    Row {
        provider: hosted(
            "fireworks",
            &[],
            "FIREWORKS_API_KEY",
            "Set FIREWORKS_API_KEY.",
            "FIREWORKS_BASE_URL",
            "https://api.fireworks.ai/inference/v1",
        ),
        dialect: Dialect {
            // Its last chunk counts unasked.
            counts_streams_on_request: false,
            model_advice: "Fireworks calls its models accounts/fireworks/models/NAME.",
            ..OTHERS
        },
    },
    Row {
        provider: hosted(
            "cerebras",
            &[],
            "CEREBRAS_API_KEY",
            "Set CEREBRAS_API_KEY.",
            "CEREBRAS_BASE_URL",
            "https://api.cerebras.ai",
        ),
        dialect: Dialect {
            family: listed_model,
            output_bound: OutputBound::MaxCompletionTokens,
            // As strict as Groq (`Kilo-Org/kilocode#10375`).
            takes_thinking: false,
            ..OTHERS
        },
    },
    Row {
        provider: hosted(
            "nvidia",
            &[],
            "NVIDIA_API_KEY",
            "Set NVIDIA_API_KEY.",
            "NVIDIA_BASE_URL",
            "https://integrate.api.nvidia.com",
        ),
        dialect: OTHERS,
    },
    Row {
        provider: hosted(
            "moonshot",
            &["kimi"],
            "MOONSHOT_API_KEY",
            "Set MOONSHOT_API_KEY to a key from https://platform.moonshot.ai.",
            "MOONSHOT_BASE_URL",
            "https://api.moonshot.ai",
        ),
        // "reasoning_content is missing in assistant tool call message"
        // (`theopenco/llmgateway#2093`).
        dialect: Dialect {
            family: moonshot,
            // "tool_choice=required" is not supported ("Migrating from OpenAI to Kimi API").
            forcing: Forcing::Never,
            output_bound: OutputBound::MaxCompletionTokens,
            insists_on_thinking: true,
            ..OTHERS
        },
    },
    Row {
        provider: hosted(
            "qwen",
            &["dashscope"],
            "DASHSCOPE_API_KEY",
            "Set DASHSCOPE_API_KEY.",
            "DASHSCOPE_BASE_URL",
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ),
        // A required call is unknown, and a named one is refused by models that think.
        dialect: Dialect {
            forcing: Forcing::Never,
            ..OTHERS
        },
    },
    Row {
        provider: hosted(
            "zai",
            &["z.ai", "zhipu"],
            "ZAI_API_KEY",
            "Set ZAI_API_KEY.",
            "ZAI_BASE_URL",
            "https://api.z.ai/api/paas/v4",
        ),
        dialect: Dialect {
            address: Address::Version("v4"),
            // Takes `auto` only, as far as we know: the vendor's page was not compared.
            forcing: Forcing::Never,
            ..OTHERS
        },
    },
    Row {
        provider: on_this_machine(
            "vllm",
            &[],
            Some("VLLM_API_KEY"),
            "VLLM_BASE_URL",
            "http://localhost:8000",
        ),
        dialect: LOCAL,
    },
    Row {
        provider: on_this_machine(
            "llama-cpp",
            &["llama.cpp", "llamacpp"],
            Some("LLAMA_API_KEY"),
            "LLAMA_CPP_BASE_URL",
            "http://localhost:8080",
        ),
        dialect: WITHOUT_NAMED_CHOICE,
    },
    Row {
        provider: on_this_machine(
            "lm-studio",
            &["lmstudio"],
            None,
            "LM_STUDIO_BASE_URL",
            "http://localhost:1234",
        ),
        dialect: WITHOUT_NAMED_CHOICE,
    },
];

const fn hosted(
    name: &'static str,
    aliases: &'static [&'static str],
    key_variable: &'static str,
    key_advice: &'static str,
    base_url_variable: &'static str,
    base_url: &'static str,
) -> Provider {
    Provider {
        name,
        aliases,
        key_variable: Some(key_variable),
        needs_key: true,
        key_advice,
        base_url_variable: Some(base_url_variable),
        model_variable: None,
        base_url,
        default_model: None,
        local: false,
        retries: 1,
        stores_unless_told: false,
        call_state: None,
        open,
    }
}

const fn on_this_machine(
    name: &'static str,
    aliases: &'static [&'static str],
    key_variable: Option<&'static str>,
    base_url_variable: &'static str,
    base_url: &'static str,
) -> Provider {
    Provider {
        key_variable,
        needs_key: false,
        local: true,
        ..hosted(name, aliases, "", "", base_url_variable, base_url)
    }
}

fn open(row: &Provider, name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    // `Provider` has no place for a dialect, so its row is found by name.
    let dialect = ROWS.iter().find(|known| known.provider.name == row.name);
    chat::open(
        row,
        dialect.map_or(&COMPATIBLE.dialect, |known| &known.dialect),
        name,
        connection,
    )
}

/// The least that open models at vendors have, for vendors that document no more.
const HOSTED: FamilyLimits = FamilyLimits {
    context_window: 128_000,
    output_max: 32_768,
    thinking_allowance: 0,
    temperature: Setting::Taken,
    top_p: Setting::Taken,
    top_k: Setting::Refused,
    schema: SchemaSupport::Prompted,
    images: Images::BytesOrUrl,
    unknown: false,
};

/// The same for servers that pass `top_k` on.
const HOSTED_WITH_TOP_K: FamilyLimits = FamilyLimits {
    top_k: Setting::Taken,
    ..HOSTED
};

/// An open model on the user's machine. The window is set when the server starts, and not reported
/// by this API. All three servers take `top_k`, and a schema as a grammar, which leaves no room for
/// calls beside it.
const ON_THIS_MACHINE: FamilyLimits = FamilyLimits {
    context_window: 32_768,
    top_k: Setting::Taken,
    schema: SchemaSupport::WithoutTools,
    ..HOSTED
};

/// Parts of names of open models that think before they answer, within the bound of the output.
const THINKERS: &[&str] = &[
    "deepseek-flash",
    "deepseek-r1",
    "deepseek-reasoner",
    "deepseek-v4",
    "glm-4.5",
    "glm-4.6",
    "glm-4.7",
    "glm-5",
    "gpt-oss",
    "kimi-k2",
    "kimi-k3",
    "magistral",
    "minimax-m",
    "qwen3",
    "qwq",
    "reasoning",
    "thinking",
];

/// Tokens added to the bound for thinking.
const THINKING_ALLOWANCE: u32 = 16_384;

fn open_model(model: &str, common: FamilyLimits) -> Family {
    let name = model.to_lowercase();
    // Hosts write the same model's name in different cases, with different prefixes and dates.
    let thinks = THINKERS.iter().any(|thinker| name.contains(thinker));
    let thinking_allowance = if thinks {
        THINKING_ALLOWANCE
    } else {
        common.thinking_allowance
    };
    Family {
        common: FamilyLimits {
            thinking_allowance,
            ..common
        },
        reasons: thinks,
        functions: Functions::Taken,
    }
}

/// Returns the limits of any model. One that is not on the list of thinkers counts as unknown.
fn any_model(model: &str, common: FamilyLimits) -> Family {
    let family = open_model(model, common);
    Family {
        common: FamilyLimits {
            unknown: !family.reasons,
            ..family.common
        },
        ..family
    }
}

/// Returns the limits of a model at Groq or Cerebras. They host a few open models, whose thinkers
/// are on the list, and count the whole bound of the output against the minute's tokens, used or
/// not (`zeeyado/koassistant.koplugin#106`): 16,384 would be more than a free plan has.
fn listed_model(model: &str) -> Family {
    open_model(model, HOSTED)
}

/// Returns the limits of a DeepSeek model. Source: "Models & pricing" and "Thinking mode". It
/// thinks unless told not to, and sampling settings then have no effect.
fn deepseek(model: &str) -> Family {
    let thinking = FamilyLimits {
        context_window: 1_000_000,
        output_max: 384_000,
        thinking_allowance: THINKING_ALLOWANCE,
        temperature: Setting::AdvisedAgainst,
        images: Images::None,
        ..HOSTED
    };
    let limits = match model.contains("chat") {
        false => thinking,
        true => FamilyLimits {
            thinking_allowance: 0,
            temperature: Setting::Taken,
            ..thinking
        },
    };
    open_model(model, limits)
}

/// Returns the limits of a Moonshot model. The sampling settings of `kimi-` models are fixed.
fn moonshot(model: &str) -> Family {
    let limits = match model.starts_with("kimi-") {
        false => HOSTED,
        true => FamilyLimits {
            context_window: 262_144,
            temperature: Setting::Refused,
            top_p: Setting::Refused,
            ..HOSTED
        },
    };
    open_model(model, limits)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_addresses_are_addresses() {
        let mut names = BTreeSet::new();
        for Row { provider, .. } in ROWS {
            for name in provider.names() {
                assert!(names.insert(name), "{name} is there twice");
            }
            assert!(provider.base_url.is_empty() || provider.base_url.parse::<url::Url>().is_ok());
            assert_eq!(
                provider.local,
                provider.base_url.starts_with("http://localhost"),
                "{}",
                provider.name
            );
            assert!(
                !provider.needs_key || provider.key_advice.starts_with("Set "),
                "{}",
                provider.name
            );
        }
    }

    #[test]
    fn open_models_that_think_get_an_allowance() {
        let allowance = |name: &str| open_model(name, HOSTED).common.thinking_allowance;
        assert_eq!(
            [
                "openai/gpt-oss-120b",
                "Qwen/Qwen3-32B",
                "llama-3.3-70b-versatile",
                "mistral-large-latest"
            ]
            .map(allowance),
            [THINKING_ALLOWANCE, THINKING_ALLOWANCE, 0, 0]
        );
        assert_eq!(
            deepseek("deepseek-v4-pro").common.temperature,
            Setting::AdvisedAgainst
        );
        assert_eq!(moonshot("kimi-k2.6").common.temperature, Setting::Refused);
        assert_eq!(
            moonshot("moonshot-v1-8k").common.temperature,
            Setting::Taken
        );
    }
}

//! Names, keys and prices that OpenAI's two APIs share.

use adjutant_core::Cost;
use serde_json::Value;

/// The vendor's "go-to model for everyday work" (its page, checked 2026-11-23: released
/// 2026-11-17).
pub const DEFAULT_MODEL: &str = "gpt-6.2-sol";
/// The newest model whose functions Chat Completions takes, without thinking (its page, checked
/// 2026-11-23).
pub(super) const DEFAULT_CHAT_MODEL: &str = "gpt-6-sol";

pub(super) const VERSION: &str = "v1";
pub(super) const KEY_VARIABLE: &str = "OPENAI_API_KEY";
pub(super) const KEY_ADVICE: &str =
    "Set OPENAI_API_KEY to a key from https://platform.openai.com/api-keys.";
pub(super) const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";
pub(super) const BASE_URL: &str = "https://api.openai.com";

/// Converts xAI's price in ticks, of which a dollar has 10^10. Source: "Cost tracking" in the
/// vendor's guide (checked 2026-11-23).
pub(super) fn cost_of_ticks(ticks: &Value) -> Option<Cost> {
    Cost::from_usd(ticks.as_f64()? / 1e10)
}

//! Names, keys and headers that OpenAI's two APIs share.

use adjutant_core::{Cost, ModelError};
use reqwest::header::{AUTHORIZATION, HeaderName};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::error;
use crate::connection::model_id;
use crate::error::Vendor;
use crate::provider::Provider;

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

/// Returns the model and the advice that errors of this row contain.
pub(super) fn vendor(row: &Provider, name: &str, model_advice: &str) -> Result<Vendor, ModelError> {
    Ok(Vendor {
        model: model_id(row.name, name)?,
        key_advice: row.key_advice.to_owned(),
        model_advice: model_advice.to_owned(),
        parse_error: error::parse,
    })
}

/// Converts xAI's price in ticks, of which a dollar has 10^10. Source: "Cost tracking" in the
/// vendor's guide (checked 2026-11-23).
pub(super) fn cost_of_ticks(ticks: &Value) -> Option<Cost> {
    Cost::from_usd(ticks.as_f64()? / 1e10)
}

/// Returns the authorization header with the key as a bearer token.
pub(super) fn bearer(key: &SecretString) -> (HeaderName, SecretString) {
    (
        AUTHORIZATION,
        format!("Bearer {}", key.expose_secret()).into(),
    )
}

//! OpenAI, and everybody who speaks its language.
//!
//! Two languages: Responses (`/v1/responses`, OpenAI's own models) and Chat Completions
//! (`/v1/chat/completions`, the same models and the servers of many others). Source:
//! <https://platform.openai.com/docs/api-reference> and the vendor's published OpenAPI document
//! (checked 2026-11-22).

mod chat; // Chat Completions
mod error; // what an error body says
mod family; // what differs between models
mod responses; // Responses
mod schema; // JSON Schema as OpenAI takes it
mod vendors; // who speaks Chat Completions

use adjutant_core::{Cost, ModelError};
use reqwest::header::{AUTHORIZATION, HeaderName};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::adapter::HttpModel;
use crate::connection::{Connection, model_id};
use crate::error::Vendor;
use crate::provider::Provider;

/// The vendor's "go-to model for everyday work" (its page, checked 2026-11-23: released
/// 2026-11-17).
pub const DEFAULT_MODEL: &str = "gpt-6.2-sol";
/// The newest whose functions Chat Completions takes, without thinking (its page, checked
/// 2026-11-23).
const DEFAULT_CHAT_MODEL: &str = "gpt-6-sol";

const VERSION: &str = "v1";
const KEY_VARIABLE: &str = "OPENAI_API_KEY";
const KEY_ADVICE: &str = "Set OPENAI_API_KEY to a key from https://platform.openai.com/api-keys.";
const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";
const BASE_URL: &str = "https://api.openai.com";

pub(crate) const PROVIDERS: &[Provider] = &{
    let mut all = [responses::PROVIDER; vendors::ROWS.len() + 1];
    let mut at = 0;
    while at < vendors::ROWS.len() {
        all[at + 1] = vendors::ROWS[at].provider;
        at += 1;
    }
    all
};

/// A model of OpenAI, spoken to in Responses. Sends nothing.
///
/// # Errors
/// [`ModelError::Authentication`] without a key, [`ModelError::BadRequest`] for a blank model name
/// or a base URL that is not http(s).
pub fn model(name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    responses::PROVIDER.model(name, connection)
}

/// A model of OpenAI, spoken to in Chat Completions. Sends nothing.
///
/// # Errors
/// Those of [`model`].
pub fn chat_model(name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    vendors::OPENAI_CHAT.provider.model(name, connection)
}

/// A model of any server that speaks Chat Completions: `connection.base_url` says where it is, with
/// or without `/v1`. The key may be missing. Sends nothing.
///
/// # Errors
/// [`ModelError::BadRequest`] without a base URL, for one that is not http(s), or for a blank model
/// name.
pub fn compatible(name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    vendors::COMPATIBLE.provider.model(name, connection)
}

/// Whom a request goes to.
fn vendor(row: &Provider, name: &str, model_advice: &str) -> Result<Vendor, ModelError> {
    Ok(Vendor {
        model: model_id(row.name, name)?,
        key_advice: row.key_advice.to_owned(),
        model_advice: model_advice.to_owned(),
        complaint: error::complaint,
    })
}

/// What xAI charges, which it counts in ticks, of which a dollar has 10^10. Source: "Cost tracking"
/// in the vendor's guide (checked 2026-11-23).
fn cost_of_ticks(ticks: &Value) -> Option<Cost> {
    Cost::from_usd(ticks.as_f64()? / 1e10)
}

fn bearer(key: &SecretString) -> (HeaderName, SecretString) {
    (
        AUTHORIZATION,
        format!("Bearer {}", key.expose_secret()).into(),
    )
}

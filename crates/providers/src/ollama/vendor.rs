//! The name, address and key of Ollama servers, which all their requests need.

use adjutant_core::ModelError;
use reqwest::header::HeaderName;
use secrecy::SecretString;

use super::error;
use crate::connection::{Connection, bearer, model_id};
use crate::error::Vendor;

pub(super) const NAME: &str = "ollama";
pub(super) const BASE_URL: &str = "http://localhost:11434";
pub(super) const KEY_ADVICE: &str =
    "A server on this machine needs no key; for https://ollama.com set OLLAMA_API_KEY.";

/// Returns the model and the advice that errors about it contain.
pub(super) fn vendor(name: &str) -> Result<Vendor, ModelError> {
    let model = model_id(NAME, name)?;
    Ok(Vendor {
        key_advice: KEY_ADVICE,
        model_advice: format!("To install it: ollama pull {}", model.name),
        parse_error: error::parse,
        model,
    })
}

/// Returns the authorization header, if there is a key.
pub(super) fn headers(connection: &Connection) -> Vec<(HeaderName, SecretString)> {
    let key = connection.optional_key();
    key.as_ref().map(bearer).into_iter().collect()
}

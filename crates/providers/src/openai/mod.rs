//! OpenAI's models, and the vendors and servers with the same API.
//!
//! There are two APIs: Responses (`/v1/responses`, OpenAI's own models) and Chat Completions
//! (`/v1/chat/completions`, the same models and the servers of many others). Source:
//! <https://platform.openai.com/docs/api-reference> and the vendor's published OpenAPI document
//! (checked 2026-11-22).

mod chat; // the Chat Completions API
mod common; // names, keys and prices
mod dialect; // differences between servers
mod error; // parses error bodies
mod family; // limits and settings per model family
mod responses; // the Responses API
mod schema; // JSON Schema in the subset that OpenAI takes
mod vendors; // vendors and servers with Chat Completions

use adjutant_core::ModelError;

use crate::adapter::HttpModel;
use crate::connection::Connection;
use crate::provider::Provider;

pub use common::DEFAULT_MODEL;

// A loop over indices, because nothing else can build an array in a constant.
pub(crate) const PROVIDERS: &[Provider] = &{
    let mut all = [responses::PROVIDER; vendors::ROWS.len() + 1];
    let mut at = 0;
    while at < vendors::ROWS.len() {
        all[at + 1] = vendors::ROWS[at].provider;
        at += 1;
    }
    all
};

/// Opens a model of OpenAI over the Responses API. Sends no request.
///
/// # Examples
/// ```no_run
/// use adjutant_core::{GenerateRequest, LanguageModel, Message};
/// use adjutant_providers::{Connection, Transport, openai};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let key = std::env::var("OPENAI_API_KEY")?;
/// let connection = Connection::new(Transport::new()?).with_key(key.into());
/// let model = openai::model(openai::DEFAULT_MODEL, connection)?;
///
/// let request = GenerateRequest::new(vec![Message::user("Hello!")?]);
/// println!("{}", model.generate(&request).await?.text());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ModelError::Authentication`] without a key, [`ModelError::BadRequest`] for a blank model name
/// or a base URL that is not http(s).
pub fn model(name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    responses::PROVIDER.model(name, connection)
}

/// Opens a model of OpenAI over the Chat Completions API. Sends no request.
///
/// # Examples
/// ```no_run
/// use adjutant_providers::{Connection, Transport, openai};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let key = std::env::var("OPENAI_API_KEY")?;
/// let connection = Connection::new(Transport::new()?).with_key(key.into());
/// let model = openai::chat_model("gpt-6-sol", connection)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`model`].
pub fn chat_model(name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    vendors::OPENAI_CHAT.provider.model(name, connection)
}

/// Opens a model of any server with the Chat Completions API, such as vLLM. `connection.base_url`
/// is its address, with or without `/v1`. The key may be missing. Sends no request.
///
/// # Examples
/// ```no_run
/// use adjutant_providers::{Connection, Transport, openai};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let connection = Connection {
///     base_url: Some("http://gpu-box:8000".parse()?),
///     ..Connection::new(Transport::new()?)
/// };
/// let model = openai::compatible("qwen3-32b", connection)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ModelError::BadRequest`] without a base URL, for one that is not http(s), or for a blank model
/// name.
pub fn compatible(name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    vendors::COMPATIBLE.provider.model(name, connection)
}

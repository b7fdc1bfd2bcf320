//! Anthropic's Claude models, over the Messages API, version 2023-06-01.
//!
//! Source: <https://platform.claude.com/docs/en/api/messages> and the vendor's published types
//! (checked 2026-11-22).

mod error; // parses error bodies
mod family; // limits and settings per model family
mod request; // encodes requests
mod response; // decodes answers
mod schema; // JSON Schema in the subset that Claude takes
mod stream; // folds the events of a stream
#[cfg(test)]
mod tests;
mod wire; // the API's JSON types

use std::sync::Arc;

use adjutant_core::{Capabilities, GenerateRequest, ModelError};
use reqwest::header::HeaderName;
use secrecy::SecretString;

use crate::adapter::{Endpoint, HttpModel, Wire};
use crate::address::is_on_private_network;
use crate::connection::{Connection, endpoint};
use crate::decode::{AnswerFold, RequestContext};
use crate::encode::Encoded;
use crate::error::Vendor;
use crate::provider::Provider;
use crate::read_timeout::ReadTimeouts;
use crate::text_calls::ThinkingInText;
use family::Family;
use response::PartialAnswer;

/// The vendor's current Sonnet, its middle size (checked 2026-11-22: released 2026-09-28, "Models
/// overview").
pub const DEFAULT_MODEL: &str = "claude-sonnet-5-5";

const VERSION: &str = "v1";
/// The API's version, sent as a header; the vendor's only one so far.
const API_VERSION: &str = "2023-06-01";

pub(crate) const PROVIDERS: &[Provider] = &[Provider {
    name: "anthropic",
    aliases: &["claude"],
    key_variable: Some("ANTHROPIC_API_KEY"),
    needs_key: true,
    key_advice: "Set ANTHROPIC_API_KEY to a key from https://platform.claude.com/settings/keys.",
    base_url_variable: Some("ANTHROPIC_BASE_URL"),
    model_variable: Some("ANTHROPIC_MODEL"),
    base_url: "https://api.anthropic.com",
    default_model: Some(DEFAULT_MODEL),
    local: false,
    stores_unless_told: false,
    retries: 1,
    // Thinking is signed here, calls are not.
    call_state: None,
    open,
}];

/// Opens a model of Anthropic's API. Sends no request.
///
/// # Examples
/// ```no_run
/// use adjutant_core::{GenerateRequest, LanguageModel, Message};
/// use adjutant_providers::{Connection, Transport, anthropic};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let key = std::env::var("ANTHROPIC_API_KEY")?;
/// let connection = Connection::new(Transport::new()?).with_key(key.into());
/// let model = anthropic::model(anthropic::DEFAULT_MODEL, connection)?;
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
    open(&PROVIDERS[0], name, connection)
}

fn open(row: &Provider, name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    let vendor = Arc::new(row.vendor(name, error::parse)?);
    let provider = &vendor.model.provider;
    let key = connection.key(provider, row.key_advice)?;
    let base = row.base(&connection)?;
    let url = endpoint(provider, &base, VERSION, &["messages"])?;
    let (self_hosted, mut family) = (
        is_on_private_network(&base),
        family::for_model(&vendor.model.name),
    );
    // A server in a private network with this API runs a model of the user's choice.
    if self_hosted {
        family.common = family.common.for_self_hosted();
    }
    let capabilities = Capabilities {
        self_hosted,
        ..family.common.capabilities()
    };
    let endpoint = Endpoint {
        vendor: vendor.clone(),
        urls: [url.clone(), url],
        headers: vec![
            (HeaderName::from_static("x-api-key"), key),
            (
                HeaderName::from_static("anthropic-version"),
                API_VERSION.to_owned().into(),
            ),
        ],
        timeouts: ReadTimeouts::for_address(connection.timeout, &base, &capabilities),
        capabilities,
    };
    Ok(HttpModel::new(
        endpoint,
        Anthropic {
            vendor,
            family,
            may_think_in_text: row.is_elsewhere(&base),
        },
        connection,
    ))
}

struct Anthropic {
    vendor: Arc<Vendor>,
    family: Family,
    /// True for a server that is not the vendor's own: open models write their thinking into the text.
    may_think_in_text: bool,
}

impl Wire for Anthropic {
    fn encode(&self, request: &GenerateRequest, streamed: bool) -> Result<Encoded, ModelError> {
        request::encode(request, &self.vendor.model, &self.family, streamed)
    }

    fn request_headers(&self, request: &GenerateRequest) -> Vec<(HeaderName, SecretString)> {
        let betas = request::betas(request, &self.vendor.model, &self.family);
        let header = || {
            (
                HeaderName::from_static("anthropic-beta"),
                betas.join(",").into(),
            )
        };
        (!betas.is_empty()).then(header).into_iter().collect()
    }

    fn answer(&self, _: &RequestContext, losses: Vec<String>) -> Box<dyn AnswerFold> {
        let answer = PartialAnswer::new(self.vendor.clone(), losses);
        match self.may_think_in_text {
            true => Box::new(ThinkingInText::new(answer, self.vendor.model.clone())),
            false => Box::new(answer),
        }
    }
}

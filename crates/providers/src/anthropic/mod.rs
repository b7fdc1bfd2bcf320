//! Claude by Anthropic: Messages, version 2023-06-01.
//!
//! Source: <https://platform.claude.com/docs/en/api/messages> and the vendor's published types
//! (checked 2026-11-22).

mod error; // what an error body says
mod family; // what differs between models
mod request; // core to wire
mod response; // wire to core
mod schema; // JSON Schema as Claude takes it
mod stream; // events to deltas
#[cfg(test)]
mod tests;
mod wire; // the vendor's JSON

use std::sync::Arc;

use adjutant_core::{Capabilities, GenerateRequest, GenerateResponse, ModelError};
use reqwest::header::HeaderName;
use secrecy::SecretString;
use url::Url;

use crate::adapter::{HttpModel, Wire};
use crate::connection::{Connection, endpoint, model_id};
use crate::decode::{Asked, SseStream, StreamDecoder};
use crate::encode::Encoded;
use crate::error::Vendor;
use crate::patience::{Patience, is_on_own_network};
use crate::provider::Provider;
use family::Family;
use response::Reading;

/// The vendor's current Sonnet, its middle size (checked 2026-11-22: released 2026-09-28, "Models
/// overview").
pub const DEFAULT_MODEL: &str = "claude-sonnet-5-5";

const VERSION: &str = "v1";
/// Of the API, as a header; the vendor's only one so far.
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
    retries: 1,
    // Thinking is signed here, calls are not.
    call_state: None,
    open,
}];

/// A model of Anthropic. Sends nothing.
///
/// # Errors
/// [`ModelError::Authentication`] without a key, [`ModelError::BadRequest`] for a blank model name
/// or a base URL that is not http(s).
pub fn model(name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    open(&PROVIDERS[0], name, connection)
}

fn open(row: &Provider, name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    let vendor = Arc::new(vendor(row, name)?);
    let provider = &vendor.model.provider;
    let key = connection.key(provider, row.key_advice)?;
    let base = row.base(&connection)?;
    let (self_hosted, mut family) = (is_on_own_network(&base), family::of(&vendor.model.name));
    if self_hosted {
        family.common = family.common.at_home();
    }
    let capabilities = Capabilities {
        self_hosted,
        ..family.common.capabilities()
    };
    let patience = Patience::by_address(&connection, &base, &capabilities);
    let wire = Anthropic {
        family,
        url: endpoint(provider, &base, VERSION, &["messages"])?,
        headers: vec![
            (HeaderName::from_static("x-api-key"), key),
            (
                HeaderName::from_static("anthropic-version"),
                API_VERSION.to_owned().into(),
            ),
        ],
        vendor: vendor.clone(),
    };
    Ok(HttpModel::new(
        vendor,
        capabilities,
        patience,
        wire,
        connection,
    ))
}

fn vendor(row: &Provider, name: &str) -> Result<Vendor, ModelError> {
    Ok(Vendor {
        model: model_id(row.name, name)?,
        key_advice: row.key_advice.to_owned(),
        model_advice: String::new(),
        complaint: error::complaint,
    })
}

struct Anthropic {
    vendor: Arc<Vendor>,
    family: Family,
    url: Url,
    headers: Vec<(HeaderName, SecretString)>,
}

impl Wire for Anthropic {
    fn encode(&self, request: &GenerateRequest, streamed: bool) -> Result<Encoded, ModelError> {
        request::encode(request, &self.vendor.model, &self.family, streamed)
    }

    fn url(&self, _: bool) -> &Url {
        &self.url
    }

    fn headers(&self) -> &[(HeaderName, SecretString)] {
        &self.headers
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

    fn decode(
        &self,
        _: &Asked,
        body: &str,
        losses: Vec<String>,
    ) -> Result<GenerateResponse, ModelError> {
        response::decode(body, self.vendor.clone(), losses)
    }

    fn decoder(&self, _: &Asked, losses: Vec<String>) -> Box<dyn StreamDecoder> {
        SseStream::boxed(Reading::new(self.vendor.clone(), losses))
    }
}

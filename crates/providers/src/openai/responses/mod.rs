//! Responses, OpenAI's language for its own models: `POST /v1/responses`, without state on the
//! server.
//!
//! `store` is false and the whole transcript goes out each time, so nothing of a conversation stays
//! with the vendor; what the model thought travels encrypted in it. Source:
//! <https://platform.openai.com/docs/api-reference/responses> and the vendor's published OpenAPI
//! document (checked 2026-11-22).

mod item; // what an answer is made of
mod request; // core to wire
mod response; // wire to core
mod stream; // events to deltas
#[cfg(test)]
mod tests;
mod wire; // the vendor's JSON

use std::sync::Arc;

use adjutant_core::{Capabilities, GenerateRequest, GenerateResponse, ModelError};
use reqwest::header::HeaderName;
use secrecy::SecretString;
use url::Url;

use super::family::{self, Family};
use super::{
    BASE_URL, BASE_URL_VARIABLE, DEFAULT_MODEL, KEY_ADVICE, KEY_VARIABLE, VERSION, bearer, vendor,
};
use crate::adapter::{HttpModel, Wire};
use crate::connection::{Connection, endpoint};
use crate::decode::{Asked, SseStream, StreamDecoder};
use crate::encode::Encoded;
use crate::error::Vendor;
use crate::patience::{Patience, is_on_own_network};
use crate::provider::Provider;
use stream::Reading;

pub(super) const PROVIDER: Provider = Provider {
    name: "openai",
    aliases: &["openai-responses"],
    key_variable: Some(KEY_VARIABLE),
    needs_key: true,
    key_advice: KEY_ADVICE,
    base_url_variable: Some(BASE_URL_VARIABLE),
    model_variable: Some("OPENAI_MODEL"),
    base_url: BASE_URL,
    default_model: Some(DEFAULT_MODEL),
    local: false,
    retries: 1,
    call_state: None,
    open,
};

fn open(row: &Provider, name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    let vendor = Arc::new(vendor(row, name, "")?);
    let id = &vendor.model;
    let key = connection.key(&id.provider, row.key_advice)?;
    let family = family::of(&id.name);
    let base = row.base(&connection)?;
    let capabilities = Capabilities {
        self_hosted: is_on_own_network(&base),
        ..family.common.capabilities()
    };
    let patience = Patience::by_address(&connection, &base, &capabilities);
    let wire = Responses {
        family,
        url: endpoint(&id.provider, &base, VERSION, &["responses"])?,
        headers: vec![bearer(&key)],
        tools: request::Tools::default(),
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

struct Responses {
    vendor: Arc<Vendor>,
    family: Family,
    url: Url,
    tools: request::Tools,
    headers: Vec<(HeaderName, SecretString)>,
}

impl Wire for Responses {
    fn encode(&self, request: &GenerateRequest, streamed: bool) -> Result<Encoded, ModelError> {
        request::encode(
            request,
            streamed,
            (&self.vendor.model, &self.family),
            &self.tools,
        )
    }

    fn url(&self, _: bool) -> &Url {
        &self.url
    }

    fn headers(&self) -> &[(HeaderName, SecretString)] {
        &self.headers
    }

    fn decode(
        &self,
        _: &Asked,
        body: &str,
        losses: Vec<String>,
    ) -> Result<GenerateResponse, ModelError> {
        response::decode(body, &self.vendor, losses)
    }

    fn decoder(&self, _: &Asked, losses: Vec<String>) -> Box<dyn StreamDecoder> {
        SseStream::boxed(Reading::new(self.vendor.clone(), losses))
    }
}

//! The Responses API, `POST /v1/responses`, without state on the server.
//!
//! `store` is false and the whole transcript is sent each time, so nothing of a conversation stays
//! with the vendor; the model's reasoning travels encrypted in it. Source:
//! <https://platform.openai.com/docs/api-reference/responses> and the vendor's published OpenAPI
//! document (checked 2026-11-22).

mod item; // conversion between items and parts
mod request; // encodes requests
mod response; // decodes answers
mod stream; // folds the events of a stream
#[cfg(test)]
mod tests;
mod wire; // the API's JSON types

use std::sync::Arc;

use adjutant_core::{Capabilities, GenerateRequest, ModelError};

use super::common::{
    BASE_URL, BASE_URL_VARIABLE, DEFAULT_MODEL, KEY_ADVICE, KEY_VARIABLE, VERSION,
};
use super::error;
use super::family::{self, Family};
use crate::adapter::{Endpoint, HttpModel, Wire};
use crate::address::is_on_private_network;
use crate::connection::{Connection, bearer, endpoint};
use crate::decode::{AnswerFold, RequestContext};
use crate::encode::Encoded;
use crate::error::Vendor;
use crate::provider::Provider;
use crate::read_timeout::ReadTimeouts;
use crate::text_calls::ThinkingInText;
use stream::PartialAnswer;

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
    stores_unless_told: true,
    retries: 1,
    call_state: None,
    open,
};

fn open(row: &Provider, name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    let vendor = Arc::new(row.vendor(name, error::parse)?);
    let id = &vendor.model;
    let key = connection.key(&id.provider, row.key_advice)?;
    let family = family::for_model(&id.name);
    let base = row.base(&connection)?;
    let url = endpoint(&id.provider, &base, VERSION, &["responses"])?;
    let capabilities = Capabilities {
        self_hosted: is_on_private_network(&base),
        ..family.common.capabilities()
    };
    let endpoint = Endpoint {
        vendor: vendor.clone(),
        urls: [url.clone(), url],
        headers: vec![bearer(&key)],
        timeouts: ReadTimeouts::for_address(connection.timeout, &base, &capabilities),
        capabilities,
    };
    let wire = Responses {
        vendor,
        family,
        tools: request::Tools::default(),
        may_think_in_text: row.is_elsewhere(&base),
    };
    Ok(HttpModel::new(endpoint, wire, connection))
}

struct Responses {
    vendor: Arc<Vendor>,
    family: Family,
    tools: request::Tools,
    /// True for a server that is not the vendor's own: open models write their thinking into the text.
    may_think_in_text: bool,
}

impl Wire for Responses {
    fn encode(&self, request: &GenerateRequest, streamed: bool) -> Result<Encoded, ModelError> {
        request::encode(
            request,
            &self.vendor.model,
            &self.family,
            &self.tools,
            streamed,
        )
    }

    fn answer(&self, _: &RequestContext, losses: Vec<String>) -> Box<dyn AnswerFold> {
        let answer = PartialAnswer::new(self.vendor.clone(), losses);
        match self.may_think_in_text {
            true => Box::new(ThinkingInText::new(answer, self.vendor.model.clone())),
            false => Box::new(answer),
        }
    }
}

//! Chat Completions: `POST /v1/chat/completions`, as OpenAI defined it and as many others speak it.
//!
//! Source: <https://platform.openai.com/docs/api-reference/chat> and the vendor's published OpenAPI
//! document; what others do differently is in `vendors.rs` and, where it is only heard, in
//! `response.rs` (checked 2026-11-22).

mod form; // pieces that are alike
mod ids; // calls' names on the wire
mod request; // core to wire
mod response; // wire to core
mod stream; // events to deltas
#[cfg(test)]
mod tests;
mod thinking; // reasoning, in every form it comes in
mod usage; // what was counted
mod wire; // the JSON

use std::sync::Arc;

use adjutant_core::{Capabilities, GenerateRequest, GenerateResponse, ModelError, ToolSet};
use reqwest::header::HeaderName;
use secrecy::SecretString;
use url::Url;

use super::family::Family;
use super::vendors::{Address, Dialect};
use super::{bearer, vendor};
use crate::adapter::{HttpModel, Wire};
use crate::connection::{Connection, endpoint, is_on_this_machine};
use crate::decode::{Asked, SseStream, StreamDecoder};
use crate::encode::Encoded;
use crate::error::Vendor;
use crate::patience::{Patience, is_on_own_network};
use crate::provider::Provider;
use response::Reading;

/// A model of a server that speaks `dialect`.
pub(super) fn open(
    row: &Provider,
    dialect: &'static Dialect,
    name: &str,
    connection: Connection,
) -> Result<HttpModel, ModelError> {
    let vendor = Arc::new(vendor(row, name, dialect.model_advice)?);
    let id = &vendor.model;
    let key = if row.needs_key {
        Some(connection.key(&id.provider, row.key_advice)?)
    } else {
        connection.optional_key()
    };
    let base = row.base(&connection)?;
    let path = ["chat", "completions"];
    let (url, headers) = match dialect.address {
        Address::Version(version) => (
            endpoint(&id.provider, &base, version, &path)?,
            key.as_ref().map(bearer),
        ),
        Address::Azure => (azure(&base, &vendor)?, key.map(api_key)),
    };
    let self_hosted = row.local || is_on_own_network(&base);
    let mut family = (dialect.family)(&id.name);
    if self_hosted && dialect.may_be_at_home {
        family.common = family.common.at_home();
    }
    let capabilities = Capabilities {
        local: row.local && is_on_this_machine(&base),
        self_hosted,
        ..family.common.capabilities()
    };
    let patience = match row.local {
        true => Patience::with_own_server(&connection),
        false => Patience::by_address(&connection, &base, &capabilities),
    };
    let wire = Chat {
        vendor: vendor.clone(),
        dialect,
        family,
        url,
        tools: request::Tools::default(),
        headers: headers.into_iter().collect(),
    };
    Ok(HttpModel::new(
        vendor,
        capabilities,
        patience,
        wire,
        connection,
    ))
}

/// The address of a deployment. With `api-version` in the base URL's query the dated form, whose
/// path names the deployment; else the form without dates, which looks like OpenAI's own. Source:
/// "API version lifecycle" of Azure OpenAI (checked 2026-11-22). A complete address, as Azure's
/// portal shows it, is taken as it is.
fn azure(base: &Url, vendor: &Vendor) -> Result<Url, ModelError> {
    let path = base.path().trim_end_matches('/');
    let dated = base.query_pairs().any(|(name, _)| name == "api-version");
    let (provider, name) = (&vendor.model.provider, vendor.model.name.as_str());
    let ask: &[&str] = &["chat", "completions"];
    let under: &[&str] = match () {
        () if path.ends_with("/chat/completions") => &[],
        () if dated && path.contains("/deployments/") => ask,
        () if dated && path.ends_with("/openai") => &["deployments", name, "chat", "completions"],
        () if dated => &["openai", "deployments", name, "chat", "completions"],
        () if path.ends_with("/v1") => ask,
        () if path.ends_with("/openai") => &["v1", "chat", "completions"],
        () => &["openai", "v1", "chat", "completions"],
    };
    endpoint(provider, base, "", under)
}

fn api_key(key: SecretString) -> (HeaderName, SecretString) {
    (HeaderName::from_static("api-key"), key)
}

struct Chat {
    vendor: Arc<Vendor>,
    dialect: &'static Dialect,
    family: Family,
    url: Url,
    tools: request::Tools,
    headers: Vec<(HeaderName, SecretString)>,
}

impl Wire for Chat {
    fn encode(&self, request: &GenerateRequest, streamed: bool) -> Result<Encoded, ModelError> {
        request::encode(
            request,
            (&self.vendor.model, &self.family),
            self.dialect,
            &self.tools,
            streamed,
        )
    }

    fn url(&self, _: bool) -> &Url {
        &self.url
    }

    fn headers(&self) -> &[(HeaderName, SecretString)] {
        &self.headers
    }

    fn asked(&self, request: &GenerateRequest) -> Asked {
        // Somebody else's request gets the answer as it is.
        let tools = if request.config.verbatim {
            ToolSet::default()
        } else {
            request.tools.clone()
        };
        Asked {
            tools,
            ..Asked::default()
        }
    }

    fn decode(
        &self,
        asked: &Asked,
        body: &str,
        losses: Vec<String>,
    ) -> Result<GenerateResponse, ModelError> {
        response::decode(
            body,
            Reading::new(self.vendor.clone(), self.dialect, &asked.tools, losses),
        )
    }

    fn decoder(&self, asked: &Asked, losses: Vec<String>) -> Box<dyn StreamDecoder> {
        SseStream::boxed(Reading::new(
            self.vendor.clone(),
            self.dialect,
            &asked.tools,
            losses,
        ))
    }
}

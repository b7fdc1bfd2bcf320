//! The Chat Completions API, `POST /v1/chat/completions`, of OpenAI and of many others.
//!
//! Source: <https://platform.openai.com/docs/api-reference/chat> and the vendor's published OpenAPI
//! document (checked 2026-11-22). Differences of other servers are in `vendors.rs`, and where they
//! only concern answers, in `response.rs`.

mod chunk_template; // fast decoding of chunks that repeat
mod ids; // call ids in the form that a server accepts
mod request; // encodes requests
mod response; // decodes answers
#[cfg(test)]
mod tests;
mod thinking; // reasoning, in each server's form
mod usage; // token counts, in each server's form
mod wire; // the API's JSON types

use std::sync::Arc;

use adjutant_core::{Capabilities, GenerateRequest, ModelError, ToolSet};
use reqwest::header::HeaderName;
use url::Url;

use super::dialect::{Address, Dialect};
use super::error;
use super::family::Family;
use crate::adapter::{Endpoint, HttpModel, Wire};
use crate::address::{is_on_private_network, is_on_this_machine};
use crate::connection::{Connection, bearer, endpoint};
use crate::decode::{AnswerFold, RequestContext};
use crate::encode::Encoded;
use crate::error::Vendor;
use crate::provider::Provider;
use crate::read_timeout::ReadTimeouts;
use response::PartialAnswer;

/// Opens a model of a server whose API differs from OpenAI's as `dialect` says.
pub(super) fn open(
    row: &Provider,
    dialect: &'static Dialect,
    name: &str,
    connection: Connection,
) -> Result<HttpModel, ModelError> {
    let vendor = Arc::new(Vendor {
        model_advice: dialect.model_advice.to_owned(),
        ..row.vendor(name, error::parse)?
    });
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
        Address::Azure => {
            let api_key = HeaderName::from_static("api-key");
            (azure(&base, &vendor)?, key.map(|key| (api_key, key)))
        }
    };
    let self_hosted = row.local || is_on_private_network(&base);
    let mut family = (dialect.family)(&id.name);
    // A vendor's own API at a private address is a proxy, whose models are the vendor's.
    if self_hosted && dialect.may_be_self_hosted {
        family.common = family.common.for_self_hosted();
    }
    let capabilities = Capabilities {
        // A model runs where the address of its server is.
        local: (row.local || dialect.may_be_self_hosted) && is_on_this_machine(&base),
        self_hosted,
        ..family.common.capabilities()
    };
    let endpoint = Endpoint {
        vendor: vendor.clone(),
        urls: [url.clone(), url],
        headers: headers.into_iter().collect(),
        timeouts: match row.local {
            true => ReadTimeouts::for_self_hosted(connection.timeout),
            false => ReadTimeouts::for_address(connection.timeout, &base, &capabilities),
        },
        capabilities,
    };
    let wire = Chat {
        vendor,
        dialect,
        family,
        tools: request::Tools::default(),
        stores_unless_told: row.stores_unless_told,
    };
    Ok(HttpModel::new(endpoint, wire, connection))
}

/// Returns the address of a deployment. With `api-version` in the base URL's query it is the dated
/// form, whose path names the deployment; else the form without dates, which resembles OpenAI's
/// own. Source: "API version lifecycle" of Azure OpenAI (checked 2026-11-22). A complete address,
/// as Azure's portal shows it, is used unchanged.
fn azure(base: &Url, vendor: &Vendor) -> Result<Url, ModelError> {
    let path = base.path().trim_end_matches('/');
    let dated = base.query_pairs().any(|(name, _)| name == "api-version");
    let (provider, name) = (&vendor.model.provider, vendor.model.name.as_str());
    let suffix: &[&str] = &["chat", "completions"];
    let rest: &[&str] = match () {
        () if path.ends_with("/chat/completions") => &[],
        () if dated && path.contains("/deployments/") => suffix,
        () if dated && path.ends_with("/openai") => &["deployments", name, "chat", "completions"],
        () if dated => &["openai", "deployments", name, "chat", "completions"],
        () if path.ends_with("/v1") => suffix,
        () if path.ends_with("/openai") => &["v1", "chat", "completions"],
        () => &["openai", "v1", "chat", "completions"],
    };
    endpoint(provider, base, "", rest)
}

struct Chat {
    vendor: Arc<Vendor>,
    dialect: &'static Dialect,
    family: Family,
    tools: request::Tools,
    stores_unless_told: bool,
}

impl Wire for Chat {
    fn encode(&self, request: &GenerateRequest, streamed: bool) -> Result<Encoded, ModelError> {
        request::encode(
            request,
            &self.vendor.model,
            &self.family,
            self.dialect,
            &self.tools,
            self.stores_unless_told,
            streamed,
        )
    }

    fn request_context(&self, request: &GenerateRequest) -> RequestContext {
        // A verbatim request was made by another program, which gets the calls as the server sent
        // them: without tools, none are looked for in the text.
        let tools = if request.config.verbatim {
            ToolSet::default()
        } else {
            request.tools.clone()
        };
        RequestContext {
            tools,
            ..RequestContext::default()
        }
    }

    fn answer(&self, context: &RequestContext, losses: Vec<String>) -> Box<dyn AnswerFold> {
        Box::new(PartialAnswer::new(
            self.vendor.clone(),
            self.dialect,
            &context.tools,
            losses,
        ))
    }
}

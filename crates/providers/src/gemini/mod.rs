//! Google's Gemini models: `generateContent` and `streamGenerateContent`, of the Gemini API
//! (v1beta) and of Vertex AI (v1).
//!
//! Source: <https://ai.google.dev/api/generate-content>,
//! <https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/projects.locations.publishers.models/generateContent>
//! and the vendor's published types (checked 2026-11-22).

mod error; // parses error bodies
mod family; // limits and settings per model family
mod partial_args; // function arguments that arrive value by value
mod request; // encodes requests
mod response; // decodes answers
mod schema; // JSON Schema in the subset that Gemini takes
#[cfg(test)]
mod tests;
mod vertex; // addresses of models on Vertex AI
mod wire; // the API's JSON types

use std::sync::Arc;

use adjutant_core::{GenerateRequest, ModelError};
use reqwest::header::HeaderName;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::adapter::{Endpoint, HttpModel, Wire};
use crate::connection::{Connection, bearer, endpoint};
use crate::decode::{AnswerFold, RequestContext};
use crate::encode::Encoded;
use crate::error::Vendor;
use crate::provider::Provider;
use crate::read_timeout::ReadTimeouts;
use family::Family;
use response::PartialAnswer;
use vertex::ModelAddress;

/// The vendor's current Flash model (checked 2026-11-21: stable since 2026-09-02, no shutdown date
/// announced; `gemini-2.0-flash` was shut down on 2026-06-01).
pub const DEFAULT_MODEL: &str = "gemini-3.8-flash";

const VERSION: &str = "v1beta";
const KEY_HEADER: HeaderName = HeaderName::from_static("x-goog-api-key");

pub(crate) const PROVIDERS: &[Provider] = &[
    Provider {
        name: "gemini",
        aliases: &["google"],
        key_variable: Some("GEMINI_API_KEY"),
        needs_key: true,
        key_advice: "Set GEMINI_API_KEY to a key from https://aistudio.google.com/apikey.",
        base_url_variable: Some("GEMINI_BASE_URL"),
        model_variable: Some("GEMINI_MODEL"),
        base_url: "https://generativelanguage.googleapis.com",
        default_model: Some(DEFAULT_MODEL),
        local: false,
        // Projects made since 2026-10-26: for 55 days ("Logs and datasets", checked 2026-11-28).
        stores_unless_told: true,
        retries: 1,
        call_state: Some(call_state),
        open,
    },
    Provider {
        name: "vertex",
        aliases: &["vertex-ai", "vertexai"],
        key_variable: Some("VERTEX_ACCESS_TOKEN"),
        needs_key: true,
        key_advice: "Set VERTEX_ACCESS_TOKEN to what `gcloud auth print-access-token` prints (it lasts an hour), or, in express mode, to its API key.",
        base_url_variable: Some("VERTEX_BASE_URL"),
        model_variable: Some("VERTEX_MODEL"),
        base_url: vertex::GLOBAL,
        default_model: None,
        local: false,
        stores_unless_told: false,
        retries: 1,
        call_state: Some(call_state),
        open: open_vertex,
    },
];

fn call_state(signature: &str) -> Value {
    json!({ "thoughtSignature": signature })
}

/// Opens a model of the Gemini API. Sends no request.
///
/// # Examples
/// ```no_run
/// use adjutant_core::{GenerateRequest, LanguageModel, Message};
/// use adjutant_providers::{Connection, Transport, gemini};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let key = std::env::var("GEMINI_API_KEY")?;
/// let connection = Connection::new(Transport::new()?).with_key(key.into());
/// let model = gemini::model(gemini::DEFAULT_MODEL, connection)?;
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
    let vendor = vendor(row, name)?;
    let key = (
        KEY_HEADER,
        connection.key(&vendor.model.provider, row.key_advice)?,
    );
    // A name with a folder (`tunedModels/x`) already is a path.
    let name = &vendor.model.name;
    let path = if name.contains('/') {
        name.clone()
    } else {
        format!("models/{name}")
    };
    let base = row.base(&connection)?;
    assemble(
        row,
        vendor,
        connection,
        key,
        &ModelAddress {
            base,
            version: VERSION,
            path,
            in_project: false,
        },
    )
}

fn open_vertex(
    row: &Provider,
    name: &str,
    connection: Connection,
) -> Result<HttpModel, ModelError> {
    let vendor = vendor(row, name)?;
    let key = connection.key(&vendor.model.provider, row.key_advice)?;
    let address = ModelAddress::new(&vendor.model.name, row.base(&connection)?);
    let key = if address.in_project {
        bearer(&key)
    } else {
        (KEY_HEADER, key)
    };
    assemble(row, vendor, connection, key, &address)
}

fn assemble(
    row: &Provider,
    vendor: Vendor,
    connection: Connection,
    key: (HeaderName, SecretString),
    address: &ModelAddress,
) -> Result<HttpModel, ModelError> {
    let id = &vendor.model;
    let url = |method: &str| {
        let path = format!("{}:{method}", address.path);
        endpoint(
            &id.provider,
            &address.base,
            address.version,
            &path.split('/').collect::<Vec<_>>(),
        )
    };
    let (whole_url, mut stream_url) = (url("generateContent")?, url("streamGenerateContent")?);
    // Without it the stream is a JSON list instead of events.
    stream_url.query_pairs_mut().append_pair("alt", "sse");
    // On Vertex AI the name may be a path, which ends in the model's own name.
    let family = family::for_model(id.name.rsplit('/').next().unwrap_or_default());
    let vendor = Arc::new(vendor);
    let capabilities = family.common.capabilities();
    let endpoint = Endpoint {
        vendor: vendor.clone(),
        urls: [whole_url, stream_url],
        headers: vec![key],
        // No self-hosted server has this API: one at a private address is a proxy to the vendor.
        timeouts: ReadTimeouts::for_vendor(connection.timeout, &capabilities),
        capabilities,
    };
    Ok(HttpModel::new(
        endpoint,
        Gemini {
            vendor,
            family,
            stores_unless_told: row.stores_unless_told,
        },
        connection,
    ))
}

/// Returns the model of this name, which may be written as the API lists it.
fn vendor(row: &Provider, name: &str) -> Result<Vendor, ModelError> {
    row.vendor(name.trim().trim_start_matches("models/"), error::parse)
}

struct Gemini {
    vendor: Arc<Vendor>,
    family: Family,
    stores_unless_told: bool,
}

impl Wire for Gemini {
    fn encode(&self, request: &GenerateRequest, _: bool) -> Result<Encoded, ModelError> {
        request::encode(
            request,
            &self.vendor.model,
            &self.family,
            self.stores_unless_told,
        )
    }

    fn answer(&self, _: &RequestContext, losses: Vec<String>) -> Box<dyn AnswerFold> {
        Box::new(PartialAnswer::new(self.vendor.clone(), losses))
    }
}

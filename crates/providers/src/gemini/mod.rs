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
mod stream; // folds the events of a stream
#[cfg(test)]
mod tests;
mod vertex; // addresses of models on Vertex AI
mod wire; // the API's JSON types

use std::sync::Arc;

use adjutant_core::{GenerateRequest, GenerateResponse, ModelError};
use reqwest::header::{AUTHORIZATION, HeaderName};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

use crate::adapter::{HttpModel, Wire};
use crate::connection::{Connection, endpoint, model_id};
use crate::decode::{RequestContext, SseDecoder, StreamDecoder};
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
        (
            AUTHORIZATION,
            format!("Bearer {}", key.expose_secret()).into(),
        )
    } else {
        (KEY_HEADER, key)
    };
    assemble(vendor, connection, key, &address)
}
fn assemble(
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
    let family = family::for_model(id.name.rsplit('/').next().unwrap_or_default());
    let vendor = Arc::new(vendor);
    let wire = Gemini {
        family,
        whole_url,
        stream_url,
        headers: vec![key],
        vendor: vendor.clone(),
    };
    let capabilities = family.common.capabilities();
    // No self-hosted server has this API: one at a private address is a proxy to the vendor.
    let timeouts = ReadTimeouts::for_vendor(connection.timeout, &capabilities);
    Ok(HttpModel::new(
        vendor,
        capabilities,
        timeouts,
        wire,
        connection,
    ))
}

fn vendor(row: &Provider, name: &str) -> Result<Vendor, ModelError> {
    Ok(Vendor {
        model: model_id(row.name, name.trim().trim_start_matches("models/"))?,
        key_advice: row.key_advice.to_owned(),
        model_advice: String::new(),
        parse_error: error::parse,
    })
}

/// Translates between our types and the API of one model.
struct Gemini {
    vendor: Arc<Vendor>,
    family: Family,
    whole_url: Url,
    stream_url: Url,
    headers: Vec<(HeaderName, SecretString)>,
}

impl Wire for Gemini {
    fn encode(&self, request: &GenerateRequest, _: bool) -> Result<Encoded, ModelError> {
        request::encode(request, &self.vendor.model, &self.family)
    }

    fn url(&self, streamed: bool) -> &Url {
        if streamed {
            &self.stream_url
        } else {
            &self.whole_url
        }
    }

    fn headers(&self) -> &[(HeaderName, SecretString)] {
        &self.headers
    }

    fn decode(
        &self,
        _: &RequestContext,
        body: &str,
        losses: Vec<String>,
    ) -> Result<GenerateResponse, ModelError> {
        response::decode(body, self.vendor.clone(), losses)
    }

    fn decoder(&self, _: &RequestContext, losses: Vec<String>) -> Box<dyn StreamDecoder> {
        SseDecoder::boxed(PartialAnswer::new(self.vendor.clone(), losses))
    }
}

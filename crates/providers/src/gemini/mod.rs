//! Gemini by Google: `generateContent` and `streamGenerateContent`, of the Gemini API (v1beta) and
//! of Vertex AI (v1).
//!
//! Source: <https://ai.google.dev/api/generate-content>,
//! <https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/projects.locations.publishers.models/generateContent>
//! and the vendor's published types (checked 2026-11-22).

mod error; // what an error body says
mod family; // what differs between models
mod partial; // arguments that come value by value
mod request; // core to wire
mod response; // wire to core
mod schema; // JSON Schema as Gemini takes it
mod stream; // events to deltas
#[cfg(test)]
mod tests;
mod vertex; // where Vertex AI is
mod wire; // the vendor's JSON

use std::sync::Arc;

use adjutant_core::{GenerateRequest, GenerateResponse, ModelError};
use reqwest::header::{AUTHORIZATION, HeaderName};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

use crate::adapter::{HttpModel, Wire};
use crate::connection::{Connection, endpoint, model_id};
use crate::decode::{Asked, SseStream, StreamDecoder};
use crate::encode::Encoded;
use crate::error::Vendor;
use crate::patience::Patience;
use crate::provider::Provider;
use family::Family;
use response::Reading;

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

/// A model of Gemini. Sends nothing.
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
    // A name with a folder (`tunedModels/x`) keeps it.
    let name = &vendor.model.name;
    let path = if name.contains('/') {
        name.clone()
    } else {
        format!("models/{name}")
    };
    let base = row.base(&connection)?;
    assemble(vendor, connection, key, (&base, VERSION, &path))
}

fn open_vertex(
    row: &Provider,
    name: &str,
    connection: Connection,
) -> Result<HttpModel, ModelError> {
    let vendor = vendor(row, name)?;
    let key = connection.key(&vendor.model.provider, row.key_advice)?;
    let place = vertex::Place::of(&vendor.model.name, row.base(&connection)?);
    let key = if place.in_project {
        (
            AUTHORIZATION,
            format!("Bearer {}", key.expose_secret()).into(),
        )
    } else {
        (KEY_HEADER, key)
    };
    assemble(
        vendor,
        connection,
        key,
        (&place.base, place.version, &place.path),
    )
}

/// The address is a base, its version and the model's path behind it.
fn assemble(
    vendor: Vendor,
    connection: Connection,
    key: (HeaderName, SecretString),
    (base, version, path): (&Url, &str, &str),
) -> Result<HttpModel, ModelError> {
    let id = &vendor.model;
    let url = |method: &str| {
        let path = format!("{path}:{method}");
        endpoint(
            &id.provider,
            base,
            version,
            &path.split('/').collect::<Vec<_>>(),
        )
    };
    let (whole_url, mut stream_url) = (url("generateContent")?, url("streamGenerateContent")?);
    stream_url.query_pairs_mut().append_pair("alt", "sse");
    let family = family::of(id.name.rsplit('/').next().unwrap_or_default());
    let vendor = Arc::new(vendor);
    let wire = Gemini {
        family,
        whole_url,
        stream_url,
        headers: vec![key],
        vendor: vendor.clone(),
    };
    let capabilities = family.common.capabilities();
    // Nothing that runs at home speaks this language: what is at such an address passes it on to
    // the vendor.
    let patience = Patience::with_vendor(&connection, &capabilities);
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
        model: model_id(row.name, name.trim().trim_start_matches("models/"))?,
        key_advice: row.key_advice.to_owned(),
        model_advice: String::new(),
        complaint: error::complaint,
    })
}

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

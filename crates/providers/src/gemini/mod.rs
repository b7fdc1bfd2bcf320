//! Gemini by Google: `generateContent` and `streamGenerateContent`, v1beta.
//!
//! Source: <https://ai.google.dev/api/generate-content> and the vendor's published types (checked 2026-11-21).

mod error; // what an error body says
mod family; // what differs between models
mod request; // core to wire
mod response; // wire to core
mod schema; // JSON Schema as Gemini takes it
mod stream; // frames to deltas
#[cfg(test)]
mod tests;
mod wire; // the vendor's JSON

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::DeltaStream;
use adjutant_core::{
    BoxFuture, Capabilities, GenerateRequest, GenerateResponse, LanguageModel, ModelError, ModelId,
    ProviderId,
};
use bytes::Bytes;
use reqwest::header::HeaderName;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::decode;
use crate::error::Vendor;
use crate::http::{Call, Transport};
use crate::retry::{self, Policy};
use family::Family;
use request::Encoded;
use stream::GeminiStream;

/// The provider's name.
pub const PROVIDER: &str = "gemini";

const HOST: &str = "https://generativelanguage.googleapis.com";
const VERSION: &str = "v1beta";
const KEY_ADVICE: &str = "Set GEMINI_API_KEY to a key from https://aistudio.google.com/apikey.";

/// How to reach Gemini, and which model.
#[derive(Debug, Clone)]
pub struct GeminiConfig {
    /// The key. Sent as a header, never logged.
    pub api_key: SecretString,
    /// The vendor's name of the model, passed on as it is. Default [`Gemini::DEFAULT_MODEL`].
    pub model: String,
    /// Another host with the same API, with or without `/v1beta`. Default: Google's.
    pub base_url: Option<Url>,
    /// How long a whole answer may take, or a stream may stay silent. Default 30 s.
    pub timeout: Duration,
    /// Attempts after the first. Default 1.
    pub retries: u32,
    /// The connections.
    pub transport: Transport,
}

impl GeminiConfig {
    /// The defaults.
    #[must_use]
    pub fn new(api_key: SecretString, transport: Transport) -> Self {
        Self {
            api_key,
            model: Gemini::DEFAULT_MODEL.to_owned(),
            base_url: None,
            timeout: Duration::from_secs(30),
            retries: 1,
            transport,
        }
    }
}

/// A Gemini model.
#[derive(Debug, Clone)]
pub struct Gemini {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    vendor: Arc<Vendor>,
    family: Family,
    capabilities: Capabilities,
    api_key: SecretString,
    generate_url: Url,
    stream_url: Url,
    timeout: Duration,
    retries: u32,
    transport: Transport,
}

impl Gemini {
    /// The vendor's current Flash model (checked 2026-11-21: stable since 2026-09-02, no shutdown date announced;
    /// `gemini-2.0-flash` was shut down on 2026-06-01).
    pub const DEFAULT_MODEL: &str = "gemini-3.8-flash";

    /// Checks the configuration; sends nothing.
    ///
    /// # Errors
    /// [`ModelError::Authentication`] without a key, [`ModelError::BadRequest`] for a blank model name or a base URL
    /// that is not http(s).
    pub fn new(config: GeminiConfig) -> Result<Self, ModelError> {
        let id = model_id(&config.model)?;
        let provider = || id.provider.clone();
        let api_key = config.api_key.expose_secret().trim();
        if api_key.is_empty() {
            let message = format!("there is no key. {KEY_ADVICE}");
            return Err(ModelError::Authentication { provider: provider(), message });
        }
        let base = config.base_url.map_or_else(|| Url::parse(HOST), Ok);
        let (generate_url, stream_url) = base
            .ok()
            .and_then(|base| {
                Some((
                    endpoint(&base, &id.name, "generateContent")?,
                    endpoint(&base, &id.name, "streamGenerateContent")?,
                ))
            })
            .ok_or_else(|| ModelError::BadRequest {
                provider: provider(),
                message: "the base URL must begin with http:// or https://".to_owned(),
            })?;
        let mut stream_url = stream_url;
        stream_url.set_query(Some("alt=sse"));
        let family = Family::of(&id.name);
        let capabilities = Capabilities {
            context_window: family.context_window,
            weak_tools: false,
            response_schema: true,
            local: false,
            turn_deadline: None,
        };
        let vendor = Vendor { model: id, key_advice: KEY_ADVICE, complaint: error::complaint };
        let inner = Inner {
            vendor: Arc::new(vendor),
            family,
            capabilities,
            api_key: api_key.to_owned().into(),
            generate_url,
            stream_url,
            timeout: config.timeout,
            retries: config.retries,
            transport: config.transport,
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl LanguageModel for Gemini {
    fn id(&self) -> &ModelId {
        &self.inner.vendor.model
    }

    fn capabilities(&self) -> &Capabilities {
        &self.inner.capabilities
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        Box::pin(async move {
            let Encoded { body, losses } = self.inner.encode(request)?;
            retry::generate(self.inner.policy(), request.time_left, async |left| {
                let call = self.inner.call(&self.inner.generate_url, body.clone(), left);
                let answer = self.inner.transport.send_json(call).await?;
                response::decode(&answer, self.inner.vendor.clone(), losses.clone())
            })
            .await
        })
    }

    fn stream<'a>(&'a self, request: &'a GenerateRequest) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        Box::pin(async move {
            let Encoded { body, losses } = self.inner.encode(request)?;
            let inner = self.inner.clone();
            let open: retry::Open = Box::new(move |left| {
                let (inner, body, losses) = (inner.clone(), body.clone(), losses.clone());
                Box::pin(async move {
                    let call = inner.call(&inner.stream_url, body, left);
                    let bytes = inner.transport.send_stream(call).await?;
                    Ok(decode::deltas(bytes, GeminiStream::new(inner.vendor.clone(), losses)))
                })
            });
            retry::stream(self.inner.policy(), request.time_left, open).await
        })
    }
}

impl Inner {
    fn encode(&self, request: &GenerateRequest) -> Result<Encoded, ModelError> {
        request::encode(request, &self.vendor.model, &self.family)
    }

    fn policy(&self) -> Policy {
        Policy::network(self.retries)
    }

    fn call(&self, url: &Url, body: Bytes, time_left: Option<Duration>) -> Call {
        Call {
            vendor: self.vendor.clone(),
            url: url.clone(),
            key: (HeaderName::from_static("x-goog-api-key"), self.api_key.clone()),
            body,
            timeout: self.timeout,
            time_left,
        }
    }
}

fn model_id(model: &str) -> Result<ModelId, ModelError> {
    #[expect(clippy::expect_used, reason = "a literal that is not blank")]
    let provider = ProviderId::new(PROVIDER).expect("a name");
    let name = model.trim().trim_start_matches("models/").to_owned();
    if name.is_empty() {
        return Err(ModelError::BadRequest { provider, message: "the model's name is blank".to_owned() });
    }
    Ok(ModelId { provider, name })
}

/// `{base}/v1beta/models/{model}:{method}`; a name with a folder (`tunedModels/x`) keeps it.
fn endpoint(base: &Url, model: &str, method: &str) -> Option<Url> {
    let mut url = base.clone();
    url.set_query(None);
    let versioned = base.path().trim_end_matches('/').ends_with(VERSION);
    {
        let mut path = url.path_segments_mut().ok()?;
        path.pop_if_empty();
        if !versioned {
            path.push(VERSION);
        }
        if !model.contains('/') {
            path.push("models");
        }
        path.extend(format!("{model}:{method}").split('/'));
    }
    matches!(url.scheme(), "http" | "https").then_some(url)
}

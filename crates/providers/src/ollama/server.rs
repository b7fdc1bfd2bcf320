//! What a server says of itself and its models.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{ModelError, ModelId, ProviderId};
use bytes::Bytes;
use reqwest::header::HeaderName;
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::json;
use url::Url;

use super::{PROVIDERS, wire};
use crate::connection::{self, Connection, model_id};
use crate::error::Vendor;
use crate::http::{ByteStream, Call, Target, Transport};
use crate::patience::Patience;

/// Longest silence of a server that is asked about itself.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A server, to be asked about itself; a clone shares the connections. What to expect of an
/// unreachable one: [`ModelError::Network`] that names the address and how to start it.
#[derive(Debug, Clone)]
pub struct Server {
    provider: ProviderId,
    base: Url,
    headers: Vec<(HeaderName, SecretString)>,
    /// Silence, and for what is answered at once the whole answer.
    timeout: Duration,
    transport: Transport,
}

/// A model that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModel {
    /// Its name, tag included: `qwen3:8b`.
    pub name: String,
    /// Its size, in bytes.
    pub size_bytes: Option<u64>,
    /// How many parameters it has, in the server's words: `8.2B`.
    pub parameters: Option<String>,
    /// How its weights are stored: `Q4_K_M`.
    pub quantization: Option<String>,
}

/// What a server says of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// What it can do: `completion`, `tools`, `thinking`, `vision`, ... `None`: the server is too
    /// old to say.
    pub capabilities: Option<Vec<String>>,
    /// Tokens it was made for, prompt and answer together.
    pub context_length: Option<u64>,
}

impl ModelInfo {
    /// Whether it can do that, such as `tools`. A server that does not say is believed to mean yes,
    /// but for `thinking`.
    #[must_use]
    pub fn can(&self, what: &str) -> bool {
        match &self.capabilities {
            Some(capabilities) => capabilities.iter().any(|capability| capability == what),
            None => what != "thinking",
        }
    }
}

impl Server {
    /// The server a connection leads to. Sends nothing.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] for a base URL that is not http(s).
    pub fn new(connection: &Connection) -> Result<Self, ModelError> {
        Self::at(&PROVIDERS[0].base(connection)?, connection)
    }

    pub(super) fn at(base: &Url, connection: &Connection) -> Result<Self, ModelError> {
        let provider = model_id(PROVIDERS[0].name, PROVIDERS[0].name)?.provider;
        endpoint(&provider, base, "version")?;
        Ok(Self {
            provider,
            base: base.clone(),
            headers: super::headers(connection),
            timeout: connection.timeout.unwrap_or(TIMEOUT),
            transport: connection.transport.clone(),
        })
    }

    /// The same with another bound for each answer.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The server's version, such as `0.33.3`; whether it is there at all.
    ///
    /// # Errors
    /// [`ModelError::Network`] or [`ModelError::Timeout`] if it is not, [`ModelError::BadRequest`]
    /// if it is another kind of server.
    pub async fn version(&self) -> Result<String, ModelError> {
        Ok(self
            .ask::<wire::Version>("version", "", None)
            .await?
            .version)
    }

    /// The models it has.
    ///
    /// # Errors
    /// As [`Server::version`].
    pub async fn models(&self) -> Result<Vec<InstalledModel>, ModelError> {
        let tags: wire::Tags = self.ask("tags", "", None).await?;
        let installed = |tag: wire::Tag| {
            Some(InstalledModel {
                name: tag.name.or(tag.model).filter(|name| !name.is_empty())?,
                size_bytes: tag.size,
                parameters: tag.details.parameter_size,
                quantization: tag.details.quantization_level,
            })
        };
        Ok(tags.models.into_iter().filter_map(installed).collect())
    }

    /// What it says of a model.
    ///
    /// # Errors
    /// As [`Server::version`], and [`ModelError::NotFound`] if it does not have the model.
    pub async fn show(&self, model: &str) -> Result<ModelInfo, ModelError> {
        let body = Bytes::from(json!({ "model": model }).to_string());
        let shown: wire::Shown = self.ask("show", model, Some(body)).await?;
        // The key begins with the architecture's name: `qwen3.context_length`.
        let context_length = shown
            .model_info
            .iter()
            .find(|(key, _)| key.ends_with(".context_length"))
            .map(|(_, value)| value);
        Ok(ModelInfo {
            capabilities: shown.capabilities,
            context_length: context_length.and_then(serde_json::Value::as_u64),
        })
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        model: &str,
        body: Option<Bytes>,
    ) -> Result<T, ModelError> {
        let call = Call {
            time_left: Some(self.timeout),
            ..self.call(path, model, body)?
        };
        let answer =
            self.transport
                .send_json(call)
                .await
                .map_err(|failure| match failure.error {
                    ModelError::NotFound { message, .. } if model.is_empty() => {
                        self.not_ollama(&message)
                    }
                    error => explain(error, &self.base),
                })?;
        serde_json::from_str(&answer).map_err(|error| self.not_ollama(&error.to_string()))
    }

    fn call(&self, path: &str, model: &str, body: Option<Bytes>) -> Result<Call, ModelError> {
        let vendor = Arc::new(Vendor {
            model: ModelId {
                provider: self.provider.clone(),
                name: model.to_owned(),
            },
            ..super::vendor(
                &PROVIDERS[0],
                if model.is_empty() { "MODEL" } else { model },
            )?
        });
        Ok(Call {
            target: Arc::new(Target::new(
                &vendor,
                endpoint(&self.provider, &self.base, path)?,
                &self.headers,
            )),
            vendor,
            headers: Vec::new(),
            body,
            patience: Patience::fixed(self.timeout),
            time_left: None,
            trace: None,
        })
    }

    /// A request whose answer comes in pieces.
    pub(super) async fn stream(
        &self,
        path: &str,
        model: &str,
        body: Bytes,
    ) -> Result<(Arc<Vendor>, ByteStream), ModelError> {
        let call = self.call(path, model, Some(body))?;
        let vendor = call.vendor.clone();
        let stream = self.transport.send_stream(call).await;
        let stream = stream.map_err(|failure| explain(failure.error, &self.base))?;
        Ok((vendor, stream))
    }

    /// Has the server delete a model.
    ///
    /// # Errors
    /// [`ModelError::NotFound`] if it does not have it, and as [`Server::version`].
    pub async fn remove(&self, model: &str) -> Result<(), ModelError> {
        let body = Bytes::from(json!({ "model": model }).to_string());
        let call = self.call("delete", model, Some(body))?;
        self.transport
            .delete(call)
            .await
            .map_err(|error| explain(error, &self.base))
    }

    fn not_ollama(&self, why: &str) -> ModelError {
        ModelError::BadRequest {
            provider: self.provider.clone(),
            message: format!(
                "{} does not answer as an Ollama server does: {why}",
                self.base
            ),
        }
    }
}

/// A path of the API. A base that ends in `/api`, or in the `/v1` of the server's other language,
/// gets no second one.
pub(super) fn endpoint(provider: &ProviderId, base: &Url, path: &str) -> Result<Url, ModelError> {
    let mut base = base.clone();
    let without = base
        .path()
        .trim_end_matches('/')
        .strip_suffix("/v1")
        .map(str::to_owned);
    if let Some(path) = without {
        base.set_path(&path);
    }
    connection::endpoint(provider, &base, "api", &[path])
}

/// A failure with what to do about a server that is not there.
pub(super) fn explain(error: ModelError, base: &Url) -> ModelError {
    match error {
        ModelError::Network { provider, message } => ModelError::Network {
            provider,
            message: format!(
                "{message}. Is Ollama running at {base}? Start it with `ollama serve`, or say where it is with OLLAMA_HOST"
            ),
        },
        error => error,
    }
}

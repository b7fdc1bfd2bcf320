//! [`Server`]: requests about an Ollama server itself and its models.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{ModelError, ModelId, ProviderId};
use bytes::Bytes;
use reqwest::header::HeaderName;
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::json;
use url::Url;

use super::vendor::{self, BASE_URL, NAME};
use super::wire;
use crate::connection::{self, Connection, model_id};
use crate::error::Vendor;
use crate::http::{ByteStream, HttpRequest, Target, Transport};
use crate::read_timeout::ReadTimeouts;

/// The default bound on a server's silence.
const TIMEOUT: Duration = Duration::from_secs(120);

/// An Ollama server, for its version and its models; a clone shares the connections. If it cannot
/// be reached, requests fail with a [`ModelError::Network`] that names the address and how to start
/// it.
#[derive(Debug, Clone)]
pub struct Server {
    provider: ProviderId,
    base: Url,
    headers: Vec<(HeaderName, SecretString)>,
    /// The bound on silence; also on the whole answer if it is not streamed.
    timeout: Duration,
    transport: Transport,
}

/// A model that is installed on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModel {
    /// The name with its tag, such as `qwen3:8b`.
    pub name: String,
    /// The size of its files in bytes.
    pub size_bytes: Option<u64>,
    /// The number of parameters as the server formats it, such as `8.2B`.
    pub parameters: Option<String>,
    /// The quantization of its weights, such as `Q4_K_M`.
    pub quantization: Option<String>,
}

/// A server's description of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Capabilities such as `completion`, `tools`, `thinking`, `vision`. `None` if the server is
    /// too old to report them.
    pub capabilities: Option<Vec<String>>,
    /// The context window the model was trained for, in tokens of prompt and answer together.
    pub context_length: Option<u64>,
}

impl ModelInfo {
    /// Returns true if the model has a capability, such as `tools`. If the server does not report
    /// any, all are assumed but `thinking`.
    #[must_use]
    pub fn can(&self, capability: &str) -> bool {
        match &self.capabilities {
            Some(capabilities) => capabilities.iter().any(|known| known == capability),
            None => capability != "thinking",
        }
    }
}

impl Server {
    /// Returns the server at a connection's base URL, or the default one. Sends no request.
    ///
    /// # Examples
    /// ```no_run
    /// use adjutant_providers::ollama::Server;
    /// use adjutant_providers::{Connection, Transport};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::new(&Connection::new(Transport::new()?))?;
    /// for model in server.models().await? {
    ///     println!("{}", model.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] for a base URL that is not http(s).
    pub fn new(connection: &Connection) -> Result<Self, ModelError> {
        Self::at(&connection.base(NAME, BASE_URL)?, connection)
    }

    pub(super) fn at(base: &Url, connection: &Connection) -> Result<Self, ModelError> {
        let provider = model_id(NAME, NAME)?.provider;
        // Refuses a base that is not http(s) here, instead of in every request.
        endpoint(&provider, base, "version")?;
        Ok(Self {
            provider,
            base: base.clone(),
            headers: vendor::headers(connection),
            timeout: connection.timeout.unwrap_or(TIMEOUT),
            transport: connection.transport.clone(),
        })
    }

    /// Replaces the bound on each answer.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Returns the server's version, such as `0.33.3`. Also the way to find out if it is running.
    ///
    /// # Errors
    /// [`ModelError::Network`] or [`ModelError::Timeout`] if it is not running,
    /// [`ModelError::BadRequest`] if another kind of server answers.
    pub async fn version(&self) -> Result<String, ModelError> {
        Ok(self
            .ask::<wire::VersionResponse>("version", "", None)
            .await?
            .version)
    }

    /// Returns the installed models.
    ///
    /// # Errors
    /// As [`Server::version`].
    pub async fn models(&self) -> Result<Vec<InstalledModel>, ModelError> {
        let tags: wire::TagsResponse = self.ask("tags", "", None).await?;
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

    /// Returns the server's description of a model.
    ///
    /// # Errors
    /// As [`Server::version`], and [`ModelError::NotFound`] if it does not have the model.
    pub async fn show(&self, model: &str) -> Result<ModelInfo, ModelError> {
        let body = Bytes::from(json!({ "model": model }).to_string());
        let shown: wire::ShowResponse = self.ask("show", model, Some(body)).await?;
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
        let request = HttpRequest {
            time_left: Some(self.timeout),
            ..self.request(path, model, body)?
        };
        let answer =
            self.transport
                .send_json(request)
                .await
                .map_err(|failure| match failure.error {
                    ModelError::NotFound { message, .. } if model.is_empty() => {
                        self.not_ollama(&message)
                    }
                    error => explain(error, &self.base),
                })?;
        serde_json::from_str(&answer).map_err(|error| self.not_ollama(&error.to_string()))
    }

    fn request(
        &self,
        path: &str,
        model: &str,
        body: Option<Bytes>,
    ) -> Result<HttpRequest, ModelError> {
        let vendor = Arc::new(Vendor {
            model: ModelId {
                provider: self.provider.clone(),
                name: model.to_owned(),
            },
            ..vendor::vendor(if model.is_empty() { "MODEL" } else { model })?
        });
        Ok(HttpRequest {
            target: Arc::new(Target::new(
                &vendor,
                endpoint(&self.provider, &self.base, path)?,
                &self.headers,
            )),
            vendor,
            headers: Vec::new(),
            body,
            timeouts: ReadTimeouts::fixed(self.timeout),
            time_left: None,
            trace: None,
        })
    }

    /// Sends a request whose answer is streamed.
    pub(super) async fn stream(
        &self,
        path: &str,
        model: &str,
        body: Bytes,
    ) -> Result<(Arc<Vendor>, ByteStream), ModelError> {
        let request = self.request(path, model, Some(body))?;
        let vendor = request.vendor.clone();
        let stream = self.transport.send_stream(request).await;
        let stream = stream.map_err(|failure| explain(failure.error, &self.base))?;
        Ok((vendor, stream))
    }

    /// Deletes a model from the server.
    ///
    /// # Errors
    /// [`ModelError::NotFound`] if the server does not have it, and those of [`Server::version`].
    pub async fn remove(&self, model: &str) -> Result<(), ModelError> {
        let body = Bytes::from(json!({ "model": model }).to_string());
        let request = self.request("delete", model, Some(body))?;
        self.transport
            .delete(request)
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

/// Returns the URL of an API path. A base that ends in `/api`, or in the `/v1` of the server's
/// OpenAI-compatible API, gets no second one.
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

/// Adds to an error what the user can do about a server that cannot be reached.
pub(super) fn explain(error: ModelError, base: &Url) -> ModelError {
    match error {
        ModelError::Network {
            provider,
            message,
            source,
        } => ModelError::Network {
            provider,
            source,
            message: format!(
                "{message}. Is Ollama running at {base}? Start it with `ollama serve`, or say where it is with OLLAMA_HOST"
            ),
        },
        error => error,
    }
}

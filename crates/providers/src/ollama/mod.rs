//! Ollama: `/api/chat` of a server on the user's own machine.
//!
//! Not the server's OpenAI-shaped route: that one ignores `num_ctx`, and a prompt over the server's
//! small default is then cut at its beginning, the instruction and the tools first (`ollama#17889`,
//! `ollama#18107`).
//!
//! Source: <https://docs.ollama.com/api> and the types of the vendor's Python client 0.6.3 (checked
//! 2026-11-22).

mod error; // what an error body says
mod family; // what differs between models
mod host; // where a server is
mod pull; // having a model fetched
mod request; // core to wire
mod response; // wire to core
mod server; // what a server says of itself and its models
mod stream; // lines to deltas
#[cfg(test)]
mod tests;
mod window; // what the server did not read
mod wire; // the vendor's JSON

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{BoxFuture, Capabilities, GenerateRequest, GenerateResponse, ModelError};
use reqwest::header::{AUTHORIZATION, HeaderName};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::OnceCell;
use url::Url;

use crate::adapter::{Framing, HttpModel, Wire};
use crate::connection::{Connection, is_on_this_machine, model_id};
use crate::decode::{Asked, LineStream, StreamDecoder};
use crate::encode::Encoded;
use crate::error::Vendor;
use crate::patience::Patience;
use crate::provider::Provider;
use family::Family;
use response::Reading;
use window::Window;

pub use family::{OllamaOptions, Think};
pub use host::{InvalidHost, base_url};
pub use pull::PullProgress;
pub use server::{InstalledModel, ModelInfo, Server};

/// How long the server may take to say what a model can do; it only looks into a file.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) const PROVIDERS: &[Provider] = &[Provider {
    name: "ollama",
    aliases: &[],
    key_variable: Some("OLLAMA_API_KEY"),
    needs_key: false,
    key_advice: "A server on this machine needs no key; for https://ollama.com set OLLAMA_API_KEY.",
    base_url_variable: Some("OLLAMA_HOST"),
    model_variable: Some("OLLAMA_MODEL"),
    base_url: "http://localhost:11434",
    default_model: None,
    local: true,
    retries: 3,
    call_state: None,
    open: |row, name, connection| open(row, name, connection, OllamaOptions::default()),
}];

/// A model of an Ollama server, with the default options. Sends nothing.
///
/// # Errors
/// [`ModelError::BadRequest`] for a blank model name or a base URL that is not http(s).
pub fn model(name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    model_with(name, connection, OllamaOptions::default())
}

/// The same with options.
///
/// # Errors
/// As [`model`], and for a `num_ctx` of 0.
pub fn model_with(
    name: &str,
    connection: Connection,
    options: OllamaOptions,
) -> Result<HttpModel, ModelError> {
    open(&PROVIDERS[0], name, connection, options)
}

/// The same, and asks the server first what the model is: its capabilities are then its own, such
/// as a window that is smaller than `num_ctx`, and not the most that it may have. A server that
/// does not answer within a few seconds is asked again before the first request.
///
/// # Errors
/// As [`model_with`]. That the server or the model is not there is no error yet.
pub async fn model_asked(
    name: &str,
    connection: Connection,
    options: OllamaOptions,
) -> Result<HttpModel, ModelError> {
    let (vendor, wire) = wire(&PROVIDERS[0], name, &connection, options)?;
    wire.probe(PROBE_TIMEOUT, &connection).await;
    let capabilities = wire.capabilities();
    let patience = Patience::with_own_server(&connection);
    Ok(HttpModel::new(
        vendor,
        capabilities,
        patience,
        wire,
        connection,
    ))
}

fn open(
    row: &Provider,
    name: &str,
    connection: Connection,
    options: OllamaOptions,
) -> Result<HttpModel, ModelError> {
    let (vendor, wire) = wire(row, name, &connection, options)?;
    let capabilities = wire.capabilities();
    let patience = Patience::with_own_server(&connection);
    Ok(HttpModel::new(
        vendor,
        capabilities,
        patience,
        wire,
        connection,
    ))
}

fn wire(
    row: &Provider,
    name: &str,
    connection: &Connection,
    options: OllamaOptions,
) -> Result<(Arc<Vendor>, Ollama), ModelError> {
    let vendor = Arc::new(vendor(row, name)?);
    if options.num_ctx == 0 {
        let message = "num_ctx must be at least 1 (OllamaOptions::num_ctx)".to_owned();
        return Err(ModelError::BadRequest {
            provider: vendor.model.provider.clone(),
            message,
        });
    }
    let base = row.base(connection)?;
    let url = server::endpoint(&vendor.model.provider, &base, "chat")?;
    let headers = headers(connection);
    let wire = Ollama {
        headers,
        url,
        base,
        options,
        probed: OnceCell::new(),
        vendor: vendor.clone(),
    };
    Ok((vendor, wire))
}

/// A model that the server on this machine passes on to the vendor's own. Source:
/// <https://docs.ollama.com/cloud>.
fn is_cloud_model(name: &str) -> bool {
    name.ends_with("-cloud") || name.ends_with(":cloud")
}

/// The vendor's own servers.
fn is_cloud(base: &Url) -> bool {
    base.host_str()
        .is_some_and(|host| host == "ollama.com" || host.ends_with(".ollama.com"))
}

fn vendor(row: &Provider, name: &str) -> Result<Vendor, ModelError> {
    let model = model_id(row.name, name)?;
    Ok(Vendor {
        key_advice: row.key_advice.to_owned(),
        model_advice: format!("To install it: ollama pull {}", model.name),
        complaint: error::complaint,
        model,
    })
}

fn headers(connection: &Connection) -> Vec<(HeaderName, SecretString)> {
    let bearer = |key: SecretString| {
        (
            AUTHORIZATION,
            format!("Bearer {}", key.expose_secret()).into(),
        )
    };
    connection.optional_key().map(bearer).into_iter().collect()
}

struct Ollama {
    vendor: Arc<Vendor>,
    url: Url,
    base: Url,
    headers: Vec<(HeaderName, SecretString)>,
    options: OllamaOptions,
    /// What the server says of the model and of itself; inside `None`: it does not say.
    probed: OnceCell<Option<Probed>>,
}

struct Probed {
    model: ModelInfo,
    version: Option<String>,
}

impl Ollama {
    fn family(&self) -> Family {
        Family::of(&self.options, self.known().map(|known| &known.model))
    }

    /// As far as they are known: else the most that the model may have.
    fn capabilities(&self) -> Capabilities {
        let self_hosted = !is_cloud(&self.base) && !is_cloud_model(&self.vendor.model.name);
        let local = self_hosted && is_on_this_machine(&self.base);
        let known = self.known().is_some();
        let family = if known {
            self.family().common
        } else {
            Family::at_most(&self.options)
        };
        let window = u32::try_from(self.window().tokens).unwrap_or(u32::MAX);
        Capabilities {
            context_window: window,
            local,
            self_hosted,
            ..family.capabilities()
        }
    }

    /// Asks the server once what the model can do. Not being known is no failure of anything.
    async fn probe(&self, within: Duration, connection: &Connection) {
        if !self.options.probe {
            return;
        }
        let Ok(server) = Server::at(&self.base, connection).map(|server| server.within(within))
        else {
            return;
        };
        let probe = async || match server.show(&self.vendor.model.name).await {
            Ok(model) => Ok(Some(Probed {
                model,
                version: server.version().await.ok(),
            })),
            // It may be there next time.
            Err(ModelError::Network { .. } | ModelError::Timeout { .. }) => Err(()),
            // Another kind of server, or no such model, which the answer says better.
            Err(_) => Ok(None),
        };
        let _ = self.probed.get_or_try_init(probe).await;
    }

    /// The window, if this is a server that can be told not to cut a prompt. Older ones do not know
    /// the word and read on.
    fn uncut(&self) -> Option<u64> {
        self.known()
            .and_then(|known| known.version.as_ref())
            .map(|_| self.window().tokens)
    }

    fn known(&self) -> Option<&Probed> {
        self.probed.get()?.as_ref()
    }

    fn window(&self) -> Window {
        let of_model = self.known().and_then(|known| known.model.context_length);
        let version = self.known().and_then(|known| known.version.as_deref());
        Window {
            tokens: of_model
                .unwrap_or(u64::MAX)
                .min(self.options.num_ctx.into()),
            counts_all: version.is_none_or(window::counts_all),
        }
    }
}

impl Wire for Ollama {
    fn encode(&self, request: &GenerateRequest, streamed: bool) -> Result<Encoded, ModelError> {
        let window = self.uncut().filter(|_| !request.config.verbatim);
        request::encode(
            request,
            &self.vendor.model,
            &self.family(),
            &self.options,
            window,
            streamed,
        )
    }

    fn url(&self, _: bool) -> &Url {
        &self.url
    }

    fn headers(&self) -> &[(HeaderName, SecretString)] {
        &self.headers
    }

    /// A request that is passed on as it is stays the only one.
    fn prepare<'a>(
        &'a self,
        request: &'a GenerateRequest,
        connection: &'a Connection,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if request.config.verbatim {
                return;
            }
            // Most of the caller's time is for the answer.
            let left = request
                .time_left
                .map_or(PROBE_TIMEOUT, |left| PROBE_TIMEOUT.min(left / 4));
            self.probe(left, connection).await;
        })
    }

    fn asked(&self, request: &GenerateRequest) -> Asked {
        Asked {
            tools: request.tools.clone(),
            prompt: window::length(&request.messages),
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
            Reading::new(self.vendor.clone(), asked, self.window(), losses),
        )
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn decoder(&self, asked: &Asked, losses: Vec<String>) -> Box<dyn StreamDecoder> {
        LineStream::boxed(Reading::new(
            self.vendor.clone(),
            asked,
            self.window(),
            losses,
        ))
    }

    fn explain(&self, error: ModelError) -> ModelError {
        server::explain(error, &self.base)
    }
}

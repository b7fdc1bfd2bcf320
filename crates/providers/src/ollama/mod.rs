//! Ollama models: `/api/chat` of a server on the user's own machine.
//!
//! The server's OpenAI-compatible route is not used: it ignores `num_ctx`, and a prompt over the
//! server's small default is then cut at its beginning, the instruction and the tools first
//! (`ollama#17889`, `ollama#18107`).
//!
//! Source: <https://docs.ollama.com/api> and the types of the vendor's Python client 0.6.3 (checked
//! 2026-11-22).

mod error; // parses error bodies
mod family; // OllamaOptions; limits and settings of a model
mod host; // parses OLLAMA_HOST
mod pull; // downloads models
mod request; // encodes requests
mod response; // decodes answers
mod server; // Server: version, models, deletion
#[cfg(test)]
mod tests;
mod vendor; // name, address and key of servers
mod window; // detects prompts that the server cut
mod wire; // the API's JSON types

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{BoxFuture, Capabilities, GenerateRequest, ModelError};
use tokio::sync::OnceCell;
use tracing::debug;
use url::Url;

use crate::adapter::{Endpoint, Framing, HttpModel, Wire};
use crate::address::is_on_this_machine;
use crate::connection::Connection;
use crate::decode::{AnswerFold, RequestContext};
use crate::encode::Encoded;
use crate::error::Vendor;
use crate::provider::Provider;
use crate::read_timeout::ReadTimeouts;
use family::Family;
use response::PartialAnswer;
use window::Window;

pub use family::{OllamaOptions, Think};
pub use host::{InvalidHost, base_url};
pub use pull::PullProgress;
pub use server::{InstalledModel, ModelInfo, Server};

/// The bound on a request for a model's capabilities; the server only reads a file for it.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) const PROVIDERS: &[Provider] = &[Provider {
    name: vendor::NAME,
    aliases: &[],
    key_variable: Some("OLLAMA_API_KEY"),
    needs_key: false,
    key_advice: vendor::KEY_ADVICE,
    base_url_variable: Some("OLLAMA_HOST"),
    model_variable: Some("OLLAMA_MODEL"),
    base_url: vendor::BASE_URL,
    default_model: None,
    local: true,
    stores_unless_told: false,
    retries: 3,
    call_state: None,
    open: |row, name, connection| open(row, name, connection, OllamaOptions::default()),
}];

/// Opens a model of an Ollama server, with the default options. Sends no request.
///
/// # Examples
/// ```no_run
/// use adjutant_core::{GenerateRequest, LanguageModel, Message};
/// use adjutant_providers::{Connection, Transport, ollama};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// // Ollama on this machine needs no key.
/// let connection = Connection::new(Transport::new()?);
/// let model = ollama::model("qwen3:8b", connection)?;
///
/// let request = GenerateRequest::new(vec![Message::user("Hello!")?]);
/// println!("{}", model.generate(&request).await?.text());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ModelError::BadRequest`] for a blank model name or a base URL that is not http(s).
pub fn model(name: &str, connection: Connection) -> Result<HttpModel, ModelError> {
    model_with(name, connection, OllamaOptions::default())
}

/// Opens a model of an Ollama server, with the given options. Sends no request.
///
/// # Errors
/// Those of [`model`], and [`ModelError::BadRequest`] for a `num_ctx` of 0.
pub fn model_with(
    name: &str,
    connection: Connection,
    options: OllamaOptions,
) -> Result<HttpModel, ModelError> {
    open(&PROVIDERS[0], name, connection, options)
}

/// Opens a model and asks the server for its capabilities first, so that they are the model's own
/// (such as a context window smaller than `num_ctx`) instead of upper bounds. If the server does
/// not answer within a few seconds, it is asked again before the first request.
///
/// # Errors
/// Those of [`model_with`]. A missing server or model is no error yet.
pub async fn model_asked(
    name: &str,
    connection: Connection,
    options: OllamaOptions,
) -> Result<HttpModel, ModelError> {
    let wire = open_wire(&PROVIDERS[0], name, &connection, options)?;
    wire.probe(PROBE_TIMEOUT, &connection).await;
    wire.into_model(connection)
}

fn open(
    row: &Provider,
    name: &str,
    connection: Connection,
    options: OllamaOptions,
) -> Result<HttpModel, ModelError> {
    open_wire(row, name, &connection, options)?.into_model(connection)
}

fn open_wire(
    row: &Provider,
    name: &str,
    connection: &Connection,
    options: OllamaOptions,
) -> Result<Ollama, ModelError> {
    let vendor = Arc::new(vendor::vendor(name)?);
    if options.num_ctx == 0 {
        let message = "num_ctx must be at least 1 (OllamaOptions::num_ctx)".to_owned();
        return Err(ModelError::BadRequest {
            provider: vendor.model.provider.clone(),
            message,
        });
    }
    Ok(Ollama {
        vendor,
        base: row.base(connection)?,
        options,
        probed: OnceCell::new(),
    })
}

/// Returns true for models that a server on this machine forwards to the vendor's own. Source:
/// <https://docs.ollama.com/cloud>.
fn is_cloud_model(name: &str) -> bool {
    name.ends_with("-cloud") || name.ends_with(":cloud")
}

/// Returns true for the vendor's own servers.
fn is_cloud(base: &Url) -> bool {
    base.host_str()
        .is_some_and(|host| host == "ollama.com" || host.ends_with(".ollama.com"))
}

struct Ollama {
    vendor: Arc<Vendor>,
    base: Url,
    options: OllamaOptions,
    /// The server's description of the model and itself; `None` inside if it gave none.
    probed: OnceCell<Option<Probed>>,
}

struct Probed {
    model: ModelInfo,
    version: Option<String>,
}

impl Ollama {
    fn into_model(self, connection: Connection) -> Result<HttpModel, ModelError> {
        let url = server::endpoint(&self.vendor.model.provider, &self.base, "chat")?;
        let endpoint = Endpoint {
            vendor: self.vendor.clone(),
            urls: [url.clone(), url],
            headers: vendor::headers(&connection),
            capabilities: self.capabilities(),
            timeouts: ReadTimeouts::for_self_hosted(connection.timeout),
        };
        Ok(HttpModel::new(endpoint, self, connection))
    }

    fn family(&self) -> Family {
        Family::new(&self.options, self.known().map(|known| &known.model))
    }

    /// Returns the capabilities that are known, else upper bounds for them.
    fn capabilities(&self) -> Capabilities {
        let self_hosted = !is_cloud(&self.base) && !is_cloud_model(&self.vendor.model.name);
        // A server on this machine may pass a cloud model's prompts on, so its address is not
        // enough.
        let local = self_hosted && is_on_this_machine(&self.base);
        let known = self.known().is_some();
        let family = if known {
            self.family().common
        } else {
            Family::upper_bounds(&self.options)
        };
        let window = u32::try_from(self.window().tokens).unwrap_or(u32::MAX);
        Capabilities {
            context_window: window,
            local,
            self_hosted,
            ..family.capabilities()
        }
    }

    /// Asks the server once for the model's capabilities. A failure is not reported: the request
    /// that follows fails with a better error.
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
            // The server may be reachable next time.
            Err(ModelError::Network { .. } | ModelError::Timeout { .. }) => Err(()),
            // Another kind of server, or an unknown model, which the answer reports better.
            Err(error) => {
                debug!(model = %self.vendor.model, %error, "the server does not describe the model");
                Ok(None)
            }
        };
        // The error only keeps the cell empty, so that the next request asks again.
        let _ = self.probed.get_or_try_init(probe).await;
    }

    /// Returns the window, if this server can be asked not to cut a prompt. Older ones do not know
    /// the setting and ignore it.
    fn enforceable_window(&self) -> Option<u64> {
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
        let window = self
            .enforceable_window()
            .filter(|_| !request.config.verbatim);
        request::encode(
            request,
            &self.vendor.model,
            &self.family(),
            &self.options,
            window,
            streamed,
        )
    }

    /// Looks up the model's capabilities. Not for a verbatim request, which must stay the only one.
    fn prepare<'a>(
        &'a self,
        request: &'a GenerateRequest,
        connection: &'a Connection,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if request.config.verbatim {
                return;
            }
            // Most of the caller's time is reserved for the answer.
            let left = request
                .time_left
                .map_or(PROBE_TIMEOUT, |left| PROBE_TIMEOUT.min(left / 4));
            self.probe(left, connection).await;
        })
    }

    fn request_context(&self, request: &GenerateRequest) -> RequestContext {
        RequestContext {
            tools: request.tools.clone(),
            prompt: window::prompt_length(&request.messages),
        }
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn answer(&self, context: &RequestContext, losses: Vec<String>) -> Box<dyn AnswerFold> {
        Box::new(PartialAnswer::new(
            self.vendor.clone(),
            context,
            self.window(),
            losses,
        ))
    }

    /// Adds the server's address and how to start it.
    fn explain(&self, error: ModelError) -> ModelError {
        server::explain(error, &self.base)
    }
}

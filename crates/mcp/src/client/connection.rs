//! One connection to a server, from the handshake to its end.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::Peer;
use rmcp::model::{ErrorCode, PaginatedRequestParams, ProtocolVersion, Tool};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, QuitReason, RoleClient,
    RunningServiceCancellationToken, ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport};
use secrecy::ExposeSecret as _;
use tokio::task::JoinHandle;

use super::config::{Child, Remote};
use super::failure::{transport_words, words};
use super::handler::Handler;
use super::process::{Children, Process};
use super::{ServerConfig, Via};

/// Tools of one server. They are all in every request to the model, so nobody wants that many.
pub(super) const TOOLS_MAX: usize = 512;
/// Pages of a list of tools. A server that pages for ever is stopped.
const PAGES_MAX: usize = 100;
/// How long taking leave of a remote server may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// A server that answers.
pub(super) struct Connection {
    /// What requests are sent through.
    pub(super) peer: Peer<RoleClient>,
    leave: Option<RunningServiceCancellationToken>,
    running: JoinHandle<String>,
    process: Option<Process>,
}

/// What a server said when it was greeted.
pub(super) struct Greeting {
    /// Its name and version.
    pub(super) software: Option<String>,
    /// Its tools, at most [`TOOLS_MAX`].
    pub(super) tools: Vec<Tool>,
    /// Whether there are more.
    pub(super) more: bool,
}

/// What connecting needs beside the configuration.
#[derive(Clone)]
pub(super) struct Means {
    pub(super) http: Option<reqwest::Client>,
    pub(super) handler: Handler,
    pub(super) children: Arc<Children>,
}

impl Connection {
    /// Starts the server if need be, shakes hands and asks for its tools, all within the bound.
    ///
    /// # Errors
    /// Why it is not there, in words for whoever configured it.
    pub(super) async fn open(
        config: &ServerConfig,
        means: &Means,
    ) -> Result<(Self, Greeting), String> {
        let old = ClientLifecycleMode::Initialize;
        match Self::open_as(config, means, old).await {
            // A server of a protocol without this handshake says so with an error of the protocol.
            Err(Refused {
                words,
                of_handshake: true,
            }) => {
                let preferred_versions = vec![ProtocolVersion::NO_INITIALIZE];
                let new = ClientLifecycleMode::Discover { preferred_versions };
                Self::open_as(config, means, new).await.map_err(|_| words)
            }
            opened => opened.map_err(|refused| refused.words),
        }
    }

    async fn open_as(
        config: &ServerConfig,
        means: &Means,
        lifecycle: ClientLifecycleMode,
    ) -> Result<(Self, Greeting), Refused> {
        match &config.via {
            Via::Child(child) => Self::start(config, child, means, lifecycle).await,
            Via::Remote(remote) => {
                let client = means.http.clone();
                let client = client.ok_or_else(|| {
                    Refused::because("there is nothing to reach remote servers with")
                })?;
                let transport = http(remote, client)?;
                greeted(config, means, transport, lifecycle, None).await
            }
        }
    }

    async fn start(
        config: &ServerConfig,
        child: &Child,
        means: &Means,
        lifecycle: ClientLifecycleMode,
    ) -> Result<(Self, Greeting), Refused> {
        let spawned = Process::spawn(child, &means.handler.log, &means.children);
        let (process, (read, write)) = spawned.map_err(|error| cannot_start(child, &error))?;
        // The reader in front of it bounds lines, and says so.
        let transport = AsyncRwTransport::new(read, write).with_max_line_length(usize::MAX);
        greeted(config, means, transport, lifecycle, Some(process)).await
    }

    /// Waits for its end, and says why. Dropping the future loses nothing.
    pub(super) async fn ended(&mut self) -> String {
        let why = (&mut self.running)
            .await
            .unwrap_or_else(|error| error.to_string());
        match &mut self.process {
            Some(process) => process.explain().await,
            None => why,
        }
    }

    /// Takes leave, and makes sure that a child is gone.
    pub(super) async fn close(mut self) {
        if let Some(leave) = self.leave.take() {
            leave.cancel();
        }
        let _ = tokio::time::timeout(FAREWELL, &mut self.running).await;
        if let Some(process) = self.process.take() {
            process.finish().await;
        }
    }
}

/// Why a connection did not come about.
struct Refused {
    words: String,
    /// The server answered the handshake itself with an error.
    of_handshake: bool,
}

impl Refused {
    fn because(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            of_handshake: false,
        }
    }
}

/// The system says the same of a program and of a folder that is not there.
fn cannot_start(child: &Child, error: &io::Error) -> Refused {
    let program = child.program.display();
    let missing = error.kind() == io::ErrorKind::NotFound;
    Refused::because(match &child.directory {
        Some(directory) if missing && !directory.is_dir() => {
            format!(
                "the folder it is to start in, {}, is not there",
                directory.display()
            )
        }
        Some(_) | None if missing => {
            format!("{program} cannot be started: there is no such program")
        }
        Some(_) | None => format!("{program} cannot be started: {error}"),
    })
}

async fn greeted<T, E, A>(
    config: &ServerConfig,
    means: &Means,
    transport: T,
    lifecycle: ClientLifecycleMode,
    mut process: Option<Process>,
) -> Result<(Connection, Greeting), Refused>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let greeting = async {
        let running = serve_client_with_lifecycle(means.handler.clone(), transport, lifecycle)
            .await
            .map_err(|error| handshake_failed(&error))?;
        let (tools, more) = list(running.peer()).await.map_err(|error| {
            Refused::because(format!("it does not list its tools: {}", words(&error)))
        })?;
        Ok((running, tools, more))
    };
    let limit = config.start_timeout;
    // Kept until its failure is explained: dropped, it closes the child's input, and the child's
    // end explains nothing.
    let mut greeting = Box::pin(greeting);
    let greeted = tokio::time::timeout(limit, &mut greeting)
        .await
        .unwrap_or_else(|_| {
            let seconds = limit.as_secs_f64();
            Err(Refused::because(format!(
                "no answer to the handshake within {seconds} s (start_timeout)"
            )))
        });
    match greeted {
        Ok((running, tools, more)) => {
            let peer = running.peer().clone();
            let software = peer.peer_info().and_then(|info| info.server_info.clone());
            let software =
                software.map(|software| format!("{} {}", software.name, software.version));
            let leave = Some(running.cancellation_token());
            let running = tokio::spawn(async move {
                match running.waiting().await {
                    Ok(QuitReason::Closed) => "the connection was closed".to_owned(),
                    Ok(other) => format!("the connection ended: {other:?}"),
                    Err(error) => error.to_string(),
                }
            });
            Ok((
                Connection {
                    peer,
                    leave,
                    running,
                    process,
                },
                Greeting {
                    software,
                    tools,
                    more,
                },
            ))
        }
        Err(mut refused) => {
            if let Some(process) = &mut process {
                refused.words = format!("{}; {}", refused.words, process.explain().await);
            }
            Err(refused)
        }
    }
}

fn handshake_failed(error: &ClientInitializeError) -> Refused {
    match error {
        ClientInitializeError::JsonRpcError(error) => Refused {
            words: format!("it refuses the handshake: {}", error.message),
            of_handshake: true,
        },
        ClientInitializeError::ConnectionClosed(_) => {
            Refused::because("it closed the connection during the handshake")
        }
        ClientInitializeError::TransportError { error, .. } => {
            Refused::because(format!("the handshake failed: {}", transport_words(error)))
        }
        error => Refused::because(format!("the handshake failed: {error}")),
    }
}

/// All its tools, page by page. A server without tools is a server with none.
pub(super) async fn list(peer: &Peer<RoleClient>) -> Result<(Vec<Tool>, bool), ServiceError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let page = match peer.list_tools(Some(params)).await {
            Ok(page) => page,
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                break;
            }
            Err(error) => return Err(error),
        };
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() > TOOLS_MAX {
            break;
        }
    }
    let more = cursor.is_some() || tools.len() > TOOLS_MAX;
    tools.truncate(TOOLS_MAX);
    Ok((tools, more))
}

fn http(
    remote: &Remote,
    client: reqwest::Client,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, Refused> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(remote.url.as_str());
    if let Some(bearer) = &remote.bearer {
        config = config.auth_header(bearer.expose_secret());
    }
    let mut headers = std::collections::HashMap::new();
    for (name, value) in &remote.headers {
        let unusable = || {
            Refused::because(format!(
                "the header {name:?} is not one that HTTP can carry"
            ))
        };
        let mut content = HeaderValue::from_str(value.expose_secret()).map_err(|_| unusable())?;
        content.set_sensitive(true);
        headers.insert(
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?,
            content,
        );
    }
    Ok(StreamableHttpClientTransport::with_client(
        client,
        config.custom_headers(headers),
    ))
}

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
use super::failure::{message, transport_message};
use super::handler::Handler;
use super::process::{Children, Process};
use super::{ServerConfig, Transport};

/// Most tools of one server. All of them are part of every request to the model.
pub(super) const TOOLS_MAX: usize = 512;
/// Most pages of a list of tools, so that a server cannot page endlessly.
const PAGES_MAX: usize = 100;
/// Time for closing a connection to a remote server.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// An open connection.
pub(super) struct Connection {
    /// The handle for sending requests.
    pub(super) peer: Peer<RoleClient>,
    leave: Option<RunningServiceCancellationToken>,
    running: JoinHandle<String>,
    process: Option<Process>,
}

/// The server's answer to the handshake, and its tools.
pub(super) struct ServerInfo {
    /// Name and version of the server's software.
    pub(super) software: Option<String>,
    /// The tools, at most [`TOOLS_MAX`].
    pub(super) tools: Vec<Tool>,
    /// True if the server has more tools.
    pub(super) more: bool,
}

/// Everything needed for connecting besides the configuration.
#[derive(Clone)]
pub(super) struct ConnectionSetup {
    pub(super) http: Option<reqwest::Client>,
    pub(super) handler: Handler,
    pub(super) children: Arc<Children>,
}

impl Connection {
    /// Starts the server if needed, performs the handshake and lists the tools, within
    /// `start_timeout`.
    ///
    /// # Errors
    /// A description of the failure, for the operator.
    pub(super) async fn open(
        config: &ServerConfig,
        setup: &ConnectionSetup,
    ) -> Result<(Self, ServerInfo), String> {
        let old = ClientLifecycleMode::Initialize;
        match Self::open_as(config, setup, old).await {
            // A server of a protocol version without this handshake answers it with a JSON-RPC
            // error.
            Err(ConnectError {
                message,
                in_handshake: true,
            }) => {
                let preferred_versions = vec![ProtocolVersion::NO_INITIALIZE];
                let new = ClientLifecycleMode::Discover { preferred_versions };
                Self::open_as(config, setup, new).await.map_err(|_| message)
            }
            opened => opened.map_err(|error| error.message),
        }
    }

    async fn open_as(
        config: &ServerConfig,
        setup: &ConnectionSetup,
        lifecycle: ClientLifecycleMode,
    ) -> Result<(Self, ServerInfo), ConnectError> {
        match &config.via {
            Transport::Child(child) => Self::start(config, child, setup, lifecycle).await,
            Transport::Remote(remote) => {
                let client = setup.http.clone();
                let client = client.ok_or_else(|| {
                    ConnectError::new("there is nothing to reach remote servers with")
                })?;
                let transport = http(remote, client)?;
                handshake(config, setup, transport, lifecycle, None).await
            }
        }
    }

    async fn start(
        config: &ServerConfig,
        child: &Child,
        setup: &ConnectionSetup,
        lifecycle: ClientLifecycleMode,
    ) -> Result<(Self, ServerInfo), ConnectError> {
        let spawned = Process::spawn(child, &setup.handler.log, &setup.children);
        let (process, (read, write)) = spawned.map_err(|error| cannot_start(child, &error))?;
        // The reader in front of it bounds lines, and logs longer ones.
        let transport = AsyncRwTransport::new(read, write).with_max_line_length(usize::MAX);
        handshake(config, setup, transport, lifecycle, Some(process)).await
    }

    /// Waits for the end of the connection and returns the reason. Cancel safe.
    pub(super) async fn wait_for_end(&mut self) -> String {
        let why = (&mut self.running)
            .await
            .unwrap_or_else(|error| error.to_string());
        match &mut self.process {
            Some(process) => process.explain().await,
            None => why,
        }
    }

    /// Closes the connection, and makes sure that a child process has ended.
    pub(super) async fn close(mut self) {
        if let Some(leave) = self.leave.take() {
            leave.cancel();
        }
        // A server that does not answer the end of its session is left.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, &mut self.running).await;
        if let Some(process) = self.process.take() {
            process.finish().await;
        }
    }
}

/// The reason for which a connection could not be made.
struct ConnectError {
    message: String,
    /// True if the server answered the handshake itself with an error.
    in_handshake: bool,
}

impl ConnectError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            in_handshake: false,
        }
    }
}

/// Explains a failed start. The system's error is the same for a missing program and a missing
/// working directory.
fn cannot_start(child: &Child, error: &io::Error) -> ConnectError {
    let program = child.program.display();
    let missing = error.kind() == io::ErrorKind::NotFound;
    ConnectError::new(match &child.directory {
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

async fn handshake<T, E, A>(
    config: &ServerConfig,
    setup: &ConnectionSetup,
    transport: T,
    lifecycle: ClientLifecycleMode,
    mut process: Option<Process>,
) -> Result<(Connection, ServerInfo), ConnectError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let info = async {
        let running = serve_client_with_lifecycle(setup.handler.clone(), transport, lifecycle)
            .await
            .map_err(|error| handshake_failed(&error))?;
        let (tools, more) = list(running.peer()).await.map_err(|error| {
            ConnectError::new(format!("it does not list its tools: {}", message(&error)))
        })?;
        Ok((running, tools, more))
    };
    let limit = config.start_timeout;
    // Kept until its failure is explained: dropping it closes the child's input, and the exit that
    // follows explains nothing.
    let mut info = Box::pin(info);
    let handshake = tokio::time::timeout(limit, &mut info)
        .await
        .unwrap_or_else(|_| {
            let seconds = limit.as_secs_f64();
            Err(ConnectError::new(format!(
                "no answer to the handshake within {seconds} s (start_timeout)"
            )))
        });
    match handshake {
        Ok((running, tools, more)) => {
            let peer = running.peer().clone();
            let software = peer.peer_info().and_then(|info| info.server_info.clone());
            let software =
                software.map(|software| format!("{} {}", software.name, software.version));
            // Cancels the service from outside after it has moved into its task.
            let leave = Some(running.cancellation_token());
            // The service must be polled for the connection to make progress, also while no call
            // waits.
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
                ServerInfo {
                    software,
                    tools,
                    more,
                },
            ))
        }
        Err(mut error) => {
            if let Some(process) = &mut process {
                error.message = format!("{}; {}", error.message, process.explain().await);
            }
            Err(error)
        }
    }
}

fn handshake_failed(error: &ClientInitializeError) -> ConnectError {
    match error {
        ClientInitializeError::JsonRpcError(error) => ConnectError {
            message: format!("it refuses the handshake: {}", error.message),
            in_handshake: true,
        },
        ClientInitializeError::ConnectionClosed(_) => {
            ConnectError::new("it closed the connection during the handshake")
        }
        ClientInitializeError::TransportError { error, .. } => ConnectError::new(format!(
            "the handshake failed: {}",
            transport_message(error)
        )),
        error => ConnectError::new(format!("the handshake failed: {error}")),
    }
}

/// Lists the server's tools, page by page. A server without the method has none.
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
    // A server that pages endlessly has more, too.
    let more = cursor.is_some() || tools.len() > TOOLS_MAX;
    tools.truncate(TOOLS_MAX);
    Ok((tools, more))
}

fn http(
    remote: &Remote,
    client: reqwest::Client,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, ConnectError> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(remote.url.as_str());
    if let Some(bearer) = &remote.bearer {
        config = config.auth_header(bearer.expose_secret());
    }
    let mut headers = std::collections::HashMap::new();
    for (name, value) in &remote.headers {
        // The library's errors say no more than this, and the value may be a secret.
        let unusable = || {
            ConnectError::new(format!(
                "the header {name:?} is not one that HTTP can carry"
            ))
        };
        let mut content = HeaderValue::from_str(value.expose_secret()).map_err(|_| unusable())?;
        // Kept out of the debug output of the HTTP library.
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

//! One connection to a server, from the handshake to its end.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
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
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::config::{Child, Remote};
use super::failure::{message, transport_message};
use super::handler::Handler;
use super::http::{HttpClient, RESERVED_HEADERS, speaks_old_sse};
use super::process::{Children, Process};
use super::{ServerConfig, Transport};
use crate::lock::lock;

/// Most tools of one server. All of them are part of every request to the model.
pub(super) const TOOLS_MAX: usize = 512;
/// Most pages of a list of tools, so that a server cannot page endlessly, with or without tools.
const PAGES_MAX: usize = 100;
/// Most characters of a server's instructions, which are part of every request to the model.
const INSTRUCTIONS_MAX: usize = 2_000;
/// Times that `start_timeout` is waited at most for a server that gives signs of life.
const LIMITS_MAX: u32 = 10;
/// Time between two looks at what a starting server does.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Time for the question whether a server speaks the older HTTP+SSE.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
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
    /// Its description of its tools as a whole, at most [`INSTRUCTIONS_MAX`] characters.
    pub(super) instructions: Option<String>,
    /// The server's tools.
    pub(super) listed: ListedTools,
}

/// A server's list of tools.
#[derive(Default)]
pub(super) struct ListedTools {
    /// The tools, at most [`TOOLS_MAX`].
    pub(super) tools: Vec<Tool>,
    /// The reason for which there may be more.
    pub(super) cut: Option<String>,
}

/// Everything needed for connecting besides the configuration.
#[derive(Clone)]
pub(super) struct ConnectionSetup {
    pub(super) http: Option<reqwest::Client>,
    pub(super) handler: Handler,
    pub(super) children: Arc<Children>,
    /// Lets a few servers start at a time: programs that are started together slow each other down.
    pub(super) starts: Arc<Semaphore>,
    /// Notified when a call needs the server, which then does not wait for its turn.
    pub(super) needed: Arc<Notify>,
}

impl Connection {
    /// Starts the server if needed, performs the handshake and lists the tools. `silent` is called
    /// with a description when the server has given no sign of life for `start_timeout`; it is
    /// waited for nevertheless, ten times as long in all.
    ///
    /// # Errors
    /// A description of the failure, for the operator.
    pub(super) async fn open(
        config: &ServerConfig,
        setup: &ConnectionSetup,
        silent: &(dyn Fn(String) + Sync),
    ) -> Result<(Self, ServerInfo), String> {
        let place = tokio::select! {
            // Only closed with the program.
            place = setup.starts.clone().acquire_owned() => place.ok(),
            () = setup.needed.notified() => None,
        };
        let place = Mutex::new(place);
        let silent = |reason| {
            // The next server's turn: this one may take long.
            drop(lock(&place).take());
            silent(reason);
        };
        let preferred_versions = vec![ProtocolVersion::NO_INITIALIZE];
        match &config.via {
            Transport::Child(_) => {
                // The older handshake first: some programs end at a message before it.
                let old = ClientLifecycleMode::Initialize;
                let error = match Self::open_as(config, setup, old, &silent).await {
                    Ok(opened) => return Ok(opened),
                    Err(error) if !error.in_handshake => return Err(error.message),
                    Err(error) => error.message,
                };
                // A server of a protocol version without it answers with a JSON-RPC error.
                let new = ClientLifecycleMode::Discover { preferred_versions };
                let newer = Self::open_as(config, setup, new, &silent).await;
                newer.map_err(|newer| both_reasons(&error, &newer.message))
            }
            Transport::Remote(remote) => {
                let auto = ClientLifecycleMode::Auto {
                    preferred_versions,
                    legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
                };
                let error = match Self::open_as(config, setup, auto, &silent).await {
                    Ok(opened) => return Ok(opened),
                    Err(error) if error.is_other_answer => {
                        let old = ClientLifecycleMode::Initialize;
                        let older = Self::open_as(config, setup, old, &silent).await;
                        return older.map_err(|older| both_reasons(&older.message, &error.message));
                    }
                    Err(error) => error,
                };
                if let (true, Some(client)) = (error.in_handshake, &setup.http)
                    && is_old_sse(remote, client).await
                {
                    return Err(
                        "it speaks the older HTTP+SSE, which is not supported; many servers have another address for \
                         Streamable HTTP, often one that ends in /mcp"
                            .to_owned(),
                    );
                }
                Err(error.message)
            }
        }
    }

    async fn open_as(
        config: &ServerConfig,
        setup: &ConnectionSetup,
        lifecycle: ClientLifecycleMode,
        silent: &(dyn Fn(String) + Sync),
    ) -> Result<(Self, ServerInfo), ConnectError> {
        match &config.via {
            Transport::Child(child) => Self::start(config, child, setup, lifecycle, silent).await,
            Transport::Remote(remote) => {
                let client = setup.http.clone();
                let client = client.ok_or_else(|| {
                    ConnectError::new("there is nothing to reach remote servers with")
                })?;
                let transport = http(remote, client)?;
                handshake(config, setup, transport, lifecycle, None, silent).await
            }
        }
    }

    async fn start(
        config: &ServerConfig,
        child: &Child,
        setup: &ConnectionSetup,
        lifecycle: ClientLifecycleMode,
        silent: &(dyn Fn(String) + Sync),
    ) -> Result<(Self, ServerInfo), ConnectError> {
        let spawned = Process::spawn(child, &setup.handler.log, &setup.children);
        let (process, (read, write)) = spawned.map_err(|error| cannot_start(child, &error))?;
        // The reader in front of it bounds lines, and logs longer ones.
        let transport = AsyncRwTransport::new(read, write).with_max_line_length(usize::MAX);
        handshake(config, setup, transport, lifecycle, Some(process), silent).await
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
    /// True if it answered with something else, as servers do that answer a method they do not know
    /// with an empty result.
    is_other_answer: bool,
}

impl ConnectError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            in_handshake: false,
            is_other_answer: false,
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
    silent: &(dyn Fn(String) + Sync),
) -> Result<(Connection, ServerInfo), ConnectError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let is_greeted = AtomicBool::new(false);
    let unanswered = || match is_greeted.load(Ordering::Relaxed) {
        true => "no answer to the request for its tools",
        false => "no answer to the handshake",
    };
    let info = async {
        let running = serve_client_with_lifecycle(setup.handler.clone(), transport, lifecycle)
            .await
            .map_err(|error| handshake_failed(&error))?;
        is_greeted.store(true, Ordering::Relaxed);
        let listed = list(running.peer()).await.map_err(|error| {
            ConnectError::new(format!("it does not list its tools: {}", message(&error)))
        })?;
        Ok((running, listed))
    };
    let limit = config.start_timeout;
    // Kept until its failure is explained: dropping it closes the child's input, and the exit that
    // follows explains nothing.
    let mut info = Box::pin(info);
    let activity = |process: &Option<Process>| process.as_ref().map_or(0, Process::activity);
    let began = Instant::now();
    let mut last_sign = (began, activity(&process));
    let mut is_told = false;
    let handshake = loop {
        let looked = tokio::time::timeout(limit.min(LOOK_INTERVAL), &mut info).await;
        if let Ok(ended) = looked {
            break ended;
        }
        let now = activity(&process);
        if now != last_sign.1 {
            last_sign = (Instant::now(), now);
        }
        let seconds = limit.as_secs_f64();
        if !is_told && last_sign.0.elapsed() >= limit {
            is_told = true;
            let mut reason = format!(
                "{}, and no sign of life for {seconds} s (start_timeout)",
                unanswered()
            );
            if let Some(process) = &mut process {
                reason = format!("{reason}; {}", process.explain().await);
            }
            silent(reason);
        }
        if began.elapsed() >= limit * LIMITS_MAX {
            let seconds = (limit * LIMITS_MAX).as_secs_f64();
            break Err(ConnectError::new(format!(
                "{} within {seconds} s ({LIMITS_MAX} times start_timeout)",
                unanswered()
            )));
        }
    };
    match handshake {
        Ok((running, listed)) => {
            let peer = running.peer().clone();
            let software = peer.peer_info().and_then(|info| info.server_info.clone());
            let software =
                software.map(|software| format!("{} {}", software.name, software.version));
            let instructions = peer.peer_info().and_then(|info| info.instructions.clone());
            let instructions = instructions.as_deref().and_then(bounded_instructions);
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
                    instructions,
                    listed,
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

/// Returns instructions without control characters other than line breaks; `None` if they say
/// nothing.
fn bounded_instructions(text: &str) -> Option<String> {
    let plain = |letter: &char| *letter == '\n' || !letter.is_control();
    let text: String = text.trim().chars().filter(plain).collect();
    if text.is_empty() {
        return None;
    }
    if text.chars().count() <= INSTRUCTIONS_MAX {
        return Some(text);
    }
    let begins: String = text.chars().take(INSTRUCTIONS_MAX).collect();
    Some(format!("{begins} … (cut)"))
}

/// Joins the reasons for which the older handshake failed, and that of newer servers.
fn both_reasons(older: &str, newer: &str) -> String {
    format!("{older}; and the handshake of newer servers, server/discover: {newer}")
}

fn handshake_failed(error: &ClientInitializeError) -> ConnectError {
    match error {
        ClientInitializeError::JsonRpcError(error) => ConnectError {
            message: format!("it refuses the handshake: {}", error.message),
            in_handshake: true,
            is_other_answer: false,
        },
        ClientInitializeError::LegacyFallbackFailed { discover, fallback } => ConnectError {
            message: both_reasons(
                &handshake_failed(fallback).message,
                &handshake_failed(discover).message,
            ),
            in_handshake: true,
            is_other_answer: false,
        },
        ClientInitializeError::ConnectionClosed(_) => {
            ConnectError::new("it closed the connection during the handshake")
        }
        ClientInitializeError::TransportError { error, .. } => ConnectError::new(format!(
            "the handshake failed: {}",
            transport_message(error)
        )),
        ClientInitializeError::ExpectedInitResult(_) => ConnectError {
            is_other_answer: true,
            ..ConnectError::new(format!("the handshake failed: {error}"))
        },
        error => ConnectError::new(format!("the handshake failed: {error}")),
    }
}

/// Lists the server's tools, page by page. A server without the method has none.
pub(super) async fn list(peer: &Peer<RoleClient>) -> Result<ListedTools, ServiceError> {
    let mut tools: Vec<Tool> = Vec::new();
    let mut cursor: Option<String> = None;
    let mut cursors = HashSet::new();
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let page = match peer.list_tools(Some(params)).await {
            Ok(page) => page,
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                break;
            }
            Err(error) => return Err(error),
        };
        cursor = page.next_cursor;
        let repeats = (cursor.as_ref()).is_some_and(|cursor| !cursors.insert(cursor.clone()));
        // A page that leads to itself is the same page again.
        let is_known = |tool: &Tool| repeats && tools.contains(tool);
        let new: Vec<Tool> = page
            .tools
            .into_iter()
            .filter(|tool| !is_known(tool))
            .collect();
        tools.extend(new);
        if repeats {
            let cut = "the pages of its list of tools lead in a circle; there may be more tools";
            return Ok(ListedTools {
                tools,
                cut: Some(cut.to_owned()),
            });
        }
        if cursor.is_none() || tools.len() > TOOLS_MAX {
            break;
        }
    }
    let more = match cursor {
        _ if tools.len() > TOOLS_MAX => Some(format!("it has more than {TOOLS_MAX} tools")),
        Some(_) => Some(format!("its list of tools has more than {PAGES_MAX} pages")),
        None => None,
    };
    tools.truncate(TOOLS_MAX);
    Ok(ListedTools {
        tools,
        cut: more.map(|more| format!("{more}; only the first are looked at")),
    })
}

/// Returns true if a server of the older HTTP+SSE answers at this address.
async fn is_old_sse(remote: &Remote, client: &reqwest::Client) -> bool {
    let Ok(headers) = headers(remote) else {
        return false;
    };
    let token = remote.bearer.as_ref().map(|token| token.expose_secret());
    let asked = speaks_old_sse(client, &remote.url, token, headers);
    tokio::time::timeout(PROBE_TIMEOUT, asked)
        .await
        .unwrap_or(false)
}

fn http(
    remote: &Remote,
    client: reqwest::Client,
) -> Result<StreamableHttpClientTransport<HttpClient>, ConnectError> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(remote.url.as_str());
    if let Some(bearer) = &remote.bearer {
        config = config.auth_header(bearer.expose_secret());
    }
    let config = config.custom_headers(headers(remote)?);
    Ok(StreamableHttpClientTransport::with_client(
        HttpClient::new(client),
        config,
    ))
}

/// Returns the configured headers.
fn headers(remote: &Remote) -> Result<HashMap<HeaderName, HeaderValue>, ConnectError> {
    let mut headers = HashMap::new();
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
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
        if RESERVED_HEADERS.contains(&name.as_str()) {
            return Err(ConnectError::new(format!(
                "the header {name} belongs to the protocol"
            )));
        }
        headers.insert(name, content);
    }
    Ok(headers)
}

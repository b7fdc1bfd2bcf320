//! One server: its connection is supervised, restored after a loss, and used for calls.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::{Arguments, CancellationToken, Schema, ToolContext, ToolError};
use rmcp::Peer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientNotification, ClientRequest,
    CustomNotification, ErrorCode, ErrorData, RequestId, RequestParamsMeta as _, ServerResult,
    Tool,
};
use rmcp::service::{PeerRequestOptions, RoleClient, ServiceError};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::connection::{Connection, ConnectionSetup, ListedTools, ServerInfo, list};
use super::definition::one_line;
use super::failure::{is_certainly_unsent, is_lost_with_session, message, transport_message};
use super::pins::{Accepted, definition_digest};
use super::reads::is_unannotated_read;
use super::{ChangedTool, Health, PinnedTools, Pins, ServerConfig, ServerName, Transport, result};
use crate::extension;
use crate::lock::lock;

/// Time to wait for an answer after a call was cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// Most names of changed tools in a notice.
const NAMED_MAX: usize = 10;
/// Most characters of a name in a notice.
const NAME_MAX: usize = 64;
/// Most characters of the reason for which a result does not fit.
const REASON_MAX: usize = 200;
/// Most characters of a server's words about a call that it refuses.
const REFUSAL_MAX: usize = 1_000;
/// The default of a turn's `tool_timeout`. A call that waits for its server must end earlier.
const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// A server and its state.
pub(super) struct Server {
    pub(super) config: ServerConfig,
    setup: ConnectionSetup,
    state: watch::Sender<State>,
    /// The tools offered when they were registered, and now.
    offered: Mutex<Offered>,
    pins: Option<Arc<dyn Pins>>,
    /// Notified when there is a notice for a person.
    has_notices: Arc<Notify>,
    /// Notified when a call needs a server that has failed.
    restart_requested: Notify,
    stop: CancellationToken,
}

/// Receives what came of a first start.
type FirstNews = oneshot::Sender<Result<ListedTools, String>>;

#[derive(Clone)]
enum State {
    Connected(Peer<RoleClient>),
    Down(Health),
}

impl State {
    fn health(&self) -> Health {
        match self {
            Self::Connected(_) => Health::Connected,
            Self::Down(health) => health.clone(),
        }
    }
}

#[derive(Default)]
struct Offered {
    software: Option<String>,
    /// The registered tools: as they were accepted, if they are pinned.
    tools: Vec<Tool>,
    /// The last list of tools, `None` before the first.
    now: Option<Vec<Tool>>,
    /// Names of tools that were added, removed or changed since.
    changed: BTreeSet<String>,
    /// The instructions that the model gets: as they were accepted, if they are pinned.
    instructions: Option<String>,
    /// The instructions of the last handshake.
    instructions_now: Option<String>,
    /// Tools that only read, by the person's word. `None`: the person was not asked.
    trusted_reads: Option<BTreeSet<String>>,
    /// Tools whose results did not fit their output schemas.
    odd_results: BTreeSet<String>,
    /// Notices that were not taken yet.
    notices: Vec<String>,
    /// The notice of the last change of tools. Only one is kept: a server may change them all the
    /// time.
    change: Option<String>,
}

impl Server {
    pub(super) fn new(
        config: ServerConfig,
        setup: ConnectionSetup,
        pins: Option<Arc<dyn Pins>>,
        has_notices: Arc<Notify>,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let (state, _) = watch::channel(State::Down(Health::Disabled));
        let (offered, restart_requested) = (Mutex::default(), Notify::new());
        Arc::new(Self {
            config,
            setup,
            state,
            offered,
            pins,
            has_notices,
            restart_requested,
            stop,
        })
    }

    /// Starts and supervises the server. Returns the tools to register. A server that has pinned tools and is not required is started in the
    /// background.
    ///
    /// # Errors
    /// The reason for which it could not be started, or is not waited for.
    pub(super) async fn start(self: &Arc<Self>) -> Result<ListedTools, String> {
        let pinned = match &self.config.unusable {
            Some(reason) => Err(reason.clone()),
            None => self.pinned(),
        };
        let pinned = pinned.inspect_err(|reason| self.set_failed(reason))?;
        if let Some(accepted) = &pinned {
            let mut offered = lock(&self.offered);
            offered.tools.clone_from(&accepted.tools);
            offered.instructions.clone_from(&accepted.instructions);
            offered.trusted_reads.clone_from(&accepted.trusted_reads);
            drop(offered);
            // A person has agreed to these tools before, so the agent need not wait for the server.
            if !self.config.required {
                self.set_health(Health::Starting);
                tokio::spawn(Arc::clone(self).start_in_background());
                return Ok(ListedTools {
                    tools: accepted.tools.clone(),
                    cut: None,
                });
            }
        }
        let (told, first_news) = oneshot::channel();
        let is_pinned = pinned.is_some();
        tokio::spawn(Arc::clone(self).start_first(is_pinned, Mutex::new(Some(told))));
        let listed = first_news
            .await
            .unwrap_or_else(|_| Err("stopped".to_owned()))?;
        Ok(match pinned {
            Some(accepted) => ListedTools {
                tools: accepted.tools,
                cut: None,
            },
            None => listed,
        })
    }

    /// Connects for the first time while the agent waits: until it is told what came of it, or that
    /// the server is silent.
    async fn start_first(self: Arc<Self>, is_pinned: bool, told: Mutex<Option<FirstNews>>) {
        let silent = |reason: String| {
            self.set_failed(&reason);
            if let Some(told) = lock(&told).take() {
                // The agent may have been stopped meanwhile.
                let _ = told.send(Err(reason));
            }
        };
        let opened = tokio::select! {
            opened = Connection::open(&self.config, &self.setup, &silent) => opened,
            () = self.stop.cancelled() => {
                self.set_health(Health::Stopped);
                return;
            }
        };
        let told = lock(&told).take();
        let (connection, info) = match opened {
            Ok(opened) => opened,
            Err(reason) => {
                self.set_failed(&reason);
                match told {
                    Some(told) => drop(told.send(Err(reason))),
                    None => self.notify(format!("did not start: {reason}")),
                }
                return;
            }
        };
        let listed = ListedTools {
            tools: info.listed.tools.clone(),
            cut: info.listed.cut.clone(),
        };
        if !is_pinned {
            // Before `handshake`, which compares the present tools with these.
            let mut offered = lock(&self.offered);
            offered.tools.clone_from(&listed.tools);
            offered.instructions.clone_from(&info.instructions);
            drop(offered);
            self.pin(&listed.tools, info.instructions.as_deref());
        }
        self.handshake(info);
        self.set_connected(&connection);
        match told {
            Some(told) => drop(told.send(Ok(listed))),
            None => self.notify(format!(
                "has started now; its {} can be used after the next start of adjutant",
                count(listed.tools.len())
            )),
        }
        self.supervise(connection).await;
    }

    /// Connects for the first time while the pinned tools are registered already.
    async fn start_in_background(self: Arc<Self>) {
        let was_silent = AtomicBool::new(false);
        let silent = |reason: String| {
            was_silent.store(true, Ordering::Relaxed);
            self.set_failed(&reason);
            self.notify(format!(
                "is not there yet, its tools cannot be used: {reason}"
            ));
        };
        let opened = tokio::select! {
            opened = Connection::open(&self.config, &self.setup, &silent) => opened,
            () = self.stop.cancelled() => {
                self.set_health(Health::Stopped);
                return;
            }
        };
        let connection = match opened {
            Ok((connection, info)) => {
                self.handshake(info);
                if was_silent.load(Ordering::Relaxed) {
                    self.notify("has started now".to_owned());
                }
                Some(connection)
            }
            Err(reason) => {
                self.notify(format!("did not start, its tools cannot be used: {reason}"));
                let mut attempts = self.config.backoff.attempts_max;
                self.reconnect(reason, &mut attempts).await
            }
        };
        match connection {
            Some(connection) => {
                self.set_connected(&connection);
                self.supervise(connection).await;
            }
            None => self.set_health(Health::Stopped),
        }
    }

    fn set_health(&self, health: Health) {
        self.state.send_replace(State::Down(health));
    }

    fn set_connected(&self, connection: &Connection) {
        self.state
            .send_replace(State::Connected(connection.peer.clone()));
    }

    fn set_failed(&self, reason: &str) {
        info!(server = %self.config.name, reason, "the MCP server did not start");
        self.set_health(Health::Failed {
            reason: reason.to_owned(),
        });
    }

    /// Loads what was accepted, `None` if nothing was.
    ///
    /// # Errors
    /// The stored tools cannot be read.
    fn pinned(&self) -> Result<Option<Accepted>, String> {
        let Some(pins) = &self.pins else {
            return Ok(None);
        };
        let unreadable = |reason| {
            let how = pins.how_to_accept(&self.config.name);
            format!(
                "what was agreed to of its tools cannot be read ({reason}); to agree to them anew: {how}"
            )
        };
        match pins.load(&self.config.name).map_err(unreadable)? {
            Some(pinned) => pinned.accepted(&self.config).map_err(unreadable),
            None => Ok(None),
        }
    }

    /// Pins the tools and instructions of the first start.
    fn pin(&self, tools: &[Tool], instructions: Option<&str>) {
        let Some(pins) = &self.pins else { return };
        let pinned = PinnedTools::new(&self.config, tools, instructions);
        let also = match instructions {
            Some(_) => ", and what it tells the model about them",
            None => "",
        };
        let notices = match pins.save(&self.config.name, &pinned) {
            Ok(()) if tools.len() == 1 => format!("its 1 tool is accepted as it is now{also}"),
            Ok(()) => format!(
                "its {} are accepted as they are now{also}",
                count(tools.len())
            ),
            Err(reason) => {
                format!(
                    "that its tools were agreed to cannot be kept, and a change of them will not be noticed: {reason}"
                )
            }
        };
        self.notify(notices);
    }

    fn notify(&self, notices: String) {
        lock(&self.offered).notices.push(notices);
        self.has_notices.notify_one();
    }

    fn handshake(&self, info: ServerInfo) {
        info!(
            server = %self.config.name,
            software = info.software.as_deref().unwrap_or("unknown"),
            tools = info.listed.tools.len(),
            "connected to the MCP server"
        );
        let mut offered = lock(&self.offered);
        offered.software = info.software;
        offered.instructions_now = info.instructions;
        let is_changed = offered.instructions_now != offered.instructions;
        drop(offered);
        if let (true, Some(pins)) = (is_changed, &self.pins) {
            self.notify(format!(
                "what it tells the model about its tools has changed since it was agreed to, and is not used; to look at the change and agree to it: {}",
                pins.how_to_accept(&self.config.name)
            ));
        }
        self.compare(info.listed.tools);
    }

    /// Takes the notices for a person.
    pub(super) fn take_notices(&self) -> Vec<String> {
        let mut offered = lock(&self.offered);
        let mut notices = std::mem::take(&mut offered.notices);
        notices.extend(offered.change.take());
        notices
    }

    /// Returns the tools that differ from those registered, and all present tools to be accepted.
    /// Both are of one moment, so that a person accepts only what was shown. `None`: the server has
    /// not listed its tools.
    pub(super) fn changes(&self) -> Option<(Vec<ChangedTool>, PinnedTools)> {
        let offered = lock(&self.offered);
        let now = offered.now.as_deref()?;
        let find = |tools: &[Tool], name: &str| {
            tools
                .iter()
                .find(|tool| tool.name == name)
                .map(|tool| json!(tool))
        };
        let changed = offered.changed.iter().map(|name| ChangedTool {
            name: name.clone(),
            before: find(&offered.tools, name),
            now: find(now, name),
        });
        let mut changed: Vec<ChangedTool> = changed.collect();
        if offered.instructions != offered.instructions_now {
            let text =
                |text: &Option<String>| text.as_ref().map(|text| json!({"description": text}));
            changed.push(ChangedTool {
                name: "what it tells the model about its tools".to_owned(),
                before: text(&offered.instructions),
                now: text(&offered.instructions_now),
            });
        }
        let mut pinned = PinnedTools::new(&self.config, now, offered.instructions_now.as_deref());
        pinned.trusted_reads = offered.trusted_reads.clone().map(|mut reads| {
            // A tool that has changed is another one.
            reads.retain(|name| !offered.changed.contains(name));
            reads
        });
        Some((changed, pinned))
    }

    /// Returns the instructions for the model: as they were accepted, if they are pinned.
    pub(super) fn instructions(&self) -> Option<String> {
        lock(&self.offered).instructions.clone()
    }

    /// Returns the tools that only read by the person's word. `None`: the person was not asked.
    pub(super) fn trusted_reads(&self) -> Option<BTreeSet<String>> {
        lock(&self.offered).trusted_reads.clone()
    }

    /// Returns the registered tools that say by their names that they only read, and that nobody
    /// says anything about.
    pub(super) fn unannotated_reads(&self) -> BTreeSet<String> {
        let offered = lock(&self.offered);
        let reads = offered
            .tools
            .iter()
            .filter(|tool| is_unannotated_read(tool, &self.config.rules));
        reads.map(|tool| tool.name.to_string()).collect()
    }

    /// Stores the person's answer about the tools that say that they only read.
    ///
    /// # Errors
    /// Nothing is pinned, or the answer cannot be stored.
    pub(super) fn trust_reads(&self, reads: BTreeSet<String>) -> Result<(), String> {
        let pins = self.pins.as_ref().ok_or("nothing is kept")?;
        let name = &self.config.name;
        let mut pinned = pins.load(name)?.ok_or("its tools were not accepted")?;
        pinned.trusted_reads = Some(reads.clone());
        pins.save(name, &pinned)?;
        lock(&self.offered).trusted_reads = Some(reads);
        Ok(())
    }

    /// Returns an open connection for a question of the person.
    ///
    /// # Errors
    /// The state of a server that is not there.
    pub(super) async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(Peer<RoleClient>) -> Result<T, String>,
    ) -> Result<T, String> {
        let peer = self.peer().await?;
        let limit = self.config.timeout.unwrap_or(USUAL_TIMEOUT);
        match tokio::time::timeout(limit, question(peer)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} s", limit.as_secs_f64())),
        }
    }

    pub(super) fn health(&self) -> Health {
        self.state.borrow().health()
    }

    /// Waits for a state.
    pub(super) async fn wait_for(&self, wanted: impl Fn(&Health) -> bool) {
        let mut states = self.state.subscribe();
        // The sender lives in `self`, so the channel is open.
        let _ = states.wait_for(|state| wanted(&state.health())).await;
    }

    pub(super) fn software(&self) -> Option<String> {
        lock(&self.offered).software.clone()
    }

    pub(super) fn changed(&self) -> Vec<String> {
        lock(&self.offered).changed.iter().cloned().collect()
    }

    /// Returns the program, or the URL without user, password and query.
    pub(super) fn place(&self) -> String {
        match &self.config.via {
            Transport::Child(child) => child.program.display().to_string(),
            Transport::Remote(remote) => match reqwest::Url::parse(&remote.url) {
                Ok(mut url) => {
                    // Both fail only for a URL that can have neither, such as `data:`.
                    let _ = url.set_username("");
                    let _ = url.set_password(None);
                    url.set_query(None);
                    url.set_fragment(None);
                    url.to_string()
                }
                Err(_) => "not an address".to_owned(),
            },
        }
    }

    /// Calls a tool, with the context's trace in `_meta`. `harmless`: the tool changes nothing, so
    /// a lost answer is no doubt.
    ///
    /// When cancelled, it notifies the server and, unless the tool is harmless, waits a little for
    /// an answer. When dropped, it notifies the server.
    ///
    /// # Errors
    /// [`ToolError::Failed`] or [`ToolError::Invalid`] if the call was not carried out or the
    /// server reports an error; [`ToolError::Unknown`] if the request was sent and no answer came.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Arguments,
        harmless: bool,
        context: &ToolContext,
    ) -> Result<Value, ToolError> {
        let server = &self.config.name;
        debug!(%server, tool, "calling a tool of the MCP server");
        self.check_unchanged(tool)?;
        let peer = self.peer().await.map_err(|reason| {
            warn!(%server, tool, error = reason, "the MCP server is not there; the call was not sent");
            ToolError::failed(format!(
                "the MCP server {server} is not there ({reason}); nothing was sent to it"
            ))
        })?;
        // The server may have been restarted while this call waited, and may have listed other
        // tools.
        self.check_unchanged(tool)?;
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(trace) = &context.trace {
            params.set_traceparent(&trace.traceparent());
            trace
                .tracestate()
                .into_iter()
                .for_each(|state| params.set_tracestate(state));
        }
        if is_adjutant(&peer) {
            let conversation = context.conversation.to_string();
            params
                .meta_mut()
                .get_or_insert_default()
                .insert(extension::CALLED_IN.to_owned(), conversation.into());
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await;
        // The queue in front of the connection was closed, so the request did not leave this
        // process.
        let handle = sent.map_err(|_| {
            ToolError::failed(format!(
                "the MCP server {server} has just gone; nothing was sent to it"
            ))
        })?;
        // Kept until the answer: dropping it ends the subscription.
        let _subscription = self
            .setup
            .handler
            .progress
            .subscribe(handle.progress_token.clone(), context.progress.clone());
        let mut cancel_on_drop = CancelOnDrop {
            request: Some((peer, handle.id.clone())),
        };
        let mut answer = handle.rx;
        tokio::select! {
            answer = &mut answer => {
                cancel_on_drop.request = None;
                return self.decode_answer(tool, answer, harmless);
            }
            () = context.cancelled.cancelled() => {}
        }
        let stopped = format!("{tool} of the MCP server {server}: it was stopped");
        if harmless {
            // A harmless call is not in doubt, so its end need not be awaited.
            drop(cancel_on_drop);
            return Err(unanswered(&stopped, harmless));
        }
        cancel_on_drop.cancel().await;
        match tokio::time::timeout(CANCEL_TIMEOUT, answer).await {
            // An error says that the call stopped, not how far it had come.
            Ok(Ok(Ok(answer))) => self.decode_answer(tool, Ok(Ok(answer)), harmless),
            Ok(_) => Err(unanswered(&format!("{stopped} half-way"), harmless)),
            Err(_) => {
                let message = format!("{stopped}, and the server did not say what became of it");
                Err(unanswered(&message, harmless))
            }
        }
    }

    /// Checks that the tool is the one that was registered.
    ///
    /// # Errors
    /// The tool was changed or removed since.
    fn check_unchanged(&self, tool: &str) -> Result<(), ToolError> {
        if !lock(&self.offered).changed.contains(tool) {
            return Ok(());
        }
        let server = &self.config.name;
        Err(ToolError::failed(match &self.pins {
            Some(pins) => format!(
                "the MCP server {server} has changed or removed its tool {tool} since it was agreed to, so it was not called; \
                 the person can look at the change and agree to it: {}",
                pins.how_to_accept(server)
            ),
            None => format!(
                "the MCP server {server} has changed or removed its tool {tool} since this agent was started; \
                 the agent has to be started again to use it"
            ),
        }))
    }

    /// Tells once for each tool that its result does not fit its own output schema. The result
    /// counts nevertheless: the call was carried out.
    fn check_output(&self, tool: &str, answer: &CallToolResult) {
        let (Some(data), None | Some(false)) = (&answer.structured_content, answer.is_error) else {
            return;
        };
        let schema = {
            let offered = lock(&self.offered);
            let found = offered.tools.iter().find(|known| known.name == tool);
            found.and_then(|tool| tool.output_schema.clone())
        };
        let Some(schema) = schema else { return };
        // One that cannot be used promises nothing.
        let Ok(schema) = Schema::compile(&Value::Object((*schema).clone())) else {
            return;
        };
        if let Err(error) = schema.check(data)
            && lock(&self.offered).odd_results.insert(tool.to_owned())
        {
            let error: String = one_line(&error).chars().take(REASON_MAX).collect();
            self.notify(format!(
                "a result of {tool} does not fit the output schema of the tool, and was used all the same: {error}"
            ));
        }
    }

    fn decode_answer(
        &self,
        tool: &str,
        answer: Result<Result<ServerResult, ServiceError>, oneshot::error::RecvError>,
        harmless: bool,
    ) -> Result<Value, ToolError> {
        let server = &self.config.name;
        let message = match answer {
            Ok(Ok(ServerResult::CallToolResult(answer))) => {
                self.check_output(tool, &answer);
                return result::decode(answer, self.config.result_bytes_max);
            }
            // A tool that returns nothing, from a server that leaves out `content`.
            Ok(Ok(ServerResult::EmptyResult(_))) => return Ok(json!([])),
            Ok(Ok(ServerResult::InputRequiredResult(_))) => {
                return Err(ToolError::failed(format!(
                    "{tool} asks for further input, which is not given here; it was not carried out"
                )));
            }
            Ok(Ok(ServerResult::CreateTaskResult(_))) => format!(
                "the MCP server {server} carries {tool} out later, which cannot be followed here"
            ),
            Ok(Ok(_)) => format!("the MCP server {server} gave {tool} an answer that is none"),
            Ok(Err(ServiceError::McpError(error))) if is_lost_with_session(&error) => format!(
                "the session with the MCP server {server} was lost before {tool} was answered"
            ),
            Ok(Err(ServiceError::McpError(error))) => {
                return Err(refused(server, &error));
            }
            Ok(Err(ServiceError::TransportSend(error))) if is_certainly_unsent(&error) => {
                return Err(ToolError::failed(format!(
                    "the MCP server {server} did not take the request ({}); it was not carried out",
                    transport_message(&error)
                )));
            }
            Ok(Err(error)) => {
                let error = message(&error);
                warn!(%server, tool, error, "the MCP server did not answer");
                self.setup.handler.log.write(&error);
                format!("the MCP server {server} did not answer {tool} ({error})")
            }
            Err(_) => {
                warn!(%server, tool, "the MCP server ended before it answered");
                format!("the MCP server {server} ended before it answered {tool}")
            }
        };
        Err(unanswered(&message, harmless))
    }

    /// Returns an open connection, waiting for one if the server is being started.
    async fn peer(&self) -> Result<Peer<RoleClient>, String> {
        let limit = self.config.timeout.unwrap_or(USUAL_TIMEOUT);
        // Half of the call's time at most, so that some is left for the call itself.
        let patience = self.config.start_timeout.min(limit / 2);
        let mut states = self.state.subscribe();
        let given_up = matches!(
            &*states.borrow_and_update(),
            State::Down(Health::Failed { .. })
        );
        let settled = async {
            if given_up {
                self.restart_requested.notify_one();
                // The state changes from failed to restarting first.
                let _ = states.changed().await;
            }
            states
                .wait_for(|state| match state {
                    State::Connected(peer) => !peer.is_transport_closed(),
                    State::Down(health) => {
                        !matches!(health, Health::Restarting { .. } | Health::Starting)
                    }
                })
                .await
                .map(|state| state.clone())
        };
        match tokio::time::timeout(patience, settled).await {
            Ok(Ok(State::Connected(peer))) => Ok(peer),
            Ok(Ok(State::Down(health))) => Err(health.to_string()),
            Ok(Err(_)) => Err("stopped".to_owned()),
            Err(_) => Err(format!(
                "{}; waited {} s for it",
                self.health(),
                patience.as_secs_f64()
            )),
        }
    }

    /// Supervises a connection, and reconnects after a loss.
    async fn supervise(self: Arc<Self>, mut connection: Connection) {
        let mut attempts = 0;
        loop {
            let began = Instant::now();
            let reason = loop {
                tokio::select! {
                    reason = connection.wait_for_end() => break reason,
                    () = self.setup.handler.tools_changed.notified() => self.reload_tools(&connection.peer).await,
                    () = self.stop.cancelled() => {
                        connection.close().await;
                        self.set_health(Health::Stopped);
                        return;
                    }
                }
            };
            self.setup.handler.log.write(&format!("lost: {reason}"));
            // Without this, a server that crashes once a day would be given up after some days.
            if began.elapsed() >= self.config.backoff.good_after {
                attempts = 0;
            }
            // `None` only after `stop`, at which the supervision ends.
            let Some(next) = self.reconnect(reason, &mut attempts).await else {
                self.set_health(Health::Stopped);
                return;
            };
            connection = next;
            self.set_connected(&connection);
        }
    }

    /// Reconnects; after too many failures, waits until a call needs the server. `None`: stopped.
    async fn reconnect(&self, mut reason: String, attempts: &mut u32) -> Option<Connection> {
        loop {
            let pause = if *attempts < self.config.backoff.attempts_max {
                *attempts += 1;
                self.set_health(Health::Restarting {
                    reason: reason.clone(),
                });
                let pause = self.config.backoff.pause(*attempts);
                info!(server = %self.config.name, attempt = *attempts, ?pause, reason, "reconnecting to the MCP server");
                pause
            } else {
                self.set_health(Health::Failed {
                    reason: reason.clone(),
                });
                tokio::select! {
                    () = self.restart_requested.notified() => {}
                    () = self.stop.cancelled() => return None,
                }
                self.set_health(Health::Restarting {
                    reason: reason.clone(),
                });
                Duration::ZERO
            };
            let opened = async {
                tokio::time::sleep(pause).await;
                // A call that waits for the server says how long it has waited.
                Connection::open(&self.config, &self.setup, &|_| {}).await
            };
            tokio::select! {
                opened = opened => match opened {
                    Ok((connection, info)) => {
                        self.handshake(info);
                        return Some(connection);
                    }
                    Err(error) => reason = error,
                },
                () = self.stop.cancelled() => return None,
            }
        }
    }

    /// Lists the tools again. A server may announce a change without one.
    async fn reload_tools(&self, peer: &Peer<RoleClient>) {
        let listed = tokio::select! {
            listed = tokio::time::timeout(self.config.start_timeout, list(peer)) => listed,
            () = self.stop.cancelled() => return,
        };
        let problem = match listed {
            Ok(Ok(listed)) => return self.compare(listed.tools),
            Ok(Err(error)) => message(&error),
            Err(_) => "does not list its tools any more".to_owned(),
        };
        self.setup.handler.log.write(&problem);
    }

    /// Compares the present tools with those registered.
    fn compare(&self, now: Vec<Tool>) {
        let mut offered = lock(&self.offered);
        let digests = |tools: &[Tool]| -> BTreeSet<(String, String)> {
            tools
                .iter()
                .map(|tool| (tool.name.to_string(), definition_digest(tool)))
                .collect()
        };
        let (then, today) = (digests(&offered.tools), digests(&now));
        let changed: BTreeSet<String> = then
            // What is on one side only was added, removed or changed.
            .symmetric_difference(&today)
            .map(|(name, _)| name.clone())
            .collect();
        if let Some(pins) = self
            .pins
            .as_ref()
            .filter(|_| !changed.is_empty() && changed != offered.changed)
        {
            let name = |name: &String| one_line(&name.chars().take(NAME_MAX).collect::<String>());
            let names: Vec<String> = changed.iter().take(NAMED_MAX).map(name).collect();
            let more = if changed.len() > NAMED_MAX {
                ", …"
            } else {
                ""
            };
            offered.change = Some(format!(
                "tools that changed since they were agreed to are not used: {}{more}; to look at the change and agree to it: {}",
                names.join(", "),
                pins.how_to_accept(&self.config.name)
            ));
            self.has_notices.notify_one();
        }
        offered.changed = changed;
        // Both change under one lock, so that a person accepts what was compared.
        offered.now = Some(now);
    }
}

/// Returns the error of a call that the server refuses, with the server's words.
fn refused(server: &ServerName, error: &ErrorData) -> ToolError {
    let data = error.data.as_ref().map(ToString::to_string);
    let data = data.map(|data| format!(" ({data})")).unwrap_or_default();
    let words = one_line(&format!("{}{data}", error.message));
    // They go to a model and to terminals.
    let words: String = words.chars().take(REFUSAL_MAX).collect();
    if error.code == ErrorCode::INVALID_PARAMS {
        ToolError::invalid(format!(
            "the MCP server {server} refuses the arguments: {words}"
        ))
    } else {
        ToolError::failed(format!("the MCP server {server} says: {words}"))
    }
}

/// Returns the error of a call that may have been carried out. `harmless`: it changes nothing.
fn unanswered(message: &str, harmless: bool) -> ToolError {
    if harmless {
        ToolError::failed(format!(
            "{message}; it changes nothing and can be called again"
        ))
    } else {
        ToolError::Unknown {
            message: format!("{message}; it may or may not have been carried out"),
        }
    }
}

/// Returns true if the server is one of ours, which has to know the conversation of the calling
/// agent.
fn is_adjutant(peer: &Peer<RoleClient>) -> bool {
    let info = peer.peer_info();
    let experimental = info
        .as_ref()
        .and_then(|info| info.capabilities.experimental.as_ref());
    experimental.is_some_and(|known| known.contains_key(extension::SERVER))
}

fn count(tools: usize) -> String {
    if tools == 1 {
        "1 tool".to_owned()
    } else {
        format!("{tools} tools")
    }
}

/// A request that is cancelled at the server when this is dropped.
struct CancelOnDrop {
    request: Option<(Peer<RoleClient>, RequestId)>,
}

impl CancelOnDrop {
    /// Sends the cancellation by hand: the library's own function also discards an answer that
    /// still comes.
    fn cancel(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let request = self.request.take();
        async move {
            if let Some((peer, id)) = request {
                let params = json!({ "requestId": id, "reason": "nobody waits for it any more" });
                let cancelled = CustomNotification::new("notifications/cancelled", Some(params));
                let sent =
                    peer.send_notification(ClientNotification::CustomNotification(cancelled));
                // A server that has gone needs no cancellation.
                let _ = tokio::time::timeout(CANCEL_TIMEOUT, sent).await;
            }
        }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.request.is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(self.cancel());
        }
    }
}

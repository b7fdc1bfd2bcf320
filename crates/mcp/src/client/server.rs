//! One server, kept running: called, watched, brought back.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adjutant_core::{Arguments, CancellationToken, ToolContext, ToolError};
use rmcp::Peer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientNotification, ClientRequest, CustomNotification,
    ErrorCode, RequestId, RequestParamsMeta as _, ServerResult, Tool,
};
use rmcp::service::{PeerRequestOptions, RoleClient, ServiceError};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use tracing::warn;

use super::connection::{Connection, Greeting, Means, list};
use super::definition::one_line;
use super::failure::{certainly_not_sent, transport_words, words};
use super::pins::face;
use super::{ChangedTool, Health, PinnedTools, Pins, ServerConfig, Via, result};
use crate::ours;

/// How long an answer is waited for after the person stopped the call and the server was told so.
const AFTER_CANCEL: Duration = Duration::from_secs(2);
/// Changed tools whose names are told.
const NAMED_MAX: usize = 10;
/// Characters of a name that are told.
const NAME_MAX: usize = 64;
/// The turn's `tool_timeout`, if it is the usual one: a call that waits for its server must not
/// wait that long.
const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// A server and the state it is in.
pub(super) struct Server {
    pub(super) config: ServerConfig,
    means: Means,
    state: watch::Sender<State>,
    /// What it offered when its tools joined, and what it offers now.
    offered: Mutex<Offered>,
    pins: Option<Arc<dyn Pins>>,
    /// Told when there is something that a person should know.
    has_news: Arc<Notify>,
    /// A call wants it, though it was given up.
    wanted: Notify,
    stop: CancellationToken,
}

#[derive(Clone)]
enum State {
    Connected(Peer<RoleClient>),
    Down(Health),
}

#[derive(Default)]
struct Offered {
    software: Option<String>,
    /// Those that joined: as they were agreed to, if that is kept.
    tools: Vec<Tool>,
    /// Those of the last list. `None`: it has not listed any yet.
    now: Option<Vec<Tool>>,
    /// Names of tools that came, went or changed since.
    changed: BTreeSet<String>,
    /// What a person should know, and was not told yet.
    news: Vec<String>,
    /// The same of the tools that changed last: a server may change them all the time.
    change: Option<String>,
}

impl Server {
    pub(super) fn new(
        config: ServerConfig,
        means: Means,
        pins: Option<Arc<dyn Pins>>,
        has_news: Arc<Notify>,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let (state, _) = watch::channel(State::Down(Health::Disabled));
        let (offered, wanted) = (Mutex::default(), Notify::new());
        Arc::new(Self {
            config,
            means,
            state,
            offered,
            pins,
            has_news,
            wanted,
            stop,
        })
    }

    /// Starts it, and keeps it from then on. Returns the tools that join, and whether it has more
    /// than are looked at. One whose tools were agreed to before, and that is not required, is not
    /// waited for: those join.
    ///
    /// # Errors
    /// Why it is not there.
    pub(super) async fn start(self: &Arc<Self>) -> Result<(Vec<Tool>, bool), String> {
        let pinned = match &self.config.unusable {
            Some(reason) => Err(reason.clone()),
            None => self.pinned(),
        };
        let pinned = pinned.inspect_err(|reason| self.failed(reason))?;
        if let Some(tools) = &pinned {
            self.offered().tools.clone_from(tools);
            if !self.config.required {
                self.state.send_replace(State::Down(Health::Starting));
                tokio::spawn(Arc::clone(self).start_behind());
                return Ok((tools.clone(), false));
            }
        }
        let opened = Connection::open(&self.config, &self.means).await;
        let (connection, greeting) = opened.inspect_err(|reason| self.failed(reason))?;
        let (tools, more) = match pinned {
            Some(pinned) => (pinned, false),
            None => {
                self.offered().tools.clone_from(&greeting.tools);
                self.agree(&greeting.tools);
                (greeting.tools.clone(), greeting.more)
            }
        };
        self.greeted(greeting);
        self.state
            .send_replace(State::Connected(connection.peer.clone()));
        tokio::spawn(Arc::clone(self).keep(connection));
        Ok((tools, more))
    }

    /// Connects for the first time while its tools are offered already.
    async fn start_behind(self: Arc<Self>) {
        let opened = tokio::select! {
            opened = Connection::open(&self.config, &self.means) => opened,
            () = self.stop.cancelled() => {
                self.state.send_replace(State::Down(Health::Stopped));
                return;
            }
        };
        let connection = match opened {
            Ok((connection, greeting)) => {
                self.greeted(greeting);
                Some(connection)
            }
            Err(reason) => {
                self.tell(format!("did not start, its tools cannot be used: {reason}"));
                let mut attempts = self.config.backoff.attempts_max;
                self.bring_back(reason, &mut attempts).await
            }
        };
        match connection {
            Some(connection) => {
                self.state
                    .send_replace(State::Connected(connection.peer.clone()));
                self.keep(connection).await;
            }
            None => drop(self.state.send_replace(State::Down(Health::Stopped))),
        }
    }

    fn failed(&self, reason: &str) {
        self.state.send_replace(State::Down(Health::Failed {
            reason: reason.to_owned(),
        }));
    }

    /// The tools that were agreed to; `None`: nothing is kept of this server.
    ///
    /// # Errors
    /// What is kept cannot be read.
    fn pinned(&self) -> Result<Option<Vec<Tool>>, String> {
        let Some(pins) = &self.pins else {
            return Ok(None);
        };
        let unreadable = |reason| {
            let how = pins.how_to_accept(&self.config.name);
            format!(
                "what was agreed to of its tools cannot be read ({reason}); to agree to them anew: {how}"
            )
        };
        let pinned = pins.load(&self.config.name).map_err(unreadable)?;
        pinned.map_or(Ok(None), |pinned| {
            pinned.of(&self.config).map_err(unreadable)
        })
    }

    /// Keeps what it offers at its first start.
    fn agree(&self, tools: &[Tool]) {
        let Some(pins) = &self.pins else { return };
        let news = match pins.save(&self.config.name, &PinnedTools::new(&self.config, tools)) {
            Ok(()) if tools.len() == 1 => "its 1 tool is accepted as it is now".to_owned(),
            Ok(()) => format!("its {} are accepted as they are now", count(tools.len())),
            Err(reason) => {
                format!(
                    "that its tools were agreed to cannot be kept, and a change of them will not be noticed: {reason}"
                )
            }
        };
        self.tell(news);
    }

    fn tell(&self, news: String) {
        self.offered().news.push(news);
        self.has_news.notify_one();
    }

    fn greeted(&self, greeting: Greeting) {
        self.offered().software = greeting.software;
        self.compare(greeting.tools);
    }

    /// Takes what a person should know and was not told yet.
    pub(super) fn news(&self) -> Vec<String> {
        let mut offered = self.offered();
        let mut news = std::mem::take(&mut offered.news);
        news.extend(offered.change.take());
        news
    }

    /// Returns the tools that are others than those that joined, and all that it has now, to be
    /// agreed to: of one moment, so that nothing is agreed to that was not shown. `None`: it has
    /// not listed its tools.
    pub(super) fn changes(&self) -> Option<(Vec<ChangedTool>, PinnedTools)> {
        let offered = self.offered();
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
        Some((changed.collect(), PinnedTools::new(&self.config, now)))
    }

    pub(super) fn health(&self) -> Health {
        match &*self.state.borrow() {
            State::Connected(_) => Health::Connected,
            State::Down(health) => health.clone(),
        }
    }

    /// Waits until it is in a state like that.
    pub(super) async fn wait_for(&self, wanted: impl Fn(&Health) -> bool) {
        let mut states = self.state.subscribe();
        // The sender lives in `self`.
        let _ = states
            .wait_for(|state| match state {
                State::Connected(_) => wanted(&Health::Connected),
                State::Down(health) => wanted(health),
            })
            .await;
    }

    pub(super) fn software(&self) -> Option<String> {
        self.offered().software.clone()
    }

    pub(super) fn changed(&self) -> Vec<String> {
        self.offered().changed.iter().cloned().collect()
    }

    /// The program, or the address without user, password and query.
    pub(super) fn place(&self) -> String {
        match &self.config.via {
            Via::Child(child) => child.program.display().to_string(),
            Via::Remote(remote) => match reqwest::Url::parse(&remote.url) {
                Ok(mut url) => {
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

    /// Calls a tool. The context's trace goes along in `_meta`. `harmless`: nothing can have
    /// happened, whatever is not known.
    ///
    /// Cancelled, it tells the server and, unless it is harmless, waits a little for an answer;
    /// dropped, it tells the server.
    ///
    /// # Errors
    /// [`ToolError::Failed`] and [`ToolError::Invalid`] if it was not done or the server says so;
    /// [`ToolError::Unknown`] if the request was sent and no answer came.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Arguments,
        harmless: bool,
        context: &ToolContext,
    ) -> Result<Value, ToolError> {
        let server = &self.config.name;
        self.is_unchanged(tool)?;
        let peer = self.peer().await.map_err(|reason| {
            warn!(%server, tool, error = reason, "the MCP server is not there; the call was not sent");
            ToolError::failed(format!(
                "the MCP server {server} is not there ({reason}); nothing was sent to it"
            ))
        })?;
        // It may have been waited for until here, and may have listed its tools since.
        self.is_unchanged(tool)?;
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(trace) = &context.trace {
            params.set_traceparent(&trace.traceparent());
            trace
                .tracestate()
                .into_iter()
                .for_each(|state| params.set_tracestate(state));
        }
        if is_ours(&peer) {
            let conversation = context.conversation.to_string();
            params
                .meta_mut()
                .get_or_insert_default()
                .insert(ours::CALLED_IN.to_owned(), conversation.into());
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await;
        // The queue in front of the connection was closed: it did not leave this process.
        let handle = sent.map_err(|_| {
            ToolError::failed(format!(
                "the MCP server {server} has just gone; nothing was sent to it"
            ))
        })?;
        let _hearing = self
            .means
            .handler
            .progress
            .by(handle.progress_token.clone(), context.progress.clone());
        let mut abandoned = Abandoned {
            request: Some((peer, handle.id.clone())),
        };
        let mut answer = handle.rx;
        tokio::select! {
            answer = &mut answer => {
                abandoned.request = None;
                return self.answered(tool, answer, harmless);
            }
            () = context.cancelled.cancelled() => {}
        }
        let what = "it was stopped";
        if harmless {
            // Whatever became of it, nothing changed. The server is told without waiting for it.
            drop(abandoned);
            return Err(self.lost(
                &format!("{tool} of the MCP server {server}: {what}"),
                harmless,
            ));
        }
        abandoned.tell().await;
        match tokio::time::timeout(AFTER_CANCEL, answer).await {
            // An error says that it stopped, not how far it had come.
            Ok(Ok(Ok(answer))) => self.answered(tool, Ok(Ok(answer)), harmless),
            Ok(_) => Err(self.lost(&format!("{tool} of the MCP server {server}: {what} half-way"), harmless)),
            Err(_) => Err(self.lost(
                &format!(
                    "{tool} of the MCP server {server}: {what}, and the server did not say what became of it"
                ),
                harmless,
            )),
        }
    }

    /// # Errors
    /// The tool is another by now than the one that joined.
    fn is_unchanged(&self, tool: &str) -> Result<(), ToolError> {
        if !self.offered().changed.contains(tool) {
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

    fn answered(
        &self,
        tool: &str,
        answer: Result<Result<ServerResult, ServiceError>, oneshot::error::RecvError>,
        harmless: bool,
    ) -> Result<Value, ToolError> {
        let server = &self.config.name;
        match answer {
            Ok(Ok(ServerResult::CallToolResult(answer))) => {
                result::read(answer, self.config.result_bytes_max)
            }
            Ok(Ok(ServerResult::InputRequiredResult(_))) => Err(ToolError::failed(format!(
                "{tool} asks for further input, which is not given here; it was not carried out"
            ))),
            Ok(Ok(ServerResult::CreateTaskResult(_))) => Err(self.lost(
                &format!("the MCP server {server} carries {tool} out later, which cannot be followed here"),
                harmless,
            )),
            Ok(Ok(_)) => {
                Err(self
                    .lost(&format!("the MCP server {server} gave {tool} an answer that is none"), harmless))
            }
            Ok(Err(ServiceError::McpError(error))) => {
                let message = one_line(&error.message);
                let message: String = message.chars().take(1_000).collect();
                Err(if error.code == ErrorCode::INVALID_PARAMS {
                    ToolError::invalid(format!("the MCP server {server} refuses the arguments: {message}"))
                } else {
                    ToolError::failed(format!("the MCP server {server} says: {message}"))
                })
            }
            Ok(Err(ServiceError::TransportSend(error))) if certainly_not_sent(&error) => {
                Err(ToolError::failed(format!(
                    "the MCP server {server} did not take the request ({}); it was not carried out",
                    transport_words(&error)
                )))
            }
            Ok(Err(error)) => {
                let words = words(&error);
                warn!(%server, tool, error = words, "the connection to the MCP server broke before it answered");
                self.means.handler.log.say(&words);
                Err(self.lost(
                    &format!("the connection to the MCP server {server} broke before {tool} was answered"),
                    harmless,
                ))
            }
            Err(_) => {
                warn!(%server, tool, "the MCP server ended before it answered");
                Err(self.lost(&format!("the MCP server {server} ended before it answered {tool}"), harmless))
            }
        }
    }

    fn lost(&self, words: &str, harmless: bool) -> ToolError {
        if harmless {
            ToolError::failed(format!(
                "{words}; it changes nothing and can be called again"
            ))
        } else {
            ToolError::Unknown {
                message: format!("{words}; it may or may not have been carried out"),
            }
        }
    }

    /// A connection that answers, if there is one soon.
    async fn peer(&self) -> Result<Peer<RoleClient>, String> {
        let limit = self.config.timeout.unwrap_or(USUAL_TIMEOUT);
        let patience = self.config.start_timeout.min(limit / 2);
        let mut states = self.state.subscribe();
        let given_up = matches!(
            &*states.borrow_and_update(),
            State::Down(Health::Failed { .. })
        );
        let settled = async {
            if given_up {
                self.wanted.notify_one();
                // From given up to being brought back.
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

    /// Watches a connection, and makes a new one when it is lost.
    async fn keep(self: Arc<Self>, mut connection: Connection) {
        let mut attempts = 0;
        loop {
            let began = Instant::now();
            let reason = loop {
                tokio::select! {
                    reason = connection.ended() => break reason,
                    () = self.means.handler.tools_changed.notified() => self.look_again(&connection.peer).await,
                    () = self.stop.cancelled() => {
                        connection.close().await;
                        self.state.send_replace(State::Down(Health::Stopped));
                        return;
                    }
                }
            };
            self.means.handler.log.say(&format!("lost: {reason}"));
            if began.elapsed() >= self.config.backoff.good_after {
                attempts = 0;
            }
            let Some(next) = self.bring_back(reason, &mut attempts).await else {
                self.state.send_replace(State::Down(Health::Stopped));
                return;
            };
            connection = next;
            self.state
                .send_replace(State::Connected(connection.peer.clone()));
        }
    }

    /// Tries until it is there again; given up, waits for somebody who wants it. `None`: stopped.
    async fn bring_back(&self, mut reason: String, attempts: &mut u32) -> Option<Connection> {
        loop {
            let pause = if *attempts < self.config.backoff.attempts_max {
                *attempts += 1;
                self.state.send_replace(State::Down(Health::Restarting {
                    reason: reason.clone(),
                }));
                self.config.backoff.pause(*attempts)
            } else {
                self.state.send_replace(State::Down(Health::Failed {
                    reason: reason.clone(),
                }));
                tokio::select! {
                    () = self.wanted.notified() => {}
                    () = self.stop.cancelled() => return None,
                }
                self.state.send_replace(State::Down(Health::Restarting {
                    reason: reason.clone(),
                }));
                Duration::ZERO
            };
            let opened = async {
                tokio::time::sleep(pause).await;
                Connection::open(&self.config, &self.means).await
            };
            tokio::select! {
                opened = opened => match opened {
                    Ok((connection, greeting)) => {
                        self.greeted(greeting);
                        return Some(connection);
                    }
                    Err(error) => reason = error,
                },
                () = self.stop.cancelled() => return None,
            }
        }
    }

    /// Asks for the tools again: a server may say that they changed when they did not.
    async fn look_again(&self, peer: &Peer<RoleClient>) {
        let listed = tokio::select! {
            listed = tokio::time::timeout(self.config.start_timeout, list(peer)) => listed,
            () = self.stop.cancelled() => return,
        };
        match listed {
            Ok(Ok((tools, _))) => self.compare(tools),
            Ok(Err(error)) => {
                self.means.handler.log.say(&words(&error));
            }
            Err(_) => {
                self.means
                    .handler
                    .log
                    .say("does not list its tools any more");
            }
        }
    }

    /// Finds out which tools are others than those that joined.
    fn compare(&self, now: Vec<Tool>) {
        let mut offered = self.offered();
        let faces = |tools: &[Tool]| -> BTreeSet<(String, String)> {
            tools
                .iter()
                .map(|tool| (tool.name.to_string(), face(tool)))
                .collect()
        };
        let (then, today) = (faces(&offered.tools), faces(&now));
        let changed: BTreeSet<String> = then
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
            self.has_news.notify_one();
        }
        offered.changed = changed;
        offered.now = Some(now);
    }

    fn offered(&self) -> std::sync::MutexGuard<'_, Offered> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a server is one of ours, which has to know in which conversation its agent may
/// be asked by itself.
fn is_ours(peer: &Peer<RoleClient>) -> bool {
    let info = peer.peer_info();
    let experimental = info
        .as_ref()
        .and_then(|info| info.capabilities.experimental.as_ref());
    experimental.is_some_and(|known| known.contains_key(ours::SERVER))
}

fn count(tools: usize) -> String {
    if tools == 1 {
        "1 tool".to_owned()
    } else {
        format!("{tools} tools")
    }
}

/// A request nobody waits for any more: the server is told, once.
struct Abandoned {
    request: Option<(Peer<RoleClient>, RequestId)>,
}

impl Abandoned {
    /// Written out by hand: the library's own notification also throws away the answer, if one
    /// comes all the same.
    fn tell(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let request = self.request.take();
        async move {
            if let Some((peer, id)) = request {
                let params = json!({ "requestId": id, "reason": "nobody waits for it any more" });
                let told = CustomNotification::new("notifications/cancelled", Some(params));
                let told = peer.send_notification(ClientNotification::CustomNotification(told));
                // A server that has gone needs not be told.
                let _ = tokio::time::timeout(AFTER_CANCEL, told).await;
            }
        }
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        if self.request.is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(self.tell());
        }
    }
}

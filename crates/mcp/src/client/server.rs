//! One server: its connection is supervised, restored after a loss, and used for calls.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::{Arguments, CancellationToken, ToolContext, ToolError};
use rmcp::Peer;
use rmcp::model::Tool;
use rmcp::service::RoleClient;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::call::Call;
use super::connection::{Connection, ConnectionSetup, ListedTools, ServerInfo, list};
use super::failure::message;
use super::offered::Offered;
use super::pins::Accepted;
use super::{Health, PinnedTools, Pins, ServerConfig, result};
use crate::lock::lock;

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
            lock(&self.offered).register_accepted(accepted);
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
            let instructions = info.instructions.as_deref();
            lock(&self.offered).register(&listed.tools, instructions);
            self.pin(&listed.tools, instructions);
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

    fn notify(&self, notice: String) {
        lock(&self.offered).notify(notice);
        self.has_notices.notify_one();
    }

    fn handshake(&self, info: ServerInfo) {
        info!(
            server = %self.config.name,
            software = info.software.as_deref().unwrap_or("unknown"),
            tools = info.listed.tools.len(),
            "connected to the MCP server"
        );
        let is_changed = lock(&self.offered).greet(&info);
        if let (true, Some(pins)) = (is_changed, &self.pins) {
            self.notify(format!(
                "what it tells the model about its tools has changed since it was agreed to, and is not used; to look at the change and agree to it: {}",
                pins.how_to_accept(&self.config.name)
            ));
        }
        self.compare(info.listed.tools);
    }

    /// Reads what the server offers. It is locked meanwhile.
    pub(super) fn offered<T>(&self, read: impl FnOnce(&mut Offered) -> T) -> T {
        read(&mut lock(&self.offered))
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
        lock(&self.offered).trust_reads(reads);
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

    /// Calls a tool. `harmless`: the tool changes nothing, so a lost answer is no doubt. When
    /// dropped, it notifies the server.
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
        let call = Call {
            server,
            handler: &self.setup.handler,
            tool,
            harmless,
        };
        let Some(answer) = call.send(peer, arguments, context).await? else {
            return Ok(json!([]));
        };
        let misfit = lock(&self.offered).misfit(tool, &answer);
        if let Some(reason) = misfit {
            // It counts nevertheless: the call was carried out.
            self.notify(format!(
                "a result of {tool} does not fit the output schema of the tool, and was used all the same: {reason}"
            ));
        }
        result::decode(answer, self.config.result_bytes_max)
    }

    /// Checks that the tool is the one that was registered.
    ///
    /// # Errors
    /// The tool was changed or removed since.
    fn check_unchanged(&self, tool: &str) -> Result<(), ToolError> {
        if !lock(&self.offered).changed().contains(tool) {
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

    /// Returns an open connection, waiting for one if the server is being started.
    async fn peer(&self) -> Result<Peer<RoleClient>, String> {
        let limit = self.config.timeout.unwrap_or(USUAL_TIMEOUT);
        // Half of the call's time at most, so that some is left for the call itself.
        let patience = self.config.start_timeout.min(limit / 2);
        let mut states = self.state.subscribe();
        let given_up = match &*states.borrow_and_update() {
            State::Connected(_) => false,
            State::Down(health) => {
                self.setup.needed.notify_one();
                matches!(health, Health::Failed { .. })
            }
        };
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
        let name = &self.config.name;
        let how_to_accept = self.pins.as_ref().map(|pins| pins.how_to_accept(name));
        if lock(&self.offered).compare(now, how_to_accept.as_deref()) {
            self.has_notices.notify_one();
        }
    }
}

fn count(tools: usize) -> String {
    if tools == 1 {
        "1 tool".to_owned()
    } else {
        format!("{tools} tools")
    }
}

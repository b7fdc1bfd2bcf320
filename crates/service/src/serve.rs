//! The service: binding the sockets, serving, recovery of lost turns, and shutdown.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use adjutant_core::CancellationToken;
#[cfg(feature = "memory")]
use adjutant_core::port::ConversationIndex;
use adjutant_runtime::Agent;
use adjutant_tools::TaskStore;
use ipnet::IpNet;
use tokio::net::TcpListener;
use tracing::{error, warn};

use crate::administration::Administration;
use crate::admission::{self, ConnectionLimits, Connections, Limits, Shutdown, UserLimits};
use crate::auth::{AccessRules, Auth};
use crate::live::Runs;
use crate::mcp_sessions::Mcp;
use crate::mcp_turns;
use crate::metrics::{Metrics, MetricsAccess};
use crate::metrics_route;
use crate::origins::Origin;
use crate::remote::Publisher;
use crate::router::router;
use crate::state::{App, BackgroundPrompts, Gauges, Readiness, Shared, Turns};
use crate::token_use::TokenUses;
use crate::whole_data::WholeData;

/// Interval at which turns whose worker was lost are looked for and recovered.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(5);
/// Time that running requests and turns have to end after a stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of a [`Service`]: address, authentication, limits and optional features.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroU32;
///
/// use adjutant_service::{Auth, ServiceConfig};
///
/// let mut config = ServiceConfig::new("127.0.0.1:8080".parse()?, Auth::None);
/// config.hosts = vec!["assistant.internal".to_owned()];
/// config.limits.turns_at_once = NonZeroU32::new(2).unwrap();
/// config.page = false;
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServiceConfig {
    /// Address and port to listen on; port 0 lets the system choose a free one.
    pub bind: SocketAddr,
    /// Method by which callers are authenticated.
    pub auth: Auth,
    /// Lifetimes of sessions and tokens, and the rules that give users roles.
    pub access: AccessRules,
    /// Host names that are accepted besides `localhost` and IP addresses. Default: none.
    pub hosts: Vec<String>,
    /// Other origins whose pages may call the service (CORS), with a token. Default: none.
    pub origins: Vec<Origin>,
    /// Rate and concurrency limits of users. Default: 60 requests a minute and 4 turns at once.
    pub limits: UserLimits,
    /// Number of connections, and the timeouts on them.
    pub connections: ConnectionLimits,
    /// Addresses and networks of reverse proxies, which the limit per address does not apply to;
    /// nor does it to loopback addresses. Default: none.
    pub proxies: Vec<IpNet>,
    /// Callers that may read `/metrics` on the service's own address. Default:
    /// [`MetricsAccess::Operator`].
    pub metrics: MetricsAccess,
    /// Separate address for `/metrics`, readable without authentication. Default: `/metrics` is a
    /// route of the service.
    pub metrics_bind: Option<SocketAddr>,
    /// True if the web page is served at `/`. Default: true.
    pub page: bool,
    /// True if the model generates the titles of conversations, by one request after the answer to
    /// their second message. Default: false; the first words of the user's message are the title.
    pub model_titles: bool,
    /// True if the trace context of a request (W3C Trace Context) is passed on to models and MCP
    /// servers. Default: true.
    pub trace_propagation: bool,
    /// True if MCP clients get sessions, in protocol versions that have them. A session lives in
    /// the process that created it, so set this to false behind a load balancer. Without sessions
    /// an MCP client cannot ask its user, so calls that need a confirmation wait elsewhere.
    /// Default: true.
    pub mcp_sessions: bool,
    /// True if MCP clients can send a message to the agent by a tool. Default: true; the same
    /// callers can use `/v1/chat`.
    pub mcp_ask: bool,
    /// Handling of the requests that chat interfaces send on their own account, such as for titles.
    /// Default: [`BackgroundPrompts::Plain`].
    pub background_prompts: BackgroundPrompts,
    /// Name of the service, for people. Default: `Adjutant`.
    pub name: Option<String>,
    /// The people who run the service: their mail address, a page, or a name. The sign-in page says
    /// whom to ask. Default: nobody is named.
    pub contact: Option<String>,
    /// Longest message of `POST /v1/chat`, in Unicode characters, if it is less than that of the
    /// agent. Default: that of the agent.
    pub chat_message_chars_max: Option<usize>,
}

/// Name of a service that has no other.
const DEFAULT_NAME: &str = "Adjutant";

impl ServiceConfig {
    /// Creates a configuration with the documented defaults.
    #[must_use]
    pub fn new(bind: SocketAddr, auth: Auth) -> Self {
        Self {
            bind,
            auth,
            access: AccessRules::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            limits: UserLimits::default(),
            connections: ConnectionLimits::default(),
            proxies: Vec::new(),
            metrics: MetricsAccess::Operator,
            metrics_bind: None,
            page: true,
            model_titles: false,
            trace_propagation: true,
            mcp_sessions: true,
            mcp_ask: true,
            background_prompts: BackgroundPrompts::Plain,
            name: None,
            contact: None,
            chat_message_chars_max: None,
        }
    }
}

/// An error that keeps the service from starting or serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The service would be open to the network without authentication.
    #[error("without authentication it listens on loopback addresses only, and {0} is none")]
    Open(SocketAddr),
    /// The text is not a socket address.
    #[error("{given:?} is no address and port, such as 127.0.0.1:8080")]
    Address {
        /// The text that was given.
        given: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {bind}: {source}")]
    Bind {
        /// The address that was to be listened on.
        bind: SocketAddr,
        /// The operating system's error.
        #[source]
        source: std::io::Error,
    },
    /// Accepting connections failed for good.
    #[error("serving failed: {0}")]
    Serve(#[source] std::io::Error),
}

/// An HTTP service that is bound to its address. [`Service::run`] serves requests.
///
/// # Examples
///
/// ```
/// # use adjutant_core::CancellationToken;
/// # use adjutant_providers::scripted::ScriptedModel;
/// # use adjutant_runtime::Agent;
/// use adjutant_service::{Auth, Service, ServiceConfig};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let agent = Agent::builder("a").instruction("x").model(ScriptedModel::demo()?).build()?;
/// let config = ServiceConfig::new("127.0.0.1:0".parse()?, Auth::None);
/// let service = Service::bind(agent, config).await?;
/// let address = service.address();
///
/// let stop = CancellationToken::new();
/// let serving = tokio::spawn(service.run(stop.clone()));
/// // Send requests to `address`.
/// stop.cancel();
/// serving.await??;
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug)]
pub struct Service {
    listener: TcpListener,
    address: SocketAddr,
    /// Listener of the separate metrics address, if configured.
    metrics: Option<TcpListener>,
    state: Shared,
}

impl Service {
    /// Binds the configured addresses. Connections are accepted by the system from now on, and
    /// answered once [`Service::run`] is called.
    ///
    /// # Errors
    /// [`ServeError::Open`] if there is no authentication and the address is not a loopback
    /// address; [`ServeError::Bind`] if an address cannot be bound.
    pub async fn bind(agent: Agent, config: ServiceConfig) -> Result<Self, ServeError> {
        let bind = config.bind;
        // Everybody on the network would be the local user.
        if matches!(config.auth, Auth::None) && !bind.ip().is_loopback() {
            return Err(ServeError::Open(bind));
        }
        let listen = async |bind: SocketAddr| {
            let listener = TcpListener::bind(bind).await?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let failed = |bind| move |source| ServeError::Bind { bind, source };
        let (listener, address) = listen(bind).await.map_err(failed(bind))?;
        let metrics = match config.metrics_bind {
            Some(bind) => Some(listen(bind).await.map_err(failed(bind))?.0),
            None => None,
        };
        let (stopping, turns) = (CancellationToken::new(), Turns::default());
        let (service_metrics, connection_limits) = (
            Arc::new(Metrics::new()),
            config.connections.fit_open_files(),
        );
        let counting = service_metrics.clone();
        agent.on_model_call(move |call| counting.record_model_call(call));
        // The MCP server is part of the state, and its turns need the whole state.
        let state_cell = mcp_turns::StateCell::default();
        let begin = config.mcp_ask.then(|| mcp_turns::begin(state_cell.clone()));
        let mcp = Mcp::new(
            agent.clone(),
            config.mcp_sessions,
            stopping.clone(),
            turns.tracker().clone(),
            begin,
        );
        let (runs, relay) = (Arc::<Runs>::default(), agent.journal().relay());
        let state = Shared::new(App {
            agent,
            auth: config.auth,
            access: config.access,
            token_uses: TokenUses::default(),
            hosts: config.hosts,
            origins: config.origins,
            draining: CancellationToken::new(),
            stopping,
            turns,
            mcp,
            publisher: Publisher::new(runs.clone(), relay),
            runs,
            tasks: OnceLock::new(),
            administration: OnceLock::new(),
            readiness: OnceLock::new(),
            gauges: OnceLock::new(),
            limits: Limits::new(config.limits),
            whole_data: WholeData::default(),
            not_storing: Mutex::default(),
            connection_limits,
            connections: Connections::new(
                connection_limits,
                config.proxies,
                service_metrics.clone(),
            ),
            metrics: service_metrics,
            metrics_access: config.metrics,
            metrics_elsewhere: metrics.is_some(),
            page: config.page,
            background_prompts: config.background_prompts,
            name: config.name.unwrap_or_else(|| DEFAULT_NAME.to_owned()),
            contact: config.contact,
            chat_message_chars_max: config.chat_message_chars_max,
            model_titles: config.model_titles,
            #[cfg(feature = "memory")]
            memories: OnceLock::new(),
            #[cfg(feature = "memory")]
            conversation_search: OnceLock::new(),
            trace_propagation: config.trace_propagation,
        });
        // The cell was created above, so it is empty.
        let _ = state_cell.set(state.downgrade());
        Ok(Self {
            listener,
            address,
            metrics,
            state,
        })
    }

    /// Sets the task store behind `/v1/tasks`. Only the first call has an effect.
    #[must_use]
    pub fn with_tasks(self, tasks: Arc<dyn TaskStore>) -> Self {
        let _ = self.state.tasks.set(tasks);
        self
    }

    /// Sets the memories that `/v1/memory` shows to users and lets them change. Only the first call
    /// has an effect.
    #[cfg(feature = "memory")]
    #[must_use]
    pub fn with_memories(self, memories: adjutant_memory::Memories) -> Self {
        let _ = self.state.memories.set(memories);
        self
    }

    /// Sets the index for searching past conversations. Only the first call has an effect.
    #[cfg(feature = "memory")]
    #[must_use]
    pub fn with_conversation_search(self, past: Arc<dyn ConversationIndex>) -> Self {
        let _ = self.state.conversation_search.set(past);
        self
    }

    /// Adds the operator routes `/v1/admin`. Only the first call has an effect.
    #[must_use]
    pub fn with_administration(self, administration: Administration) -> Self {
        let _ = self.state.administration.set(administration);
        self
    }

    /// Adds a condition for `/readyz`. Only the first call has an effect.
    #[must_use]
    pub fn with_readiness(self, readiness: Readiness) -> Self {
        let _ = self.state.readiness.set(readiness);
        self
    }

    /// Adds metrics of other parts of the program. Only the first call has an effect.
    #[must_use]
    pub fn with_gauges(self, gauges: Gauges) -> Self {
        let _ = self.state.gauges.set(gauges);
        self
    }

    /// Returns the address the service listens on, with the actual port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the separate address of the metrics, if configured.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics
            .as_ref()
            .and_then(|listener| listener.local_addr().ok())
    }

    /// Returns the token to cancel some time before [`Service::run`] is stopped, so that load
    /// balancers notice: from then on `/readyz` answers 503 and each connection is closed after its
    /// next response. Requests are still answered.
    #[must_use]
    pub fn draining(&self) -> CancellationToken {
        self.state.draining.clone()
    }

    /// Serves requests until `stop` is cancelled; then accepts no more and waits up to 30 seconds
    /// for running requests and turns. Turns that have not ended by then are in the journal, and
    /// are recovered at the next start or by another replica.
    ///
    /// Events are logged with `tracing`: each request in a span `request` with its id, trace and
    /// user, each turn in a span `turn`.
    ///
    /// # Errors
    /// [`ServeError::Serve`] if connections can no longer be accepted.
    pub async fn run(self, stop: CancellationToken) -> Result<(), ServeError> {
        let state = self.state.clone();
        let warning = state.clone();
        let serving = admission::serve_with_liveness(
            self.listener,
            router(state.clone()),
            state.connections.clone(),
            Shutdown {
                draining: state.draining.clone(),
                stopping: stop.clone(),
            },
            move |refused| warning.warn_refused(refused.message()),
        );
        // In the tracker too: a turn that is being recovered should end before the process does.
        let recovery = state.turns.spawn(recover(state.clone()));
        let metrics_server = self.metrics.map(|listener| {
            let router = metrics_route::router(state.clone());
            // With limits of its own: metrics can be read while clients use up the connections.
            let connections = Connections::new(
                state.connection_limits.for_metrics(),
                Vec::new(),
                state.metrics.clone(),
            );
            let shutdown = Shutdown {
                draining: state.draining.clone(),
                stopping: stop.clone(),
            };
            tokio::spawn(admission::serve(listener, router, connections, shutdown))
        });
        let working = async {
            let served = serving.await.map_err(ServeError::Serve);
            // No connection is left. Turns without a client may still run; `wait` returns after the
            // last of them, because the closed tracker accepts no new ones.
            state.stopping.cancel();
            state.turns.tracker().close();
            state.turns.tracker().wait().await;
            // Calls that could not be taken back when their turns were stopped.
            state.agent.calls_ended().await;
            served
        };
        let timed_out = async {
            stop.cancelled().await;
            state.draining.cancel();
            state.stopping.cancel();
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
        };
        let served = tokio::select! {
            served = working => served,
            () = timed_out => {
                warn!(
                    "not all that ran had ended {} s after the stop; it goes on with the next start, or on another replica",
                    SHUTDOWN_TIMEOUT.as_secs()
                );
                Ok(())
            }
        };
        // A turn that it is recovering stays in the journal.
        recovery.abort();
        if let Some(server) = metrics_server {
            server.abort();
        }
        served
    }
}

/// Recovers turns of lost workers, first at the start and then at regular intervals.
async fn recover(state: Shared) {
    // A conversation that cannot be recovered is tried at each interval, and its error is reported
    // once.
    let mut reported = HashMap::new();
    while !state.draining.is_cancelled() {
        match state.agent.recover_until(None, &state.draining).await {
            Ok(swept) => {
                swept
                    .responses
                    .iter()
                    .for_each(|response| state.metrics.record_turn(response));
                for (key, turn) in swept.given_up {
                    let (user, conversation) = (key.user.as_str(), key.conversation);
                    error!(user, %conversation, %turn, code = "ERROR:POISONED", "the turn was given up: each process that ran it was lost");
                }
                let left = swept.failed.into_iter().collect::<HashMap<_, _>>();
                for (_, error) in left
                    .iter()
                    .filter(|(key, error)| reported.get(*key) != Some(*error))
                {
                    state.report(error);
                }
                reported = left;
            }
            Err(error) => state.report(&error),
        }
        state.limits.remove_idle();
        state.runs.evict_expired();
        state.update_metrics();
        tokio::select! {
            () = tokio::time::sleep(RECOVERY_INTERVAL) => {}
            () = state.draining.cancelled() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::port::StoreError;
    use adjutant_providers::scripted::ScriptedModel;
    use adjutant_runtime::RunError;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;

    use super::*;
    use crate::problem::NOT_STORING_FOR;

    #[tokio::test]
    async fn it_is_not_ready_while_nothing_can_be_stored() {
        tokio::time::pause();
        let agent = Agent::builder("a")
            .instruction("x")
            .model(ScriptedModel::demo().unwrap())
            .build()
            .unwrap();
        let config = ServiceConfig::new("127.0.0.1:0".parse().unwrap(), Auth::None);
        let service = Service::bind(agent, config).await.unwrap();
        let state = service.state.clone();
        let router = TowerToHyperService::new(router(state.clone()));
        let ready = async || {
            let asked = Request::get("/readyz")
                .header("host", "localhost")
                .body(Body::empty())
                .unwrap();
            router.call(asked).await.unwrap().status()
        };
        assert_eq!(ready().await, StatusCode::OK);
        state.report(&RunError::Store(StoreError::unavailable(String::new())));
        assert_eq!(ready().await, StatusCode::OK);
        for error in [StoreError::full(""), StoreError::disk_failed("")] {
            state.report(&RunError::Store(error));
            assert_eq!(ready().await, StatusCode::SERVICE_UNAVAILABLE);
            tokio::time::advance(NOT_STORING_FOR).await;
            assert_eq!(ready().await, StatusCode::OK);
        }
    }
}

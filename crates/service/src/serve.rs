//! From a socket to an orderly end.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use adjutant_core::CancellationToken;
#[cfg(feature = "memory")]
use adjutant_core::port::PastConversations;
use adjutant_core::port::TaskStore;
use adjutant_runtime::{Agent, RunError};
use ipnet::IpNet;
use tokio::net::TcpListener;
use tracing::{error, warn};

use crate::administration::Administration;
use crate::auth::{AccessRules, Auth};
use crate::door::{self, ConnectionLimits, Ending, Guests};
use crate::figures;
use crate::limits::{Limits, UserLimits};
use crate::live::Runs;
use crate::mcp_sessions::Mcp;
use crate::mcp_turns;
use crate::metrics::{Metrics, MetricsAccess};
use crate::origins::Origin;
use crate::remote::Host;
use crate::router::router;
use crate::state::{App, BackgroundPrompts, Gauges, Readiness, Shared, Turns};
use crate::used::Uses;

/// How often the service looks for work that a replica which is gone left behind.
const SWEEP: Duration = Duration::from_secs(5);
/// How long what runs may take to end when the service takes nothing new any more.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the service is reached, and by whom.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServiceConfig {
    /// Where it listens.
    pub bind: SocketAddr,
    /// How clients say who they are.
    pub auth: Auth,
    /// For how long sessions and tokens hold, and who is more than a user.
    pub access: AccessRules,
    /// Host names it answers to besides `localhost` and addresses of numbers. Default none.
    pub hosts: Vec<String>,
    /// Origins beside its own whose pages may ask, with a token. Default none.
    pub origins: Vec<Origin>,
    /// What one user may ask for. Default 60 requests a minute and 4 turns at once.
    pub limits: UserLimits,
    /// What clients may hold open, and for how long.
    pub connections: ConnectionLimits,
    /// Addresses and networks that speak for many: their connections are not counted one address at
    /// a time. Those of this machine are not either. Default none.
    pub proxies: Vec<IpNet>,
    /// Who reads `/metrics` beside the rest. Default [`MetricsAccess::Operator`].
    pub metrics: MetricsAccess,
    /// Where the figures for Prometheus are, for everybody who reaches it. Default: `/metrics`
    /// beside the rest.
    pub metrics_bind: Option<SocketAddr>,
    /// Whether there is a web page at `/`. Default yes.
    pub page: bool,
    /// True if the model finds the titles of conversations, a moment after their first answer.
    /// Default false: they are the person's words.
    pub model_titles: bool,
    /// True if the trace of a request is passed on to models and MCP servers (W3C Trace Context).
    /// Default true.
    pub trace_propagation: bool,
    /// Whether MCP clients of versions that have sessions get one. A session is known to the
    /// process that began it; behind a load balancer there should be none. Without, such clients
    /// cannot ask their person, so what has to be confirmed waits elsewhere. Default yes.
    pub mcp_sessions: bool,
    /// True if MCP clients can ask the agent itself, as a tool. Default yes: what they may ask they
    /// may ask `/v1/chat` too.
    pub mcp_ask: bool,
    /// Says who answers the requests that chat interfaces make on their own, such as for titles.
    /// Default [`BackgroundPrompts::Plain`].
    pub background_prompts: BackgroundPrompts,
}

impl ServiceConfig {
    /// The defaults for everything else.
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
        }
    }
}

/// Why the service does not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Everybody could ask as the one user.
    #[error("without authentication it listens on loopback addresses only, and {0} is none")]
    Open(SocketAddr),
    /// What was given is no address.
    #[error("{given:?} is no address and port, such as 127.0.0.1:8080")]
    Address {
        /// What was given.
        given: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {bind}: {reason}")]
    Bind {
        /// The address.
        bind: SocketAddr,
        /// What the system says.
        reason: String,
    },
    /// The sockets failed.
    #[error("serving failed: {0}")]
    Serve(String),
}

/// A service that listens, and does not answer yet.
#[derive(Debug)]
pub struct Service {
    listener: TcpListener,
    address: SocketAddr,
    /// Where the figures are, if not beside the rest.
    metrics: Option<TcpListener>,
    state: Shared,
}

impl Service {
    /// Listens.
    ///
    /// # Errors
    /// [`ServeError::Open`] without authentication beyond this machine, [`ServeError::Bind`].
    pub async fn bind(agent: Agent, config: ServiceConfig) -> Result<Self, ServeError> {
        let bind = config.bind;
        if matches!(config.auth, Auth::None) && !bind.ip().is_loopback() {
            return Err(ServeError::Open(bind));
        }
        let failed = |error: std::io::Error| ServeError::Bind {
            bind,
            reason: error.to_string(),
        };
        let listener = TcpListener::bind(bind).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let metrics = match config.metrics_bind {
            Some(bind) => {
                Some(
                    TcpListener::bind(bind)
                        .await
                        .map_err(|error| ServeError::Bind {
                            bind,
                            reason: error.to_string(),
                        })?,
                )
            }
            None => None,
        };
        let (stopping, turns) = (CancellationToken::new(), Turns::default());
        let (figures, connections) = (Arc::new(Metrics::new()), config.connections.fitting());
        let counting = figures.clone();
        agent.on_model_call(move |call| counting.model_call(call));
        let later = mcp_turns::Later::default();
        let begin = config.mcp_ask.then(|| mcp_turns::begin(later.clone()));
        let ending = (stopping.clone(), turns.tracker().clone());
        let mcp = Mcp::new(agent.clone(), config.mcp_sessions, ending, begin);
        let (runs, relay) = (Arc::<Runs>::default(), agent.journal().relay());
        let state = Shared::new(App {
            agent,
            auth: config.auth,
            access: config.access,
            uses: Uses::default(),
            hosts: config.hosts,
            origins: config.origins,
            draining: CancellationToken::new(),
            stopping,
            turns,
            mcp,
            host: Host::new(runs.clone(), relay),
            runs,
            tasks: OnceLock::new(),
            administration: OnceLock::new(),
            readiness: OnceLock::new(),
            gauges: OnceLock::new(),
            limits: Limits::new(config.limits),
            full: Mutex::default(),
            connections,
            guests: Guests::new(connections, config.proxies, figures.clone()),
            metrics: figures,
            metrics_access: config.metrics,
            metrics_elsewhere: metrics.is_some(),
            page: config.page,
            background_prompts: config.background_prompts,
            model_titles: config.model_titles,
            #[cfg(feature = "memory")]
            memories: OnceLock::new(),
            #[cfg(feature = "memory")]
            past: OnceLock::new(),
            trace_propagation: config.trace_propagation,
        });
        // It is new, so nothing was there before.
        let _ = later.set(state.downgrade());
        Ok(Self {
            listener,
            address,
            metrics,
            state,
        })
    }

    /// The same service, which also tells the tasks of whoever asks. The first store given is the
    /// one.
    #[must_use]
    pub fn with_tasks(self, tasks: Arc<dyn TaskStore>) -> Self {
        let _ = self.state.tasks.set(tasks);
        self
    }

    /// The same service, which also shows each user what is remembered of them, and lets them
    /// change it. The first memories given are the ones.
    #[cfg(feature = "memory")]
    #[must_use]
    pub fn with_memories(self, memories: adjutant_memory::Memories) -> Self {
        let _ = self.state.memories.set(memories);
        self
    }

    /// The same service, in which everybody can search what was said in their conversations. The
    /// first index given is the one.
    #[cfg(feature = "memory")]
    #[must_use]
    pub fn with_past_conversations(self, past: Arc<dyn PastConversations>) -> Self {
        let _ = self.state.past.set(past);
        self
    }

    /// The same service, which also shows whoever runs it how it is, under `/v1/admin`. The first
    /// administration given is the one.
    #[must_use]
    pub fn with_administration(self, administration: Administration) -> Self {
        let _ = self.state.administration.set(administration);
        self
    }

    /// The same service, which is ready only if `readiness` has nothing against it. The first one
    /// given is the one.
    #[must_use]
    pub fn with_readiness(self, readiness: Readiness) -> Self {
        let _ = self.state.readiness.set(readiness);
        self
    }

    /// The same service, whose `/metrics` also has what `gauges` reads. The first given is the one.
    #[must_use]
    pub fn with_gauges(self, gauges: Gauges) -> Self {
        let _ = self.state.gauges.set(gauges);
        self
    }

    /// Where it listens, the port included.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the figures are, if they have an address of their own.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics
            .as_ref()
            .and_then(|listener| listener.local_addr().ok())
    }

    /// Returns what is fired some time before [`Service::run`] is told to stop, so that a load
    /// balancer notices: from then on `/readyz` answers 503, connections are closed with their next
    /// answer, and everything is answered all the same.
    #[must_use]
    pub fn draining(&self) -> CancellationToken {
        self.state.draining.clone()
    }

    /// Answers until `stop` fires; then it takes nothing new and lets what runs end, for half a
    /// minute at most. What does not end by then is in the journal, and goes on with the next start
    /// or on another replica. What happens are events of `tracing`: of a request in a span
    /// `request` with its id, its trace and its user, of a turn in a span `turn`.
    ///
    /// # Errors
    /// [`ServeError::Serve`].
    pub async fn run(self, stop: CancellationToken) -> Result<(), ServeError> {
        let state = self.state.clone();
        let told = state.clone();
        let serving = door::serve(
            self.listener,
            router(state.clone()),
            state.guests.clone(),
            Ending {
                draining: state.draining.clone(),
                stopping: stop.clone(),
            },
            move |no_room| told.tell_refused(no_room.words()),
        );
        let sweeping = state.turns.spawn(sweep(state.clone()));
        let figures = self.metrics.map(|listener| {
            let router = figures::router(state.clone());
            // Bounded by themselves: whoever fills the one door finds the other open.
            let guests = Guests::new(
                state.connections.of_figures(),
                Vec::new(),
                state.metrics.clone(),
            );
            let ending = Ending {
                draining: state.draining.clone(),
                stopping: stop.clone(),
            };
            tokio::spawn(door::serve(listener, router, guests, ending, |_| {}))
        });
        let working = async {
            let served = serving
                .await
                .map_err(|error| ServeError::Serve(error.to_string()));
            state.stopping.cancel();
            state.turns.tracker().close();
            state.turns.tracker().wait().await;
            served
        };
        let out_of_patience = async {
            stop.cancelled().await;
            state.draining.cancel();
            state.stopping.cancel();
            tokio::time::sleep(PATIENCE).await;
        };
        let served = tokio::select! {
            served = working => served,
            () = out_of_patience => {
                warn!(
                    "not all that ran had ended {} s after the stop; it goes on with the next start, or on another replica",
                    PATIENCE.as_secs()
                );
                Ok(())
            }
        };
        sweeping.abort();
        if let Some(figures) = figures {
            figures.abort();
        }
        served
    }
}

/// Goes on with what a process that is gone left behind: at the start, and again and again.
async fn sweep(state: Shared) {
    let report = |error: &RunError| state.tell(error.clone());
    // What cannot go on is tried again and again, and told once.
    let mut told = HashMap::new();
    while !state.draining.is_cancelled() {
        match state.agent.sweep(None, &state.draining).await {
            Ok(swept) => {
                swept
                    .responses
                    .iter()
                    .for_each(|response| state.metrics.turn_ended(response));
                for (key, turn) in swept.given_up {
                    let (user, conversation) = (key.user.as_str(), key.conversation);
                    error!(user, %conversation, %turn, code = "ERROR:POISONED", "the turn was given up: each process that ran it was lost");
                }
                let left = swept.left.into_iter().collect::<HashMap<_, _>>();
                for (_, error) in left
                    .iter()
                    .filter(|(key, error)| told.get(*key) != Some(*error))
                {
                    report(error);
                }
                told = left;
            }
            Err(error) => report(&error),
        }
        state.limits.forget_old();
        state.runs.forget_old();
        state.keep_figures_up();
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            () = state.draining.cancelled() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::port::StoreError;
    use adjutant_providers::scripted::ScriptedModel;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;

    use super::*;
    use crate::problem::FULL_FOR;

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
        state.tell(RunError::Store(StoreError::Unavailable {
            message: String::new(),
        }));
        assert_eq!(ready().await, StatusCode::OK);
        state.tell(RunError::Store(StoreError::Full {
            message: String::new(),
        }));
        assert_eq!(ready().await, StatusCode::SERVICE_UNAVAILABLE);
        tokio::time::advance(FULL_FOR).await;
        assert_eq!(ready().await, StatusCode::OK);
    }
}

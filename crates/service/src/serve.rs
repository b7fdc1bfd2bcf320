//! From a socket to an orderly end.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::CancellationToken;
use adjutant_runtime::{Agent, RunError};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio_util::task::TaskTracker;

use crate::auth::Auth;
use crate::router::router;

/// How often the service looks for work that a replica which is gone left behind.
const SWEEP: Duration = Duration::from_secs(5);
/// How long what runs may take to end when the service is stopped.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the service is reached, and by whom.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// Where it listens. Default `127.0.0.1:8080`.
    pub bind: SocketAddr,
    /// How clients say who they are.
    pub auth: Auth,
    /// Host names it answers to besides `localhost` and addresses of numbers.
    pub hosts: Vec<String>,
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
    state: Shared,
    causes: UnboundedReceiver<RunError>,
}

/// What every handler sees.
#[derive(Clone)]
pub(crate) struct Shared(Arc<App>);

pub(crate) struct App {
    pub(crate) agent: Agent,
    pub(crate) auth: Auth,
    pub(crate) hosts: Vec<String>,
    /// Fires when the service is to end.
    pub(crate) stopping: CancellationToken,
    /// The turns that run, whether anybody waits for them or not.
    pub(crate) turns: TaskTracker,
    /// What went wrong in requests, for whoever runs the service.
    pub(crate) causes: UnboundedSender<RunError>,
}

impl std::ops::Deref for Shared {
    type Target = App;
    fn deref(&self) -> &App {
        &self.0
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("agent", &self.agent).field("auth", &self.auth).finish_non_exhaustive()
    }
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
        let failed = |error: std::io::Error| ServeError::Bind { bind, reason: error.to_string() };
        let listener = TcpListener::bind(bind).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (sender, causes) = mpsc::unbounded_channel();
        let state = Shared(Arc::new(App {
            agent,
            auth: config.auth,
            hosts: config.hosts,
            stopping: CancellationToken::new(),
            turns: TaskTracker::new(),
            causes: sender,
        }));
        Ok(Self { listener, address, state, causes })
    }

    /// Where it listens, the port included.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` fires; then it takes nothing new and lets what runs end, for half a minute at most. What does
    /// not end by then is in the journal, and goes on with the next start or on another replica. `report` hears what is
    /// wrong: with the store, or with a conversation that cannot go on.
    ///
    /// # Errors
    /// [`ServeError::Serve`].
    pub async fn run(
        mut self,
        stop: CancellationToken,
        report: impl Fn(&RunError) + Send + Sync,
    ) -> Result<(), ServeError> {
        let state = self.state.clone();
        let router = router(state.clone());
        let stopping = stop.clone();
        let serving = axum::serve(self.listener, router)
            .with_graceful_shutdown(async move { stopping.cancelled().await });
        let sweeping = state.turns.spawn(sweep(state.clone()));
        let working = async {
            let served = serving.await.map_err(|error| ServeError::Serve(error.to_string()));
            state.stopping.cancel();
            state.turns.close();
            state.turns.wait().await;
            served
        };
        let out_of_patience = async {
            stop.cancelled().await;
            state.stopping.cancel();
            tokio::time::sleep(PATIENCE).await;
        };
        let served = tokio::select! {
            served = working => served,
            () = out_of_patience => Ok(()),
            () = async {
                while let Some(cause) = self.causes.recv().await {
                    report(&cause);
                }
            } => Ok(()),
        };
        sweeping.abort();
        // What the last requests left.
        while let Ok(cause) = self.causes.try_recv() {
            report(&cause);
        }
        served
    }
}

/// Goes on with what a process that is gone left behind: at the start, and again and again.
async fn sweep(state: Shared) {
    let report = |error: &RunError| drop(state.causes.send(error.clone()));
    // What cannot go on is tried again and again, and told once.
    let mut told = HashMap::new();
    while !state.stopping.is_cancelled() {
        match state.agent.sweep(None, &state.stopping).await {
            Ok(swept) => {
                let left = swept.left.into_iter().collect::<HashMap<_, _>>();
                for (_, error) in left.iter().filter(|(key, error)| told.get(*key) != Some(*error)) {
                    report(error);
                }
                told = left;
            }
            Err(error) => report(&error),
        }
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            () = state.stopping.cancelled() => {}
        }
    }
}

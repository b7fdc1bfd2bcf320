//! What every handler sees: the agent, who may ask, what runs, and what is counted. It knows no address.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use adjutant_core::port::{StoreError, TaskStore};
use adjutant_core::{CancellationToken, UserId};
use adjutant_runtime::{Agent, RunError};
use axum::response::Response;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::administration::Administration;
use crate::auth::Auth;
use crate::door::{ConnectionLimits, Guests};
use crate::events::{Events, ServiceEvent};
use crate::limits::{Limits, RunningTurn};
use crate::live::Runs;
use crate::mcp_sessions::Mcp;
use crate::metrics::{Metrics, MetricsAccess};
use crate::problem::{FULL_FOR, Problem};
use crate::remote::Host;

/// Why a service cannot take a request at this moment, in words for everybody; `None`: it can. Asked at every `/readyz`.
pub type Readiness = Arc<dyn Fn() -> Option<&'static str> + Send + Sync>;

/// What every handler sees.
#[derive(Clone)]
pub(crate) struct Shared(Arc<App>);

impl Shared {
    pub(crate) fn new(app: App) -> Self {
        Self(Arc::new(app))
    }
}

pub(crate) struct App {
    pub(crate) agent: Agent,
    pub(crate) auth: Auth,
    pub(crate) hosts: Vec<String>,
    /// Fires when the service is about to stop: it is not ready any more, and still answers.
    pub(crate) draining: CancellationToken,
    /// Fires when the service takes nothing new any more.
    pub(crate) stopping: CancellationToken,
    /// The turns that run, whether anybody waits for them or not.
    pub(crate) turns: TaskTracker,
    /// The runs that go on here, and what can be told again of those that ended a moment ago.
    pub(crate) runs: Arc<Runs>,
    /// Tells other processes those that go on here.
    pub(crate) host: Arc<Host>,
    /// The sessions of MCP clients.
    pub(crate) mcp: Mcp,
    /// Where the tasks are that are shown beside a conversation, if there are any.
    pub(crate) tasks: OnceLock<Arc<dyn TaskStore>>,
    /// What whoever runs the service looks at, if they can here.
    pub(crate) administration: OnceLock<Administration>,
    /// What else has to be there, for `/readyz`.
    pub(crate) readiness: OnceLock<Readiness>,
    /// What one user may ask for.
    pub(crate) limits: Limits,
    /// When a write failed for want of space.
    pub(crate) full: Mutex<Option<Instant>>,
    pub(crate) connections: ConnectionLimits,
    /// Who is connected.
    pub(crate) guests: Arc<Guests>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) metrics_access: MetricsAccess,
    /// Whether they are at an address of their own.
    pub(crate) metrics_elsewhere: bool,
    pub(crate) page: bool,
    /// What is remembered of one user, if anything is.
    #[cfg(feature = "memory")]
    pub(crate) memory: OnceLock<adjutant_memory::Memory>,
    pub(crate) tell_requests: bool,
    /// What happens, for whoever runs the service.
    pub(crate) events: Events,
}

impl App {
    /// Lets a user have one more turn, until what it gives is dropped. Every route that starts a turn asks this first.
    ///
    /// # Errors
    /// [`Problem`] 429 `limit_reached`: as many as are allowed run already; 503 `unavailable`: the service stops; 503
    /// `busy`: as many run of all users.
    pub(crate) fn begin_turn(&self, user: &UserId) -> Result<RunningTurn, Problem> {
        if self.stopping.is_cancelled() {
            return Err(Problem::stopping());
        }
        self.limits.turn(user, &self.metrics)
    }

    /// Puts what came since into the figures, so that it does not pile up between two looks.
    pub(crate) fn keep_figures_up(&self) {
        if let Some(figures) = self.agent.dispatch_figures() {
            self.metrics.dispatched(&figures);
        }
        self.metrics.keep_up();
    }

    /// Returns the figures as Prometheus reads them.
    pub(crate) fn rendered_figures(&self) -> Response {
        self.keep_figures_up();
        self.metrics.render()
    }

    /// Returns whether the figures are beside the rest.
    pub(crate) fn has_metrics(&self) -> bool {
        !self.metrics_elsewhere && self.metrics_access != MetricsAccess::Off
    }

    /// Returns whether a write failed for want of space, a moment ago.
    pub(crate) fn is_full(&self) -> bool {
        let full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        full.is_some_and(|since| since.elapsed() < FULL_FOR)
    }

    /// Tells whoever runs the service what is wrong.
    pub(crate) fn tell(&self, error: RunError) {
        if matches!(error, RunError::Store(StoreError::Full { .. })) {
            *self.full.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        self.events.tell(ServiceEvent::Failed(error));
    }

    /// Tells why requests are refused, unless that was told a moment ago.
    pub(crate) fn tell_refused(&self, reason: &'static str) {
        if self.limits.may_tell(reason) {
            self.events.tell(ServiceEvent::Refused(reason));
        }
    }
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

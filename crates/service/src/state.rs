//! What every handler sees: the agent, who may ask, what runs, and what is counted. It knows no
//! address.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

#[cfg(feature = "memory")]
use adjutant_core::port::PastConversations;
use adjutant_core::port::{StoreError, TaskStore};
use adjutant_core::{CancellationToken, UserId};
use adjutant_runtime::{Agent, RunError};
use axum::response::Response;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, error, warn};

use crate::administration::Administration;
use crate::auth::{AccessRules, Auth, Caller, Shown};
use crate::door::{ConnectionLimits, Guests};
use crate::limits::{Limits, RunningTurn};
use crate::live::Runs;
use crate::mcp_sessions::Mcp;
use crate::metrics::{Gauge, Metrics, MetricsAccess};
use crate::origins::Origin;
use crate::problem::{FULL_FOR, Problem};
use crate::remote::Host;
use crate::used::{Uses, expires_at};

/// Time that the database has to say what was spent, when somebody reads the figures.
const BUDGET_ANSWERS: Duration = Duration::from_secs(2);

/// Why a service cannot take a request at this moment, in words for everybody; `None`: it can.
/// Asked at every `/readyz`.
pub type Readiness = Arc<dyn Fn() -> Option<&'static str> + Send + Sync>;

/// The model or agent that answers the requests of chat interfaces' own: for titles, tags,
/// suggestions. They quote a conversation, and whoever acted on them would do a second time what
/// was asked in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BackgroundPrompts {
    /// The language model without tools, also if the agent was asked.
    #[default]
    Plain,
    /// Whoever was asked.
    Agent,
}
/// Reads figures that others have, for `/metrics`. Asked at every look, and must not wait.
pub type Gauges = Arc<dyn Fn() -> Vec<Gauge> + Send + Sync>;

/// What every handler sees.
#[derive(Clone)]
pub(crate) struct Shared(Arc<App>);

/// The same for who is part of it: it does not keep it alive.
#[derive(Clone)]
pub(crate) struct WeakShared(Weak<App>);

impl Shared {
    pub(crate) fn new(app: App) -> Self {
        Self(Arc::new(app))
    }

    pub(crate) fn downgrade(&self) -> WeakShared {
        WeakShared(Arc::downgrade(&self.0))
    }
}

impl WeakShared {
    /// Returns what every handler sees, if the service is there.
    pub(crate) fn upgrade(&self) -> Option<Shared> {
        self.0.upgrade().map(Shared)
    }
}

pub(crate) struct App {
    pub(crate) agent: Agent,
    pub(crate) auth: Auth,
    /// For how long that holds, and who is more than a user.
    pub(crate) access: AccessRules,
    /// Times at which this process last noted uses of tokens.
    pub(crate) uses: Uses,
    pub(crate) hosts: Vec<String>,
    /// Origins whose pages may ask beside our own.
    pub(crate) origins: Vec<Origin>,
    /// Fires when the service is about to stop: it is not ready any more, and still answers.
    pub(crate) draining: CancellationToken,
    /// Fires when the service takes nothing new any more.
    pub(crate) stopping: CancellationToken,
    /// The turns that run, whether anybody waits for them or not.
    pub(crate) turns: Turns,
    /// The runs that go on here, and what can be told again of those that ended a moment ago.
    pub(crate) runs: Arc<Runs>,
    /// Tells other processes those that go on here.
    pub(crate) host: Arc<Host>,
    /// The sessions of MCP clients.
    pub(crate) mcp: Mcp,
    /// Where the tasks are that are shown beside a conversation, if there are any.
    pub(crate) tasks: OnceLock<Arc<dyn TaskStore>>,
    /// The data behind `/v1/admin`, if it is served here.
    pub(crate) administration: OnceLock<Administration>,
    /// What else has to be there, for `/readyz`.
    pub(crate) readiness: OnceLock<Readiness>,
    /// Gauges of other parts of the program, for `/metrics`.
    pub(crate) gauges: OnceLock<Gauges>,
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
    pub(crate) background_prompts: BackgroundPrompts,
    /// True if the model finds the titles of conversations.
    pub(crate) model_titles: bool,
    /// The memories of users, if there are any.
    #[cfg(feature = "memory")]
    pub(crate) memories: OnceLock<adjutant_memory::Memories>,
    /// The index of past conversations, if there is one.
    #[cfg(feature = "memory")]
    pub(crate) past: OnceLock<Arc<dyn PastConversations>>,
    /// True if a request's trace is passed on to models and MCP servers.
    pub(crate) trace_propagation: bool,
}

/// Tasks whose end the service waits for when it stops. Each is in the span of the request that
/// spawned it, so that what is logged in it says which one it is of.
#[derive(Clone, Default)]
pub(crate) struct Turns(TaskTracker);

impl Turns {
    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.0.spawn(task.in_current_span())
    }

    pub(crate) fn tracker(&self) -> &TaskTracker {
        &self.0
    }
}

impl App {
    /// Lets a user have one more turn, until what it gives is dropped. Every route that starts a
    /// turn asks this first.
    ///
    /// # Errors
    /// [`Problem`] 429 `limit_reached`: as many as are allowed run already; 503 `unavailable`: the
    /// service stops; 503 `busy`: as many run of all users.
    pub(crate) fn begin_turn(&self, user: &UserId) -> Result<RunningTurn, Problem> {
        if self.stopping.is_cancelled() {
            return Err(Problem::stopping());
        }
        self.limits.turn(user, &self.metrics)
    }

    /// Returns whom a secret stands for.
    pub(crate) async fn caller(&self, secret: &str) -> Result<Caller, Problem> {
        self.auth
            .caller(secret, self.agent.now(), &self.access.roles)
            .await
    }

    /// Notes that a token was used, if that is due, without holding up the request. The end of a
    /// session moves with it.
    pub(crate) fn note_use(&self, caller: &Caller) {
        let (Some(Shown { record, .. }), Some(tokens)) = (&caller.token, self.auth.tokens()) else {
            return;
        };
        let now = self.agent.now();
        if !self.uses.is_due(record, now) {
            return;
        }
        let (tokens, id, expires_at) = (
            tokens.clone(),
            record.id.clone(),
            expires_at(record, now, &self.access),
        );
        self.turns.spawn(async move {
            // A use that is not noted is noted with the next one; what is wrong with the store is
            // told by what needs it.
            let _ = tokens.token_used(&id, now, expires_at).await;
        });
    }

    /// Puts what came since into the figures, so that it does not pile up between two looks.
    pub(crate) fn keep_figures_up(&self) {
        if let Some(figures) = self.agent.dispatch_figures() {
            self.metrics.dispatched(&figures);
        }
        self.metrics.keep_up();
    }

    /// Returns the figures as Prometheus reads them.
    pub(crate) async fn rendered_figures(&self) -> Response {
        // A database that does not answer is told by other figures, and these are worth more
        // without it than late.
        if let Ok(Ok(left)) = timeout(BUDGET_ANSWERS, self.agent.everyone_left()).await {
            self.metrics.budget_left(&left);
        }
        self.metrics.queued(self.agent.inputs_queued());
        self.metrics
            .gauges(self.gauges.get().map(|gauges| gauges()).unwrap_or_default());
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
        self.note(&error);
        error!(%error, "something is wrong that is ours to mend");
    }

    /// Takes a failure into account when it is asked whether the service is ready.
    pub(crate) fn note(&self, error: &RunError) {
        if matches!(error, RunError::Store(StoreError::Full { .. })) {
            *self.full.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
    }

    /// Tells why requests are refused, unless that was told a moment ago.
    pub(crate) fn tell_refused(&self, reason: &'static str) {
        if self.limits.may_tell(reason) {
            warn!("{reason}");
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
        f.debug_struct("App")
            .field("agent", &self.agent)
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}

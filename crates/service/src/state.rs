//! State shared by all handlers: the agent, authentication, limits, runs and metrics.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

#[cfg(feature = "memory")]
use adjutant_core::port::ConversationIndex;
use adjutant_core::port::StoreError;
use adjutant_core::{CancellationToken, UserId};
use adjutant_runtime::{Agent, RunError};
use adjutant_tools::TaskStore;
use axum::response::Response;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, error, warn};

use crate::administration::Administration;
use crate::admission::{ConnectionLimits, Connections, Limits, RunningTurn};
use crate::auth::{AccessRules, Auth, Caller, Presented};
use crate::live::Runs;
use crate::mcp_sessions::Mcp;
use crate::metrics::{Gauge, Metrics, MetricsAccess};
use crate::origins::Origin;
use crate::problem::{NOT_STORING_FOR, Problem};
use crate::remote::Publisher;
use crate::token_use::{TokenUses, expires_at};
use crate::whole_data::WholeData;

/// Time limit for reading the spent budgets from the database when metrics are scraped.
const BUDGET_ANSWERS: Duration = Duration::from_secs(2);

/// Function that returns the reason for which the service cannot take requests at the moment, or
/// `None` if it can. The reason is public. Called for every request of `/readyz`.
pub type Readiness = Arc<dyn Fn() -> Option<&'static str> + Send + Sync>;

/// Handling of the requests that chat interfaces send on their own account: for titles, tags and
/// suggestions. These quote a conversation, so an agent with tools might carry out a second time
/// what the user asked for in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BackgroundPrompts {
    /// The plain language model answers, without tools, also if the client asked for the agent.
    #[default]
    Plain,
    /// The model or agent that the client named answers.
    Agent,
}

/// Function that returns metrics of other parts of the program, for `/metrics`. Called for every
/// scrape, so it must not block.
pub type Gauges = Arc<dyn Fn() -> Vec<Gauge> + Send + Sync>;

/// Reference to the state of the service, passed to every handler.
#[derive(Clone)]
pub(crate) struct Shared(Arc<App>);

/// Weak reference, for parts of the state that need the whole: a strong one would be a cycle.
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
    /// Returns the state, unless the service was dropped.
    pub(crate) fn upgrade(&self) -> Option<Shared> {
        self.0.upgrade().map(Shared)
    }
}

pub(crate) struct App {
    pub(crate) agent: Agent,
    pub(crate) auth: Auth,
    /// Lifetimes of sessions and tokens, and rules that give users roles.
    pub(crate) access: AccessRules,
    /// Last-used times of tokens.
    pub(crate) token_uses: TokenUses,
    /// Host names that the service answers to.
    pub(crate) hosts: Vec<String>,
    /// Other origins whose pages may call the service.
    pub(crate) origins: Vec<Origin>,
    /// Cancelled when a shutdown is announced: `/readyz` fails, requests are still answered.
    pub(crate) draining: CancellationToken,
    /// Cancelled when no new work is accepted any more.
    pub(crate) stopping: CancellationToken,
    /// Running turns, with or without a client that waits for them.
    pub(crate) turns: Turns,
    /// Runs in progress here and the events of those that ended recently.
    pub(crate) runs: Arc<Runs>,
    /// Streams the runs of this process to other processes.
    pub(crate) publisher: Arc<Publisher>,
    /// MCP server and the sessions of its clients.
    pub(crate) mcp: Mcp,
    /// Task store behind `/v1/tasks`, if there is one.
    pub(crate) tasks: OnceLock<Arc<dyn TaskStore>>,
    /// Data sources of `/v1/admin`, if these routes are served.
    pub(crate) administration: OnceLock<Administration>,
    /// Further condition of `/readyz`.
    pub(crate) readiness: OnceLock<Readiness>,
    /// Metrics of other parts of the program.
    pub(crate) gauges: OnceLock<Gauges>,
    /// Rate and concurrency limits of users.
    pub(crate) limits: Limits,
    /// Requests over all that a user has.
    pub(crate) whole_data: WholeData,
    /// Time at which a write last failed for want of disk space or because the disk failed, and the
    /// reason for `/readyz`.
    pub(crate) not_storing: Mutex<Option<(Instant, &'static str)>>,
    pub(crate) connection_limits: ConnectionLimits,
    /// Open connections.
    pub(crate) connections: Arc<Connections>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) metrics_access: MetricsAccess,
    /// True if the metrics have a listener of their own.
    pub(crate) metrics_elsewhere: bool,
    pub(crate) page: bool,
    pub(crate) background_prompts: BackgroundPrompts,
    /// Name of the service, for people.
    pub(crate) name: String,
    /// The people who run it, if they are named.
    pub(crate) contact: Option<String>,
    /// Longest message of `/v1/chat`, if it is less than that of the agent.
    pub(crate) chat_message_chars_max: Option<usize>,
    /// True if the model generates the titles of conversations.
    pub(crate) model_titles: bool,
    /// Memories of the users, if there are any.
    #[cfg(feature = "memory")]
    pub(crate) memories: OnceLock<adjutant_memory::Memories>,
    /// Index for searching past conversations, if there is one.
    #[cfg(feature = "memory")]
    pub(crate) conversation_search: OnceLock<Arc<dyn ConversationIndex>>,
    /// True if the trace context of a request is passed on to models and MCP servers.
    pub(crate) trace_propagation: bool,
}

/// Background tasks that a shutdown waits for. Each runs in the span of the request that spawned
/// it, so that its log lines have the request's id.
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
    /// Reserves a place among the user's concurrent turns, until the result is dropped. Every route
    /// that starts a turn calls this first.
    ///
    /// # Errors
    /// [`Problem`] 429 `limit_reached` if the user runs as many turns as allowed; 503 `unavailable`
    /// if the service is stopping; 503 `busy` if all users together run as many as allowed.
    pub(crate) fn begin_turn(&self, user: &UserId) -> Result<RunningTurn, Problem> {
        if self.stopping.is_cancelled() {
            return Err(Problem::stopping());
        }
        self.limits.start_turn(user, &self.metrics)
    }

    /// Returns the caller that a secret authenticates.
    pub(crate) async fn caller(&self, secret: &str) -> Result<Caller, Problem> {
        self.auth
            .caller(secret, self.agent.now(), &self.access.roles)
            .await
    }

    /// Records in the background that a token was used, at most once a minute. A session's expiry
    /// moves with it.
    pub(crate) fn note_use(&self, caller: &Caller) {
        let (Some(Presented { record, .. }), Some(tokens)) = (&caller.token, self.auth.tokens())
        else {
            return;
        };
        let now = self.agent.now();
        if !self.token_uses.is_due(record, now) {
            return;
        }
        // Cloned for a task that may outlive the request.
        let (tokens, id, expires_at) = (
            tokens.clone(),
            record.id.clone(),
            expires_at(record, now, &self.access),
        );
        self.turns.spawn(async move {
            // A failed write is made up for by the next use; a broken store is reported by requests
            // that need it.
            let _ = tokens.token_used(&id, now, expires_at).await;
        });
    }

    /// Moves recorded samples into the histograms. Called regularly: otherwise they accumulate in
    /// memory between two scrapes.
    pub(crate) fn update_metrics(&self) {
        if let Some(figures) = self.agent.dispatch_figures() {
            self.metrics.record_dispatches(&figures);
        }
        self.metrics.run_upkeep();
    }

    /// Returns the metrics in Prometheus' text format.
    pub(crate) async fn render_metrics(&self) -> Response {
        // Without an answer of the database the budgets are left out: a scrape that comes late is
        // worth less.
        if let Ok(Ok(left)) = timeout(BUDGET_ANSWERS, self.agent.shared_budget_left()).await {
            self.metrics.set_budget_left(&left);
        }
        self.metrics.set_queued(self.agent.inputs_queued());
        self.metrics
            .set_gauges(self.gauges.get().map(|gauges| gauges()).unwrap_or_default());
        self.update_metrics();
        self.metrics.render()
    }

    /// Returns true if `/metrics` is served together with the other routes.
    pub(crate) fn has_metrics(&self) -> bool {
        !self.metrics_elsewhere && self.metrics_access != MetricsAccess::Off
    }

    /// Returns the reason for which a write failed less than [`NOT_STORING_FOR`] ago, if the next one
    /// is likely to fail too.
    pub(crate) fn not_storing(&self) -> Option<&'static str> {
        let failed = *self
            .not_storing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        failed
            .filter(|(since, _)| since.elapsed() < NOT_STORING_FOR)
            .map(|(_, reason)| reason)
    }

    /// Logs an error that no request was answered with, and records it for readiness. Only one that
    /// neither the database nor its disk explains is called a defect.
    pub(crate) fn report(&self, error: &RunError) {
        self.record_failure(error);
        match error {
            RunError::Store(StoreError::Unavailable { .. }) => {
                warn!(%error, "the database was not there; the work is continued when it is");
            }
            RunError::Store(StoreError::Full { .. } | StoreError::DiskFailed { .. }) => {
                error!(%error, "nothing can be stored; the work is continued when it can");
            }
            _ => error!(%error, "something is wrong that is ours to mend"),
        }
    }

    /// Records a failure that affects whether the service is ready.
    pub(crate) fn record_failure(&self, error: &RunError) {
        let reason = match error {
            RunError::Store(StoreError::Full { .. }) => "there is no space to store anything",
            RunError::Store(StoreError::DiskFailed { .. }) => "the disk fails to store anything",
            _ => return,
        };
        *self
            .not_storing
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), reason));
    }

    /// Logs the reason for which requests are refused, at most a few times a minute.
    pub(crate) fn warn_refused(&self, reason: &'static str) {
        if self.limits.may_warn(reason) {
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

//! `GET /v1/admin/overview`: the state of the service.

use adjutant_core::port::{
    GroupBy, OperatorStore, StoreError, Totals, TotalsFilter, WaitingFilter,
};
use axum::Json;
use axum::extract::State;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::access::Administrator;
use super::people::{Group, Sum, TotalsList};
use super::span::Days;
use crate::administration::{Administration, ServerState};
use crate::problem::Problem;
use crate::state::Shared;
use crate::usage::{Bound, Quantity};

/// Groups of each table.
const LINES: u32 = 10;
/// Waiting time from which a pending confirmation is counted as long.
const LONG: SignedDuration = SignedDuration::from_hours(1);
/// Largest number of pending confirmations that are counted.
const QUESTIONS_MAX: u32 = 1_000;

/// State of the service at one point in time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "version": "adjutant 0.1.0", "model": "gemini/gemini-2.5-flash", "agent": "Adjutant", "at": "2026-01-31T09:00:00Z",
    "schema_version": 11, "sees_words": false,
    "day": {"turns": 120, "failed": 2, "input_tokens": 90000, "output_tokens": 8000, "cost_usd": 0.12, "cost_unknown": 0, "rated_up": 0, "rated_down": 0},
    "errors": [{"group": "network", "turns": 2, "failed": 2, "input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "cost_unknown": 0, "rated_up": 0, "rated_down": 0}],
    "models": [], "days": [], "is_cut": false, "unsettled": 1, "waiting": 3, "waiting_long": 1,
    "budgets": [{"quantity": "tokens", "spent": 98000, "limit": 1000000}],
    "servers": [{"name": "files", "state": "connected", "reason": null, "software": "files 1.0", "tools": 4, "changed": 0}],
    "workers": [{"id": "host-12", "seen_until": "2026-01-31T09:00:12Z"}]
}))]
pub(super) struct Overview {
    /// Name and version of the serving program.
    version: String,
    /// Provider and name of the model.
    model: String,
    /// Display name of the agent.
    agent: String,
    /// Time at which the numbers were read.
    at: Timestamp,
    /// Version of the database schema.
    schema_version: u64,
    /// True if operators are shown texts of users, models and tools.
    sees_words: bool,
    /// Sums over the turns of the last 24 hours.
    day: Sum,
    /// The failed ones among them, by error code.
    errors: Vec<Group>,
    /// The same turns, by model.
    models: Vec<Group>,
    /// Turns of the last seven days, by day in UTC, latest first.
    days: Vec<Group>,
    /// True if there are more turns than are summed: only the newest are counted.
    is_cut: bool,
    /// Conversations with unfinished work, counted up to 10,000.
    unsettled: u64,
    /// Conversations with pending confirmations, counted up to 10,000.
    waiting: u64,
    /// Conversations among them that have waited for more than an hour, counted up to 1,000.
    waiting_long: usize,
    /// Daily budgets (UTC) of all users together, with the amounts spent today; empty if there are
    /// none.
    budgets: Vec<SharedBudget>,
    /// MCP servers whose tools the agent has.
    servers: Vec<ServerState>,
    /// Processes that run turns at the moment.
    workers: Vec<Worker>,
}

/// A daily budget of all users together.
#[derive(Debug, Serialize, ToSchema)]
struct SharedBudget {
    /// Unit: `tokens`, `model_calls`, `tool_calls`, `seconds` or `usd`.
    #[schema(value_type = String)]
    quantity: Quantity,
    /// Amount spent today.
    spent: f64,
    /// Amount that may be spent in a day.
    limit: f64,
}

/// A process that runs turns.
#[derive(Debug, Serialize, ToSchema)]
struct Worker {
    /// Id of the process.
    id: String,
    /// Time at which its leases expire without another heartbeat.
    seen_until: Timestamp,
}

/// Returns the state of the service: turns, errors and cost of the last day, budgets, pending
/// confirmations, MCP servers and processes.
///
/// For operators. Contains no texts of users.
#[utoipa::path(get, path = "/v1/admin/overview", tag = "administration", operation_id = "admin_overview", responses(
    (status = 200, description = "The state of the service.", body = Overview),
    (status = 403, description = "The caller is not an operator."),
))]
pub(super) async fn overview(
    State(app): State<Shared>,
    Administrator { administration, .. }: Administrator,
) -> Result<Json<Overview>, Problem> {
    let now = app.agent.now();
    let store = &*administration.store;
    let totals = async |by, days: Days| add_up(store, by, days.before(now)).await;
    // The store groups by one key at a time.
    let errors = totals(GroupBy::Error, Days::DAY).await?;
    let models = totals(GroupBy::Model, Days::DAY).await?;
    let days = totals(GroupBy::Day, Days::WEEK).await?;
    let work = store.work().await?;
    let waiting = WaitingFilter {
        before: now.checked_sub(LONG).unwrap_or(Timestamp::MIN),
        after: None,
        limit: QUESTIONS_MAX,
    };
    let waiting_long = store.waiting(&waiting).await?.len();
    let budgets = budgets(&administration, now).await?;
    Ok(Json(Overview {
        version: administration.version.clone(),
        model: app.agent.model().id().to_string(),
        agent: app.agent.display_name().to_owned(),
        at: now,
        schema_version: work.schema_version,
        sees_words: administration.sees_words,
        day: Sum::from_total(&models.all),
        is_cut: models.is_cut || days.is_cut,
        errors: TotalsList::from_totals(errors).groups,
        models: TotalsList::from_totals(models).groups,
        days: TotalsList::from_totals(days).groups,
        unsettled: work.unsettled,
        waiting: work.waiting,
        waiting_long,
        budgets,
        servers: (administration.servers)(),
        workers: work
            .workers
            .into_iter()
            .map(|worker| Worker {
                id: worker.id,
                seen_until: worker.seen_until,
            })
            .collect(),
    }))
}

async fn add_up(
    store: &dyn OperatorStore,
    by: GroupBy,
    since: Timestamp,
) -> Result<Totals, StoreError> {
    let asked = TotalsFilter {
        user: None,
        since: Some(since),
        until: None,
        by,
        limit: LINES,
    };
    store.totals(&asked).await
}

/// Returns the limited quantities of the shared daily budget, with the amounts spent today.
async fn budgets(
    administration: &Administration,
    now: Timestamp,
) -> Result<Vec<SharedBudget>, StoreError> {
    let limits = &administration.budgets.everyone_per_day;
    // Without limits there is nothing to compare with, and nothing is read.
    if limits.is_unlimited() {
        return Ok(Vec::new());
    }
    let day = now.to_zoned(TimeZone::UTC).date();
    let spent = administration.spent.spent(None, day).await?;
    let mut bounds = Bound::all(limits, spent);
    // Here the cost is the last one, and not the first.
    bounds.sort_by_key(|bound| bound.quantity == Quantity::Usd);
    let budget = |bound: Bound| SharedBudget {
        quantity: bound.quantity,
        spent: bound.used,
        limit: bound.limit,
    };
    Ok(bounds.into_iter().map(budget).collect())
}

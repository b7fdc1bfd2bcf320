//! `GET /v1/usage`: the state of a user's rate limit, concurrent turns and budget.

use adjutant_core::{Allowance, Cost, Spending};
use axum::extract::State;
use axum::{Extension, Json};
use jiff::tz::TimeZone;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::{Problem, seconds_to_midnight};
use crate::state::Shared;
use crate::user::{RequestCaller, User};

/// State of the user's rate limit, concurrent turns and budget.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "requests": {"limit": 60, "remaining": 57, "reset_s": 3},
    "turns": {"limit": 4, "running": 1},
    "budget": {"day": "2026-11-26", "reset_s": 41000, "bounds": [
        {"quantity": "tokens", "limit": 250000.0, "used": 1200.0, "remaining": 248800.0}
    ]}
}))]
struct UserUsage {
    /// Requests a minute.
    requests: Requests,
    /// Concurrent turns.
    turns: Turns,
    /// Daily budget. `null`: not limited.
    budget: Option<Budget>,
}

/// State of the rate limit, including this request.
#[derive(Serialize, ToSchema)]
struct Requests {
    /// Requests allowed a minute.
    limit: u32,
    /// Requests that are allowed right now.
    remaining: u32,
    /// Seconds until `remaining` equals `limit` again, without further requests.
    reset_s: u64,
}

/// Concurrent turns in the process that answers.
#[derive(Serialize, ToSchema)]
struct Turns {
    /// Largest number of concurrent turns.
    limit: u32,
    /// Number of running turns.
    running: u32,
}

/// The user's budget of a day (UTC).
#[derive(Serialize, ToSchema)]
struct Budget {
    /// The day that the numbers are for.
    #[schema(value_type = String, format = Date)]
    day: jiff::civil::Date,
    /// Seconds until the end of the day, when the budget is renewed.
    reset_s: u64,
    /// The limited quantities.
    bounds: Vec<Bound>,
}

/// A limited quantity of the budget.
#[derive(Serialize, ToSchema)]
pub(crate) struct Bound {
    /// Kind of quantity, which is also its unit.
    pub(crate) quantity: Quantity,
    /// Amount that may be used in the day.
    pub(crate) limit: f64,
    /// Amount used by completed steps. Reservations of running steps are not included.
    pub(crate) used: f64,
    /// Amount left. A step starts only if its largest possible cost is within this and within what
    /// is left of the shared budget of all users.
    remaining: f64,
}

/// Quantities that a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Quantity {
    /// Cost in US dollars.
    Usd,
    /// Input and output tokens.
    Tokens,
    ModelCalls,
    ToolCalls,
    /// Seconds of model and tool calls.
    Seconds,
}

impl Bound {
    pub(crate) fn all(allowance: &Allowance, spent: Spending) -> Vec<Self> {
        let count = |number: u64| number as f64;
        let limits = [
            (Quantity::Usd, allowance.cost.map(Cost::usd)),
            (Quantity::Tokens, allowance.tokens.map(count)),
            (Quantity::ModelCalls, allowance.model_calls.map(count)),
            (Quantity::ToolCalls, allowance.tool_calls.map(count)),
            (
                Quantity::Seconds,
                allowance.time.map(|time| time.as_secs_f64()),
            ),
        ];
        let used = [
            spent.cost.usd(),
            count(spent.tokens),
            count(spent.model_calls),
            count(spent.tool_calls),
            count(spent.ms) / 1000.0,
        ];
        let bounds = limits.into_iter().zip(used);
        let bound = |((quantity, limit), used): ((Quantity, Option<f64>), f64)| {
            limit.map(|limit| Self {
                quantity,
                limit,
                used,
                remaining: (limit - used).max(0.0),
            })
        };
        bounds.filter_map(bound).collect()
    }
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(usage))
}

/// Returns the state of the caller's rate limit, concurrent turns and daily budget.
///
/// Requests and turns are counted per process, the budget over all processes.
#[utoipa::path(get, path = "/v1/usage", operation_id = "get_usage", tag = "session", responses(
    (status = 200, description = "Limits, and what is used of them.", body = UserUsage),
))]
async fn usage(
    State(app): State<Shared>,
    User(user): User,
    Extension(identified): Extension<RequestCaller>,
) -> Result<Json<UserUsage>, Problem> {
    let now = app.agent.now();
    let day = now.to_zoned(TimeZone::UTC).date();
    let per_day = app.agent.budgets().per_day;
    // Without limits the spent amounts are of no use, and are not read.
    let budget = match per_day.is_unlimited() {
        true => None,
        false => app.agent.spent(&user, day).await?.map(|spent| Budget {
            day,
            reset_s: seconds_to_midnight(now),
            bounds: Bound::all(&per_day, spent),
        }),
    };
    let (running, limit) = app.limits.running_turns(&user);
    // Set by the extractor of the user, which runs before this.
    let rate = identified.rate().ok_or_else(Problem::internal)?;
    Ok(Json(UserUsage {
        requests: Requests {
            limit: rate.limit,
            remaining: rate.remaining,
            reset_s: rate.reset,
        },
        turns: Turns { limit, running },
        budget,
    }))
}

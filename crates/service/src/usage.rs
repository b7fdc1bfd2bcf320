//! `GET /v1/usage`: what is left of a user's requests, turns and budget.

use adjutant_core::port::StoreError;
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
use crate::user::{Asker, User};

/// The user's requests, turns and budget: what is used and what is left.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "requests": {"limit": 60, "remaining": 57, "reset_s": 3},
    "turns": {"limit": 4, "running": 1},
    "budget": {"day": "2026-11-26", "reset_s": 41000, "bounds": [
        {"quantity": "tokens", "limit": 250000.0, "used": 1200.0, "remaining": 248800.0}
    ]}
}))]
struct UserUsage {
    requests: Requests,
    turns: Turns,
    /// The user's budget of a day. `null`: nothing of it is bounded.
    budget: Option<Budget>,
}

/// The requests of a minute, this one among them.
#[derive(Serialize, ToSchema)]
struct Requests {
    /// So many a minute.
    limit: u32,
    /// So many may come at once.
    remaining: u32,
    /// Seconds until `remaining` is `limit` again, if none comes meanwhile.
    reset_s: u64,
}

/// The turns that run here at this moment.
#[derive(Serialize, ToSchema)]
struct Turns {
    /// So many at the same time.
    limit: u32,
    running: u32,
}

/// The budget of a day of UTC.
#[derive(Serialize, ToSchema)]
struct Budget {
    #[schema(value_type = String, format = Date)]
    day: jiff::civil::Date,
    /// Seconds until the day ends, and with it what was used.
    reset_s: u64,
    /// One element for each quantity that is bounded.
    bounds: Vec<Bound>,
}

/// One bound of a day.
#[derive(Serialize, ToSchema)]
struct Bound {
    quantity: Quantity,
    limit: f64,
    /// The sum of what steps took that have ended. The most that a step may take is set aside while
    /// it runs, and is not in it.
    used: f64,
    /// A step is begun if the most that it may take is no more than this, and than what everybody
    /// together may still spend.
    remaining: f64,
}

/// The quantities that a budget counts.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Quantity {
    /// Dollars.
    Usd,
    Tokens,
    ModelCalls,
    ToolCalls,
    /// Seconds in models and tools.
    Seconds,
}

impl Bound {
    fn all(allowance: &Allowance, spent: Spending) -> Vec<Self> {
        let usd = |cost: Cost| cost.usd();
        let count = |number: u64| number as f64;
        let bounds = [
            (Quantity::Usd, allowance.cost.map(usd), usd(spent.cost)),
            (
                Quantity::Tokens,
                allowance.tokens.map(count),
                count(spent.tokens),
            ),
            (
                Quantity::ModelCalls,
                allowance.model_calls.map(count),
                count(spent.model_calls),
            ),
            (
                Quantity::ToolCalls,
                allowance.tool_calls.map(count),
                count(spent.tool_calls),
            ),
            (
                Quantity::Seconds,
                allowance.time.map(|time| time.as_secs_f64()),
                count(spent.ms) / 1000.0,
            ),
        ];
        let bound = |(quantity, limit, used): (Quantity, Option<f64>, f64)| {
            limit.map(|limit| Self {
                quantity,
                limit,
                used,
                remaining: (limit - used).max(0.0),
            })
        };
        bounds.into_iter().filter_map(bound).collect()
    }
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(usage))
}

/// The requests, turns and budget that are left to the user today.
///
/// Requests and turns are counted by the process that answers; what is spent, by all of them
/// together.
#[utoipa::path(get, path = "/v1/usage", operation_id = "get_usage", tag = "session", responses(
    (status = 200, description = "What is used and what is left.", body = UserUsage),
))]
async fn usage(
    State(app): State<Shared>,
    User(user): User,
    Extension(asker): Extension<Asker>,
) -> Result<Json<UserUsage>, Problem> {
    let now = app.agent.now();
    let day = now.to_zoned(TimeZone::UTC).date();
    let per_day = app.agent.budgets().per_day;
    let failed = |error: StoreError| Problem::store(&error);
    let budget = match per_day.is_unlimited() {
        true => None,
        false => app
            .agent
            .spent(&user, day)
            .await
            .map_err(failed)?
            .map(|spent| Budget {
                day,
                reset_s: seconds_to_midnight(now),
                bounds: Bound::all(&per_day, spent),
            }),
    };
    let (running, limit) = app.limits.turns_of(&user);
    let rate = asker.rate().ok_or_else(Problem::internal)?;
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

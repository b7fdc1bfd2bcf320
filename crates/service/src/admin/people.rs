//! Routes that list users and sum up their turns.

use adjutant_core::UserId;
use adjutant_core::port::{GroupBy, PeopleFilter, Total, Totals, TotalsFilter};
use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::access::Administrator;
use super::span::Days;
use crate::extract::QueryParams;
use crate::paging::{Limit, split_page};
use crate::problem::Problem;
use crate::state::Shared;
use crate::text_length::at_most;

/// Longest user name in a query, in Unicode characters.
const NAME_CHARS_MAX: usize = 1_000;

/// Sums over turns: number, failures, tokens, cost and ratings.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Sum {
    /// Number of turns.
    turns: u64,
    /// Turns that ended with an error code.
    failed: u64,
    /// Input tokens, as far as known.
    input_tokens: u64,
    /// Output tokens, as far as known.
    output_tokens: u64,
    /// Cost in US dollars, as far as known.
    cost_usd: f64,
    /// Number of turns whose cost is unknown.
    cost_unknown: u64,
    /// Number of turns whose answer was rated as useful.
    rated_up: u64,
    /// Number of turns whose answer was rated as not useful.
    rated_down: u64,
}

impl Sum {
    pub(super) fn from_total(total: &Total) -> Self {
        Self {
            turns: total.turns,
            failed: total.failed,
            input_tokens: total.input_tokens,
            output_tokens: total.output_tokens,
            cost_usd: total.cost.usd(),
            cost_unknown: total.cost_unknown,
            rated_up: total.rated_up,
            rated_down: total.rated_down,
        }
    }
}

/// A user with data in the store.
#[derive(Debug, Serialize, ToSchema)]
struct PersonState {
    /// Name of the user.
    user: String,
    /// Number of conversations, including those of tool calls without a model.
    conversations: u64,
    /// Number of conversations with pending confirmations.
    waiting: u64,
    /// Number of tasks.
    tasks: u64,
    /// Number of tokens that are not revoked.
    access_tokens: u64,
    #[serde(flatten)]
    sum: Sum,
    /// Time of the last event in one of their conversations.
    last_seen: Option<Timestamp>,
}

/// A page of users.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "users": [{"user": "anna", "conversations": 12, "waiting": 1, "tasks": 30, "access_tokens": 1, "turns": 40, "failed": 1,
               "input_tokens": 30000, "output_tokens": 2500, "cost_usd": 0.04, "cost_unknown": 0, "rated_up": 0, "rated_down": 0, "last_seen": "2026-01-31T08:59:00Z"}],
    "next_after": null
}))]
pub(super) struct PeopleList {
    /// The users, ordered by the bytes of their names.
    users: Vec<PersonState>,
    /// Value of `after` for the next page. `null`: this is the last page.
    next_after: Option<String>,
}

/// Page of users, and the period whose turns are summed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PeopleQuery {
    /// Only users whose name is greater than this one.
    #[param(max_length = 1000)]
    after: Option<String>,
    /// Period whose turns are summed, in days; default 30.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 366)]
    days: Option<Days>,
    /// Largest number of users.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
}

/// Lists users with data in the store, with sums over their turns.
///
/// For operators. Contains no texts of users.
#[utoipa::path(get, path = "/v1/admin/users", tag = "administration", operation_id = "admin_users", params(PeopleQuery), responses(
    (status = 200, description = "A page of users.", body = PeopleList),
    (status = 403, description = "The caller is not an operator."),
))]
pub(super) async fn users(
    State(app): State<Shared>,
    Administrator { administration, .. }: Administrator,
    QueryParams(query): QueryParams<PeopleQuery>,
) -> Result<Json<PeopleList>, Problem> {
    if let Some(after) = &query.after {
        at_most("after", after, NAME_CHARS_MAX)?;
    }
    let limit = query.limit.unwrap_or_default();
    let filter = PeopleFilter {
        after: query.after,
        since: Some(query.days.unwrap_or(Days::MONTH).before(app.agent.now())),
        // One more shows if there is another page.
        limit: limit.get() + 1,
    };
    let found = administration.store.people(&filter).await?;
    let (found, next_after) = split_page(found, limit, |person| person.user.clone());
    let users = found.into_iter().map(|person| PersonState {
        user: person.user,
        conversations: person.conversations,
        waiting: person.waiting,
        tasks: person.tasks,
        access_tokens: person.access_tokens,
        sum: Sum::from_total(&person.total),
        last_seen: person.last_seen,
    });
    Ok(Json(PeopleList {
        users: users.collect(),
        next_after,
    }))
}

/// Sums over the turns of one group.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Group {
    /// A user, model, day, outcome (empty: not ended) or error code.
    group: String,
    #[serde(flatten)]
    sum: Sum,
}

/// Sums over turns, in total and by group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "all": {"turns": 120, "failed": 2, "input_tokens": 90000, "output_tokens": 8000, "cost_usd": 0.12, "cost_unknown": 0, "rated_up": 0, "rated_down": 0},
    "groups": [{"group": "anna", "turns": 40, "failed": 1, "input_tokens": 30000, "output_tokens": 2500, "cost_usd": 0.04, "cost_unknown": 0, "rated_up": 0, "rated_down": 0}],
    "more_groups": true, "is_cut": false
}))]
pub(super) struct TotalsList {
    /// Sums over all turns, including those of groups that are left out.
    all: Sum,
    /// Groups with the most turns first; days latest first.
    pub(super) groups: Vec<Group>,
    /// True if groups were left out.
    more_groups: bool,
    /// True if there are over 100,000 turns: only the newest are summed.
    is_cut: bool,
}

impl TotalsList {
    pub(super) fn from_totals(totals: Totals) -> Self {
        let groups = totals.groups.into_iter().map(|group| Group {
            sum: Sum::from_total(&group.total),
            group: group.group,
        });
        Self {
            all: Sum::from_total(&totals.all),
            groups: groups.collect(),
            more_groups: totals.more_groups,
            is_cut: totals.is_cut,
        }
    }
}

/// Key by which turns are grouped.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum GroupKey {
    User,
    Model,
    Day,
    Outcome,
    /// Error code, of the turns that have one.
    Error,
}

/// The turns to sum, and the key to group them by.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TotalsQuery {
    /// Key by which turns are grouped.
    #[param(inline)]
    by: GroupKey,
    /// Only turns of this user.
    #[param(min_length = 1, max_length = 1000)]
    user: Option<String>,
    /// Period in days; default 1.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 366)]
    days: Option<Days>,
    /// Largest number of groups.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
}

/// Sums up the turns of all users, grouped by user, model, day, outcome or error.
///
/// For operators. Contains no texts of users.
#[utoipa::path(get, path = "/v1/admin/totals", tag = "administration", operation_id = "admin_totals", params(TotalsQuery), responses(
    (status = 200, description = "The sums.", body = TotalsList),
    (status = 403, description = "The caller is not an operator."),
))]
pub(super) async fn totals(
    State(app): State<Shared>,
    Administrator { administration, .. }: Administrator,
    QueryParams(query): QueryParams<TotalsQuery>,
) -> Result<Json<TotalsList>, Problem> {
    let filter = TotalsFilter {
        user: query.user.map(parse_user).transpose()?,
        since: Some(query.days.unwrap_or(Days::DAY).before(app.agent.now())),
        until: None,
        // A copy of the store's type, which has no OpenAPI schema.
        by: match query.by {
            GroupKey::User => GroupBy::User,
            GroupKey::Model => GroupBy::Model,
            GroupKey::Day => GroupBy::Day,
            GroupKey::Outcome => GroupBy::Outcome,
            GroupKey::Error => GroupBy::Error,
        },
        limit: query.limit.unwrap_or_default().get(),
    };
    let totals = administration.store.totals(&filter).await?;
    Ok(Json(TotalsList::from_totals(totals)))
}

/// Parses the query parameter `user`.
pub(super) fn parse_user(name: String) -> Result<UserId, Problem> {
    at_most("user", &name, NAME_CHARS_MAX)?;
    UserId::new(name).map_err(|error| Problem::invalid(format!("user: {error}")))
}

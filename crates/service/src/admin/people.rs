//! Everybody, and what their turns come to.

use adjutant_core::UserId;
use adjutant_core::port::{GroupBy, PeopleFilter, Person, Total, Totals, TotalsFilter};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::access::Administrator;
use super::span::Days;
use crate::length::at_most;
use crate::paging::Limit;
use crate::problem::Problem;
use crate::state::Shared;

/// The longest name that is asked for, in Unicode characters.
const NAME_CHARS_MAX: usize = 1_000;

/// Sums over turns: their number, failures, tokens and cost.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Sum {
    turns: u64,
    /// Those of them that have an error's code.
    failed: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// Money, as far as it is known.
    cost_usd: f64,
    /// Turns whose cost is not known.
    cost_unknown: u64,
    /// Turns whose answer a person rated as of use.
    rated_up: u64,
    /// Turns whose answer a person rated as of no use.
    rated_down: u64,
}

impl Sum {
    pub(super) fn of(total: &Total) -> Self {
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

/// Somebody who has something in the store.
#[derive(Debug, Serialize, ToSchema)]
struct PersonState {
    user: String,
    /// Calls by hand are conversations too.
    conversations: u64,
    /// Conversations that wait for the person.
    waiting: u64,
    tasks: u64,
    /// Tokens for the service that are not revoked.
    access_tokens: u64,
    #[serde(flatten)]
    sum: Sum,
    /// Time at which something last happened in one of their conversations.
    last_seen: Option<Timestamp>,
}

/// A page of everybody.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "users": [{"user": "anna", "conversations": 12, "waiting": 1, "tasks": 30, "access_tokens": 1, "turns": 40, "failed": 1,
               "input_tokens": 30000, "output_tokens": 2500, "cost_usd": 0.04, "cost_unknown": 0, "rated_up": 0, "rated_down": 0, "last_seen": "2026-01-31T08:59:00Z"}],
    "next_after": null
}))]
pub(super) struct PeopleList {
    /// In the order of their names' bytes.
    users: Vec<PersonState>,
    /// Ask for the next page with this as `after`. `null`: this was the last page.
    next_after: Option<String>,
}

/// The page of a list of users, and the days whose turns are added up.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PeopleQuery {
    /// Only those behind this name.
    #[param(max_length = 1000)]
    after: Option<String>,
    /// Add up the turns of so many days, 30 unless said otherwise.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 366)]
    days: Option<Days>,
    /// At most so many.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
}

/// Everybody who has something in the store, with what their turns came to.
///
/// For whoever runs the service. Nothing of what anybody said is in it.
#[utoipa::path(get, path = "/v1/admin/users", tag = "administration", operation_id = "admin_users", params(PeopleQuery), responses(
    (status = 200, description = "A page of the list.", body = PeopleList),
    (status = 403, description = "Whoever asks does not run the service."),
))]
pub(super) async fn users(
    State(app): State<Shared>,
    Administrator { administration, .. }: Administrator,
    query: Result<Query<PeopleQuery>, QueryRejection>,
) -> Result<Json<PeopleList>, Problem> {
    let Query(query) = query?;
    if let Some(after) = &query.after {
        at_most("after", after, NAME_CHARS_MAX)?;
    }
    let limit = query.limit.unwrap_or_default();
    let filter = PeopleFilter {
        after: query.after,
        since: Some(query.days.unwrap_or(Days::MONTH).before(app.agent.now())),
        // One more tells whether there is another page.
        limit: limit.get() + 1,
    };
    let mut found = administration
        .store
        .people(&filter)
        .await
        .map_err(|error| Problem::store(&error))?;
    let fit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
    let more = found.len() > fit;
    found.truncate(fit);
    let next_after = found.last().filter(|_| more).map(|last| last.user.clone());
    let users = found.into_iter().map(|person| {
        let Person {
            user,
            conversations,
            waiting,
            tasks,
            access_tokens,
            total,
            last_seen,
        } = person;
        PersonState {
            user,
            conversations,
            waiting,
            tasks,
            access_tokens,
            sum: Sum::of(&total),
            last_seen,
        }
    });
    Ok(Json(PeopleList {
        users: users.collect(),
        next_after,
    }))
}

/// The sums over the turns of one group.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Group {
    /// A user, a model, a day, an outcome (empty: they run) or an error's code.
    group: String,
    #[serde(flatten)]
    sum: Sum,
}

/// Sums over turns, in all and by group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "all": {"turns": 120, "failed": 2, "input_tokens": 90000, "output_tokens": 8000, "cost_usd": 0.12, "cost_unknown": 0, "rated_up": 0, "rated_down": 0},
    "groups": [{"group": "anna", "turns": 40, "failed": 1, "input_tokens": 30000, "output_tokens": 2500, "cost_usd": 0.04, "cost_unknown": 0, "rated_up": 0, "rated_down": 0}],
    "more_groups": true, "is_cut": false
}))]
pub(super) struct TotalsList {
    /// All turns that were looked at, also of groups that are left out.
    all: Sum,
    /// Those with the most turns first; days, latest first.
    pub(super) groups: Vec<Group>,
    /// There are more groups.
    more_groups: bool,
    /// There are over 100,000 turns: only the newest are added up.
    is_cut: bool,
}

impl TotalsList {
    pub(super) fn of(totals: Totals) -> Self {
        let Totals {
            all,
            groups,
            more_groups,
            is_cut,
        } = totals;
        let groups = groups.into_iter().map(|group| Group {
            sum: Sum::of(&group.total),
            group: group.group,
        });
        Self {
            all: Sum::of(&all),
            groups: groups.collect(),
            more_groups,
            is_cut,
        }
    }
}

/// A key by which turns are added up.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum By {
    User,
    Model,
    Day,
    Outcome,
    /// The code of their error, of those that have one.
    Error,
}

/// The turns to add up, and the key to group them by.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TotalsQuery {
    /// The key by which turns are added up.
    #[param(inline)]
    by: By,
    /// Only those of this user.
    #[param(min_length = 1, max_length = 1000)]
    user: Option<String>,
    /// Those of so many days, 1 unless said otherwise.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 366)]
    days: Option<Days>,
    /// At most so many groups.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
}

/// Adds up the turns of all users, by user, model, day, outcome or error.
///
/// For whoever runs the service. Nothing of what anybody said is in it.
#[utoipa::path(get, path = "/v1/admin/totals", tag = "administration", operation_id = "admin_totals", params(TotalsQuery), responses(
    (status = 200, description = "The sums.", body = TotalsList),
    (status = 403, description = "Whoever asks does not run the service."),
))]
pub(super) async fn totals(
    State(app): State<Shared>,
    Administrator { administration, .. }: Administrator,
    query: Result<Query<TotalsQuery>, QueryRejection>,
) -> Result<Json<TotalsList>, Problem> {
    let Query(query) = query?;
    let filter = TotalsFilter {
        user: query.user.map(user_named).transpose()?,
        since: Some(query.days.unwrap_or(Days::DAY).before(app.agent.now())),
        until: None,
        by: match query.by {
            By::User => GroupBy::User,
            By::Model => GroupBy::Model,
            By::Day => GroupBy::Day,
            By::Outcome => GroupBy::Outcome,
            By::Error => GroupBy::Error,
        },
        limit: query.limit.unwrap_or_default().get(),
    };
    let totals = administration
        .store
        .totals(&filter)
        .await
        .map_err(|error| Problem::store(&error))?;
    Ok(Json(TotalsList::of(totals)))
}

/// Reads the name of a user.
pub(super) fn user_named(name: String) -> Result<UserId, Problem> {
    at_most("user", &name, NAME_CHARS_MAX)?;
    UserId::new(name).map_err(|error| Problem::invalid(format!("user: {error}")))
}

//! `GET /v1/me`: who asks, whom they talk to, and what that can do.

use adjutant_core::{Allowance, Cost, Spending};
use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;

/// What a page needs to know first.
#[derive(Serialize, ToSchema)]
struct Me {
    user: String,
    /// How the service knows that: `token`, `jwt`, `proxy` or `none`.
    auth: &'static str,
    /// Provider and name.
    model: String,
    /// The model follows a script: nobody thinks.
    demo: bool,
    /// Something is remembered of who asks: see `/v1/memory`.
    memory: bool,
    agent: String,
    tools: Vec<ToolOffered>,
    /// What is bounded of what the user may spend in a day. Empty: nothing is.
    budget: Vec<Bound>,
    /// When the day of the budget ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_until: Option<Timestamp>,
}

/// One bound of the user's day, and how much of it is used. What runs at this moment is not in it.
#[derive(Serialize, ToSchema)]
struct Bound {
    /// `usd`, `tokens`, `model_calls`, `tool_calls`, or `seconds` in models and tools.
    of: &'static str,
    limit: f64,
    used: f64,
}

impl Bound {
    /// The bounds there are.
    fn all(allowance: Allowance, spent: Spending) -> Vec<Self> {
        let of = |of, limit: Option<f64>, used| limit.map(|limit| Self { of, limit, used });
        let number = |number: u64| number as f64;
        [
            of("usd", allowance.cost.map(Cost::usd), spent.cost.usd()),
            of("tokens", allowance.tokens.map(number), number(spent.tokens)),
            of("model_calls", allowance.model_calls.map(number), number(spent.model_calls)),
            of("tool_calls", allowance.tool_calls.map(number), number(spent.tool_calls)),
            of("seconds", allowance.time.map(|time| time.as_secs_f64()), number(spent.ms) / 1000.0),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// A tool of the agent's.
#[derive(Serialize, ToSchema)]
struct ToolOffered {
    name: String,
    /// A few words that name it to a person, if it has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The MCP server it is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    description: String,
    /// JSON Schema of its arguments.
    #[schema(value_type = Object)]
    parameters: Value,
    /// Changes nothing.
    read_only: bool,
    /// A person confirms it, unless the policy says otherwise.
    destructive: bool,
    /// Twice is the same as once.
    idempotent: bool,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(me))
}

/// Who asks, whom they talk to, and what that can do.
#[utoipa::path(get, path = "/v1/me", tag = "session", responses(
    (status = 200, description = "User, model, tools and budget.", body = Me),
))]
async fn me(State(app): State<Shared>, user: User) -> Result<Json<Me>, Problem> {
    #[cfg(feature = "memory")]
    let memory = crate::memory::memory_of(&app, &user).is_some();
    #[cfg(not(feature = "memory"))]
    let memory = false;
    let User(user) = user;
    let spent = app.agent.spent_today(&user).await.map_err(|error| Problem::store(&error))?;
    let budget_until = spent.and_then(|_| {
        let day = app.agent.now().to_zoned(TimeZone::UTC).tomorrow().and_then(|day| day.start_of_day());
        day.ok().map(|day| day.timestamp())
    });
    let registry = app.agent.tools();
    let tools = registry.definitions(None).into_iter().map(|tool| ToolOffered {
        title: registry.get(tool.name.as_str()).and_then(|tool| tool.title().map(str::to_owned)),
        server: tool.name.as_str().split_once("__").map(|(server, _)| server.to_owned()),
        name: tool.name.to_string(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
        read_only: tool.annotations.read_only,
        destructive: tool.annotations.destructive,
        idempotent: tool.annotations.idempotent,
    });
    let model = app.agent.model().id();
    Ok(Json(Me {
        user: user.into(),
        auth: app.auth.name(),
        model: model.to_string(),
        demo: model.provider.as_str() == "scripted",
        memory,
        agent: app.agent.display_name().to_owned(),
        tools: tools.collect(),
        budget: spent.map(|(allowance, spent)| Bound::all(allowance, spent)).unwrap_or_default(),
        budget_until,
    }))
}

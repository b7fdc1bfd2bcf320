//! `/v1/tools`: a person calls a tool without a model, through the same gate and into the same log.

use adjutant_core::{Arguments, PendingCall, Permission, ToolResult, UserId};
use adjutant_runtime::{Agent, HumanCall};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::User;
use crate::object::Object;
use crate::problem::Problem;
use crate::serve::Shared;

/// What a tool is called with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Invocation {
    /// Its arguments. Who asks is no part of them.
    #[serde(default)]
    #[schema(value_type = Object)]
    args: Arguments,
    /// The person has been shown what will be touched and says yes. Only `true` is a yes.
    #[serde(default)]
    confirm: bool,
}

/// What came of it.
#[derive(Debug, Serialize, ToSchema)]
struct Invoked {
    /// `success`, and `data` or `error`.
    #[schema(value_type = Object)]
    result: ToolResult,
    /// What it ran with, references resolved to ids.
    #[schema(value_type = Object)]
    args: Arguments,
    /// Words about it, if the tool has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(invoke))
}

/// Calls a tool. One that destroys something needs `confirm`; without it, nothing is done and the problem has a `preview`
/// of what would be touched. The call ends also when the client goes away; what ran is in the tool-invocation log.
#[utoipa::path(post, path = "/v1/tools/{name}/invoke", tag = "tasks", request_body = Invocation,
    params(("name" = String, Path, description = "The tool.")),
    responses(
        (status = 200, description = "It ran, or failed: see `success`.", body = Invoked),
        (status = 403, description = "The policy forbids it, or the host name or the page's origin may not ask."),
        (status = 409, description = "It needs a yes (`pending_confirmation`): `preview` says to what."),
    ))]
async fn invoke(
    State(app): State<Shared>,
    User(user): User,
    name: Result<Path<String>, PathRejection>,
    body: Result<Json<Object<Invocation>>, JsonRejection>,
) -> Result<Json<Invoked>, Problem> {
    let Path(name) = name?;
    let Json(Object(Invocation { args, confirm })) = body?;
    let Some(tool) = app.agent.tools().get(&name) else { return Err(Problem::unknown("tool")) };
    if app.agent.permission(&user, tool.definition()) == Permission::Deny {
        return Err(Problem::forbidden("the policy of this service does not allow that tool"));
    }
    let agent = app.agent.clone();
    let call = app.turns.spawn(async move { call(&agent, &user, &name, args, confirm).await });
    call.await.map_err(|_| Problem::internal())?.map(Json)
}

async fn call(
    agent: &Agent,
    user: &UserId,
    name: &str,
    args: Arguments,
    confirm: bool,
) -> Result<Invoked, Problem> {
    let failed = |error| Problem::store(&error);
    let mut called = agent.call_tool(user, name, args.clone(), None).await.map_err(failed)?;
    if let (HumanCall::Confirm(pending), true) = (&called, confirm) {
        called = agent.call_tool(user, name, args, Some(pending)).await.map_err(failed)?;
    }
    match called {
        HumanCall::Done { invocation, summary } => {
            Ok(Invoked { result: invocation.result, args: invocation.arguments, summary })
        }
        HumanCall::Confirm(pending) => Err(needs_a_yes(&pending)),
        HumanCall::Ask(question) => Err(Problem::invalid(question)),
        HumanCall::Refused(message) => Err(Problem::invalid(message)),
    }
}

fn needs_a_yes(pending: &PendingCall) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "pending_confirmation",
        "It needs a yes",
        format!("{}? Nothing was done; to do it, send the same with \"confirm\": true", pending.preview),
    )
    .with("preview", pending.preview.clone())
    .with("args", pending.arguments.clone())
}

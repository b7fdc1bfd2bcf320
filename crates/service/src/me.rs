//! `GET /v1/me`: who asks, whom they talk to, and what that can do.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

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
    /// Who asks runs the service, and can look at `/v1/admin`.
    operator: bool,
    agent: String,
    tools: Vec<ToolOffered>,
}

/// A tool of the agent's.
#[derive(Serialize, ToSchema)]
struct ToolOffered {
    name: String,
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
    (status = 200, description = "User, model and tools.", body = Me),
))]
async fn me(State(app): State<Shared>, user: User) -> Json<Me> {
    #[cfg(feature = "memory")]
    let memory = crate::memory::memory_of(&app, &user).is_some();
    #[cfg(not(feature = "memory"))]
    let memory = false;
    let User(user) = user;
    let operator = app.administration.get().is_some() && crate::admin::is_operator(&user);
    let tools = app.agent.tools().definitions(None).into_iter().map(|tool| ToolOffered {
        name: tool.name.to_string(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
        read_only: tool.annotations.read_only,
        destructive: tool.annotations.destructive,
        idempotent: tool.annotations.idempotent,
    });
    let model = app.agent.model().id();
    Json(Me {
        user: user.into(),
        auth: app.auth.name(),
        model: model.to_string(),
        demo: model.provider.as_str() == "scripted",
        memory,
        operator,
        agent: app.agent.display_name().to_owned(),
        tools: tools.collect(),
    })
}

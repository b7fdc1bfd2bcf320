//! `GET /v1/me`: who asks, whom they talk to, and what that can do.

use adjutant_core::LongMessage;
use adjutant_core::port::Role;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::Shared;
use crate::user::SignedIn;

/// What a page needs to know first.
#[derive(Serialize, ToSchema)]
struct Me {
    user: String,
    /// The user's role: `operator` or `user`.
    role: &'static str,
    /// True if the user's tokens and sessions are kept here: see `/v1/tokens`.
    tokens_here: bool,
    /// The method of authentication: `token`, `jwt`, `oidc`, `proxy` or `none`.
    auth: &'static str,
    /// Provider and name.
    model: String,
    /// The model follows a script: nobody thinks.
    demo: bool,
    /// Something is remembered of who asks: see `/v1/memory`.
    memory: bool,
    /// The name of the vault with the user's notes: links to them are looked up at
    /// `/v1/notes/links`. `null`: they have none here.
    vault: Option<String>,
    /// The place of the facts: `vault` or `database`; absent if `memory` is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    memory_in: Option<&'static str>,
    /// The model finds titles of conversations: a moment after the first answer there may be
    /// another one.
    model_titles: bool,
    /// The reason nothing is remembered; absent if `memory` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    memory_absent: Option<MemoryAbsent>,
    /// True if the user is an operator and can look at `/v1/admin`.
    operator: bool,
    agent: String,
    /// Unicode characters that a message may have. `null`: as many as the model can read.
    message_chars_max: Option<usize>,
    /// True if a longer one is cut, with a notice; else it is refused (`message_too_long`), and
    /// nothing is done.
    cuts_messages: bool,
    tools: Vec<AgentTool>,
}

/// The reason nothing is remembered of somebody.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"code": "no_vault", "detail": "This service has no folder of notes, so nothing is remembered."}))]
struct MemoryAbsent {
    /// `no_vault`, `not_yours`, `out_of_reach` or `not_built`.
    code: &'static str,
    /// In words for a person.
    detail: &'static str,
}

/// A tool of the agent's.
#[derive(Serialize, ToSchema)]
struct AgentTool {
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
///
/// It is what a client needs to know first: the user, how the service knows them, the model, and
/// the tools with the JSON Schemas of their arguments.
#[utoipa::path(get, path = "/v1/me", operation_id = "get_me", tag = "session", responses(
    (status = 200, description = "User, model and tools.", body = Me),
))]
async fn me(State(app): State<Shared>, SignedIn(caller): SignedIn) -> Json<Me> {
    #[cfg(feature = "memory")]
    let memory_absent = crate::memory::absent(&app, &caller.user);
    #[cfg(feature = "memory")]
    let memory_in = crate::memory::place(&app, &caller.user);
    #[cfg(not(feature = "memory"))]
    let memory_in = None;
    #[cfg(not(feature = "memory"))]
    let memory_absent = Some(("not_built", "This service was built without a memory."));
    #[cfg(feature = "memory")]
    let vault = crate::memory::memory_of(&app, &caller.user)
        .and_then(|memory| Some(memory.vault()?.name()));
    #[cfg(not(feature = "memory"))]
    let vault = None;
    let agent = app.agent.for_user(&caller.user);
    let registry = agent.tools();
    let tools = registry
        .definitions(None)
        .into_iter()
        .map(|tool| AgentTool {
            title: registry
                .get(tool.name.as_str())
                .and_then(|tool| tool.title().map(str::to_owned)),
            server: tool
                .name
                .as_str()
                .split_once("__")
                .map(|(server, _)| server.to_owned()),
            name: tool.name.to_string(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
            read_only: tool.annotations.read_only,
            destructive: tool.annotations.destructive,
            idempotent: tool.annotations.idempotent,
        });
    let model = agent.model().id();
    Json(Me {
        user: caller.user.into(),
        role: caller.role.as_str(),
        tokens_here: app.auth.tokens().is_some(),
        auth: app.auth.name(),
        model: model.to_string(),
        demo: model.provider.as_str() == "scripted",
        memory: memory_absent.is_none(),
        memory_in,
        memory_absent: memory_absent.map(|(code, detail)| MemoryAbsent { code, detail }),
        vault,
        model_titles: app.model_titles,
        operator: app.administration.get().is_some() && caller.role.includes(Role::Operator),
        agent: agent.display_name().to_owned(),
        message_chars_max: agent.limits().message_chars_max,
        cuts_messages: agent.limits().long_message == LongMessage::Cut,
        tools: tools.collect(),
    })
}

//! `GET /v1/me`: the caller, the agent, and its tools and capabilities.

use adjutant_core::LongMessage;
use adjutant_core::port::Role;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[cfg(feature = "memory")]
use crate::memory::MemoryState;
use crate::state::Shared;
use crate::user::SignedIn;

/// Tokens whose price stands for all: some vendors charge more for the tokens of a longer request.
const PRICED_TOKENS: u64 = 100_000;

/// The caller and the capabilities of the service: what a client needs to know first.
#[derive(Serialize, ToSchema)]
struct Me {
    /// Name of the user.
    user: String,
    /// Role of the user: `operator` or `user`.
    role: &'static str,
    /// True if this service stores the user's tokens and sessions: see `/v1/tokens`.
    tokens_here: bool,
    /// Method of authentication: `token`, `jwt`, `oidc`, `proxy` or `none`.
    auth: &'static str,
    /// Provider and name of the model.
    model: String,
    /// True if the model follows a script instead of being a language model.
    demo: bool,
    /// True if facts are remembered about the user: see `/v1/memory`.
    memory: bool,
    /// Name of the vault with the user's notes: links to them are looked up at `/v1/notes/links`.
    /// `null`: the user has no vault here.
    vault: Option<String>,
    /// Storage of the facts: `vault` or `database`; absent if `memory` is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    memory_in: Option<&'static str>,
    /// True if the model generates the titles of conversations: the title may change shortly after
    /// the answer to the second message that is not a greeting.
    model_titles: bool,
    /// Reason for which nothing is remembered; absent if `memory` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    memory_absent: Option<MemoryAbsent>,
    /// True if the user is an operator and may use `/v1/admin`.
    operator: bool,
    /// Name of the service, for people.
    service: String,
    /// Display name of the agent.
    agent: String,
    /// Longest message of a run, in Unicode characters; that of `POST /v1/chat` may be shorter.
    /// `null`: limited by the model's context window only.
    message_chars_max: Option<usize>,
    /// Price of a million tokens that the model reads, in US dollars. `null`: not known.
    input_usd_per_million: Option<f64>,
    /// True if a longer message is cut, with a notice; otherwise it is refused
    /// (`message_too_long`).
    cuts_messages: bool,
    /// The agent's tools for this user.
    tools: Vec<AgentTool>,
}

/// The reason for which nothing is remembered about the user.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"code": "no_vault", "detail": "This service has no folder of notes, so nothing is remembered."}))]
struct MemoryAbsent {
    /// `no_vault`, `not_yours`, `out_of_reach` or `not_built`.
    code: &'static str,
    /// Explanation for the user.
    detail: &'static str,
}

/// A tool that the agent can call.
#[derive(Serialize, ToSchema)]
struct AgentTool {
    /// Name of the tool.
    name: String,
    /// Short display name, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The MCP server that provides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// Description that the model reads.
    description: String,
    /// JSON Schema of the arguments.
    #[schema(value_type = Object)]
    parameters: Value,
    /// True if it changes nothing.
    read_only: bool,
    /// True if the user has to confirm calls, unless the policy says otherwise.
    destructive: bool,
    /// True if a repeated call has no further effect.
    idempotent: bool,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(me))
}

/// Returns the caller, the agent and its capabilities.
///
/// A client calls this first: the user and their role, the model, the memory, and the tools with
/// the JSON Schemas of their arguments.
#[utoipa::path(get, path = "/v1/me", operation_id = "get_me", tag = "session", responses(
    (status = 200, description = "User, model and tools.", body = Me),
))]
async fn me(State(app): State<Shared>, SignedIn(caller): SignedIn) -> Json<Me> {
    #[cfg(feature = "memory")]
    let MemoryState {
        stored_in: memory_in,
        vault,
        absent: memory_absent,
    } = MemoryState::for_user(&app, &caller.user);
    #[cfg(not(feature = "memory"))]
    let (memory_in, vault) = (None, None);
    #[cfg(not(feature = "memory"))]
    let memory_absent = Some(("not_built", "This service was built without a memory."));
    let agent = app.agent.for_user(&caller.user);
    let registry = agent.tools();
    let tools = registry
        .definitions(None)
        .into_iter()
        .map(|tool| AgentTool {
            title: registry
                .get(tool.name.as_str())
                .and_then(|tool| tool.title().map(str::to_owned)),
            // Tools of MCP servers are named `server__tool`.
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
        service: app.name.clone(),
        agent: agent.display_name().to_owned(),
        message_chars_max: agent.limits().message_chars_max,
        input_usd_per_million: agent
            .input_cost(PRICED_TOKENS)
            .map(|cost| cost.usd() * 1e6 / PRICED_TOKENS as f64),
        cuts_messages: agent.limits().long_message == LongMessage::Cut,
        tools: tools.collect(),
    })
}

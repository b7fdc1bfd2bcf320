//! `/v1/pending`: the pending calls of a user in all conversations, and previews of edited
//! arguments.

use adjutant_core::{Arguments, conversation, words};
use adjutant_runtime::EditError;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::{JsonBody, PathParam};
use crate::problem::Problem;
use crate::state::Shared;
use crate::thread_id::parse_thread_id;
use crate::user::User;
use crate::wire::Pending;

/// A pending call with its conversation.
#[derive(Debug, Serialize, ToSchema)]
struct PendingInThread {
    /// The conversation to answer in with `/v1/chat`. Tool calls without a model have conversations
    /// that `/v1/threads` does not list.
    thread_id: String,
    #[serde(flatten)]
    call: Pending,
}

/// The user's pending calls.
#[derive(Debug, Serialize, ToSchema)]
struct PendingList {
    /// The pending calls, oldest first.
    pending: Vec<PendingInThread>,
}

/// Edited arguments for a pending call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"thread_id": "t_1", "args": {"task_id": "4"}}))]
struct EditedArguments {
    /// The conversation in which the call is pending.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: String,
    /// The edited arguments.
    #[schema(value_type = Object)]
    args: Arguments,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(preview))
}

/// Lists the user's pending calls.
///
/// These are confirmations and calls in doubt, each with its conversation. They are answered with
/// `thread_id` and `resume` of `/v1/chat`.
#[utoipa::path(get, path = "/v1/pending", operation_id = "list_pending", tag = "chat", responses(
    (status = 200, description = "The pending calls.", body = PendingList),
))]
async fn list(State(app): State<Shared>, User(user): User) -> Result<Json<PendingList>, Problem> {
    let mut pending = Vec::new();
    for (key, _) in app
        .agent
        .journal()
        .parked(app.agent.name(), Some(&user))
        .await?
    {
        // Read again, because the call may have been answered in the meantime.
        let events = app.agent.journal().load(&key).await?.events;
        pending.extend(
            conversation::pending(&events)
                .into_iter()
                .map(|call| PendingInThread {
                    thread_id: key.conversation.to_string(),
                    call: Pending::from_call(call),
                }),
        );
    }
    Ok(Json(PendingList { pending }))
}

/// Returns the confirmation that a pending call would need with edited arguments.
///
/// Nothing is executed, and the call stays pending. The returned `interrupt_id`, sent as `shown`
/// with `editedArgs`, states that the user has seen this preview; without it, the user is asked to
/// confirm the edited arguments before anything is executed.
#[utoipa::path(post, path = "/v1/pending/{interrupt_id}/preview", operation_id = "preview_pending", tag = "chat", request_body = EditedArguments,
    params(("interrupt_id" = String, Path, description = "The `interrupt_id` of the pending call.")),
    responses(
        (status = 200, description = "The confirmation with these arguments, references resolved.", body = Pending),
        (status = 404, description = "The conversation has no such pending confirmation (any more)."),
        (status = 422, description = "The arguments cannot be used; `detail` has the reason."),
    ))]
async fn preview(
    State(app): State<Shared>,
    User(user): User,
    PathParam(id): PathParam,
    JsonBody(EditedArguments { thread_id, args }): JsonBody<EditedArguments>,
) -> Result<Json<Pending>, Problem> {
    let key = app.agent.key_for(user, parse_thread_id(&thread_id)?);
    match app.agent.preview_edited_call(&key, &id, args).await {
        Ok(question) => Ok(Json(Pending::from_call(question))),
        Err(EditError::Unusable(reason)) => Err(Problem::invalid(words::edited_unusable(&reason))),
        Err(EditError::Store(error)) => Err(error.into()),
        Err(_) => Err(Problem::unknown(
            "pending call: it was answered, has expired, or never existed",
        )),
    }
}

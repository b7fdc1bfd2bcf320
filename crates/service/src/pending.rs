//! `/v1/pending`: everything that waits for whoever asks, in whichever conversation, and what it
//! would be with other arguments.

use adjutant_core::port::StoreError;
use adjutant_core::{Arguments, conversation, words};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::chat::conversation_of;
use crate::object::Object;
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;
use crate::wire::Pending;

/// A call that waits, and where.
#[derive(Debug, Serialize, ToSchema)]
struct Waiting {
    /// The conversation; `/v1/chat` takes the answer with it. Calls without a model have one of
    /// their own, which `/v1/threads` does not list.
    thread_id: String,
    #[serde(flatten)]
    call: Pending,
}

/// Everything that waits.
#[derive(Debug, Serialize, ToSchema)]
struct PendingList {
    /// The oldest first.
    pending: Vec<Waiting>,
}

/// Other arguments for a call that waits.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"thread_id": "t_1", "args": {"task_id": "4"}}))]
struct Edited {
    /// The conversation in which the call waits.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: String,
    /// The arguments that it would be called with.
    #[schema(value_type = Object)]
    args: Arguments,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(preview))
}

/// Everything of the user that waits for an answer.
///
/// That is confirmations, and calls of which nobody knows whether they were done, each with the
/// conversation that it waits in. `/v1/chat` with `thread_id` and `resume` answers it.
#[utoipa::path(get, path = "/v1/pending", operation_id = "list_pending", tag = "chat", responses(
    (status = 200, description = "What waits.", body = PendingList),
))]
async fn list(State(app): State<Shared>, User(user): User) -> Result<Json<PendingList>, Problem> {
    let failed = |error: StoreError| Problem::store(&error);
    let mut pending = Vec::new();
    for (key, _) in app
        .agent
        .journal()
        .parked(app.agent.name(), Some(&user))
        .await
        .map_err(failed)?
    {
        // What was answered meanwhile is not in it.
        let events = app.agent.journal().load(&key).await.map_err(failed)?.events;
        pending.extend(
            conversation::pending(&events)
                .into_iter()
                .map(|call| Waiting {
                    thread_id: key.conversation.to_string(),
                    call: Pending::of(call),
                }),
        );
    }
    Ok(Json(PendingList { pending }))
}

/// Returns the question that a waiting confirmation is with other arguments: what exactly would be
/// touched.
///
/// Nothing is done, and the call waits as before. The `interrupt_id` of the answer, sent back as
/// `shown` beside `editedArgs`, says that the person has seen it; without it, other arguments are
/// asked about again before anything is done.
#[utoipa::path(post, path = "/v1/pending/{interrupt_id}/preview", operation_id = "preview_pending", tag = "chat", request_body = Edited,
    params(("interrupt_id" = String, Path, description = "What waits, as it was shown.")),
    responses(
        (status = 200, description = "The question with these arguments, references resolved.", body = Pending),
        (status = 404, description = "Nothing of that name waits in the conversation for a yes (any more)."),
        (status = 422, description = "It cannot be done with these arguments; `detail` says why."),
    ))]
async fn preview(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
    body: Result<Json<Object<Edited>>, JsonRejection>,
) -> Result<Json<Pending>, Problem> {
    let Path(id) = id?;
    let Json(Object(Edited { thread_id, args })) = body?;
    let key = app.agent.key_of(user, conversation_of(&thread_id)?);
    let question = app
        .agent
        .question_with(&key, &id, args)
        .await
        .map_err(|error| Problem::store(&error))?;
    let gone = "pending call: it was answered, its time has run out, or it was never asked";
    match question.ok_or_else(|| Problem::unknown(gone))? {
        Ok(question) => Ok(Json(Pending::of(question))),
        Err(reason) => Err(Problem::invalid(words::edited_unusable(&reason))),
    }
}

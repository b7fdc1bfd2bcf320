//! `/v1/pending`: everything that waits for whoever asks, in whichever conversation.

use adjutant_core::conversation;
use adjutant_core::port::StoreError;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;
use crate::wire::Pending;

/// A call that waits, and where.
#[derive(Debug, Serialize, ToSchema)]
struct Waiting {
    /// The conversation; `/v1/chat` takes the answer with it. Calls without a model have one of their own, which
    /// `/v1/threads` does not list.
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

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Everything of the user that waits for an answer.
///
/// That is confirmations, and calls of which nobody knows whether they were done, each with the conversation that it waits in.
/// `/v1/chat` with `thread_id` and `resume` answers it.
#[utoipa::path(get, path = "/v1/pending", operation_id = "list_pending", tag = "chat", responses(
    (status = 200, description = "What waits.", body = PendingList),
))]
async fn list(State(app): State<Shared>, User(user): User) -> Result<Json<PendingList>, Problem> {
    let failed = |error: StoreError| Problem::store(&error);
    let mut pending = Vec::new();
    for (key, _) in app.agent.journal().parked(app.agent.name(), Some(&user)).await.map_err(failed)? {
        // What was answered meanwhile is not in it.
        let events = app.agent.journal().load(&key).await.map_err(failed)?.events;
        pending.extend(
            conversation::pending(&events)
                .into_iter()
                .map(|call| Waiting { thread_id: key.conversation.to_string(), call: Pending::of(call) }),
        );
    }
    Ok(Json(PendingList { pending }))
}

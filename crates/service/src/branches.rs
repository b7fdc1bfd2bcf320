//! `/v1/threads/{thread_id}/branches`: other ways to go on from an earlier place of a conversation.

use adjutant_core::port::{Alternatives, BranchPoint, StoreError};
use adjutant_core::{ConversationId, ConversationKey, Event, InputBody, Recorded, TurnId, UserId};
use adjutant_runtime::BranchError;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::chat::conversation_of;
use crate::object::Object;
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;

/// Where a branch is to begin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"before": "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11"}))]
struct NewBranch {
    /// The turn (`run_id`) that the branch does not have any more: it begins with what was said
    /// before. Without it, the last one.
    #[schema(value_type = Option<uuid::Uuid>)]
    before: Option<TurnId>,
    /// The branch, by an id or a name of your own: sent again with the same one, it is the same
    /// branch. Without it, a new one.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: Option<String>,
}

/// A branch. Send `message`, or what it is to become, with this `thread_id`.
#[derive(Debug, Serialize, ToSchema)]
struct MadeBranch {
    thread_id: String,
    /// The conversation that it has its beginning in common with.
    branched_from: String,
    /// What was said in the turn that it does not have any more. `null`: a call without a model.
    message: Option<String>,
}

/// The branches of a conversation, and those beside it.
#[derive(Debug, Serialize, ToSchema)]
struct Branches {
    /// The conversation that this one has its beginning in common with. `null`: it is no branch.
    branched_from: Option<String>,
    /// The turns that other conversations have another one in the place of, oldest first.
    alternatives: Vec<Alternative>,
}

/// A turn, and the conversations that differ there.
#[derive(Debug, Serialize, ToSchema)]
struct Alternative {
    /// The turn in this conversation.
    #[schema(value_type = String)]
    run_id: TurnId,
    /// All conversations with a turn in this place, in the order in which they were begun.
    thread_ids: Vec<String>,
    /// Which of them this one is, or comes from: counted from 0.
    current: usize,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(branches, branch))
}

/// Makes a branch: a conversation with what was said before a turn, which goes on differently.
///
/// It is how an earlier message is edited, and how another answer is asked for. The conversation
/// itself stays as it is, and nothing of what waits in it waits in the branch.
#[utoipa::path(post, path = "/v1/threads/{thread_id}/branches", operation_id = "create_branch", tag = "threads", request_body = NewBranch,
    params(("thread_id" = String, Path, description = "Our id of it, or the name it was begun with.")),
    responses(
        (status = 200, description = "The branch.", body = MadeBranch),
        (status = 404, description = "There is no such conversation (`unknown`), or it has no such turn."),
        (status = 409, description = "`thread_id` is that of another conversation (`thread_exists`)."),
    ))]
async fn branch(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
    body: Result<Json<Object<NewBranch>>, JsonRejection>,
) -> Result<Json<MadeBranch>, Problem> {
    let key = key(&app, user, id)?;
    let Json(Object(NewBranch { before, thread_id })) = body?;
    let id = thread_id.as_deref().map(conversation_of).transpose()?;
    let made = app.agent.branch(&key, before, id).await.map_err(problem)?;
    Ok(Json(MadeBranch {
        thread_id: thread_id.unwrap_or_else(|| made.context.conversation.to_string()),
        branched_from: made.from.conversation.to_string(),
        message: match made.input {
            InputBody::Message { text, .. } => Some(text),
            InputBody::Answers { .. } | InputBody::Cancel | InputBody::Call(_) => None,
        },
    }))
}

/// The branches around a conversation.
///
/// That is the conversation that a branch comes from, and the turns in the place of which other
/// conversations have another one.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/branches", operation_id = "list_branches", tag = "threads",
    params(("thread_id" = String, Path, description = "Our id of it, or the name it was begun with.")),
    responses((status = 200, description = "Its branches, and those beside it.", body = Branches)))]
async fn branches(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Branches>, Problem> {
    let key = key(&app, user, id)?;
    let failed = |error: StoreError| Problem::store(&error);
    let conversations = app.agent.conversations();
    let summary = conversations.summary(&key).await.map_err(failed)?;
    let summary = summary.ok_or_else(|| Problem::unknown("conversation"))?;
    let found = conversations.alternatives(&key).await.map_err(failed)?;
    let events = match found.is_empty() {
        true => Vec::new(),
        false => {
            app.agent
                .journal()
                .load(&key)
                .await
                .map_err(|error| Problem::run(&error.into()))?
                .events
        }
    };
    let told = found
        .into_iter()
        .filter_map(|place| Alternative::of(place, &events));
    Ok(Json(Branches {
        branched_from: summary
            .branched_from
            .map(|BranchPoint { conversation, .. }| conversation.to_string()),
        alternatives: told.collect(),
    }))
}

impl Alternative {
    /// Returns the first turn behind the place, with its alternatives. `None`: there is none yet.
    fn of(place: Alternatives, events: &[Recorded]) -> Option<Self> {
        let behind = usize::try_from(place.seq)
            .ok()
            .and_then(|seq| events.get(seq..))?;
        let run_id = behind.iter().find_map(|recorded| match &*recorded.event {
            Event::TurnStarted { turn, .. } => Some(*turn),
            _ => None,
        })?;
        let thread_ids = place
            .conversations
            .iter()
            .map(ConversationId::to_string)
            .collect();
        Some(Self {
            run_id,
            thread_ids,
            current: place.current,
        })
    }
}

fn key(
    app: &Shared,
    user: UserId,
    id: Result<Path<String>, PathRejection>,
) -> Result<ConversationKey, Problem> {
    let Path(id) = id?;
    // What cannot be a name is the name of nothing.
    let conversation = conversation_of(&id).map_err(|_| Problem::unknown("conversation"))?;
    Ok(app.agent.key_of(user, conversation))
}

fn problem(error: BranchError) -> Problem {
    match error {
        BranchError::NoSuchConversation => Problem::unknown("conversation"),
        BranchError::NoSuchTurn => Problem::unknown("turn in this conversation"),
        BranchError::Store(StoreError::Reused) => Problem::new(
            StatusCode::CONFLICT,
            "thread_exists",
            "There is such a conversation",
            "the thread_id of the branch is that of another conversation; nothing was done",
        ),
        BranchError::Store(error) => Problem::run(&error.into()),
        _ => Problem::internal(),
    }
}

//! `/v1/threads/{thread_id}/branches`: conversations that continue differently from an earlier
//! turn.

use adjutant_core::port::{Alternatives, BranchPoint, StoreError};
use adjutant_core::{ConversationId, Event, InputBody, Recorded, TurnId};
use adjutant_runtime::BranchError;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::JsonBody;
use crate::problem::Problem;
use crate::state::Shared;
use crate::thread_id::{ThreadPath, parse_thread_id};

/// Position at which a branch begins.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"before": "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11"}))]
struct NewBranch {
    /// The first turn (`run_id`) that the branch does not contain. Default: the last turn.
    #[schema(value_type = Option<uuid::Uuid>)]
    before: Option<TurnId>,
    /// Id of the branch, or a name chosen by the client. A repeated name is the same branch.
    /// Default: a new id.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: Option<String>,
}

/// A new branch. Send `message`, or an edited one, to this `thread_id`.
#[derive(Debug, Serialize, ToSchema)]
struct MadeBranch {
    /// Id of the branch, or the name that the client sent.
    thread_id: String,
    /// The conversation whose beginning the branch shares.
    branched_from: String,
    /// The user's message in the first turn that the branch lacks. `null`: a tool call without a
    /// model.
    message: Option<String>,
}

/// The branches of a conversation, with their siblings.
#[derive(Debug, Serialize, ToSchema)]
struct Branches {
    /// The conversation whose beginning this one shares. `null`: it is not a branch.
    branched_from: Option<String>,
    /// Turns that are different in other conversations, oldest first.
    alternatives: Vec<Alternative>,
}

/// A turn with the conversations that differ from it.
#[derive(Debug, Serialize, ToSchema)]
struct Alternative {
    /// Id of the turn in this conversation.
    #[schema(value_type = String)]
    run_id: TurnId,
    /// The conversations with a turn at this position, in the order of their creation.
    thread_ids: Vec<String>,
    /// Index in `thread_ids` of this conversation, or of the one that it descends from.
    current: usize,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(branches, branch))
}

/// Creates a branch: a conversation with the turns before a given one.
///
/// Used to edit an earlier message, or to get another answer. The original conversation does not
/// change. Pending calls are not copied.
#[utoipa::path(post, path = "/v1/threads/{thread_id}/branches", operation_id = "create_branch", tag = "threads", request_body = NewBranch,
    params(("thread_id" = String, Path, description = "Id of the conversation, or the client's name for it.")),
    responses(
        (status = 200, description = "The branch.", body = MadeBranch),
        (status = 404, description = "The conversation (`unknown`) or the turn does not exist."),
        (status = 409, description = "`thread_id` names another conversation (`thread_exists`)."),
    ))]
async fn branch(
    State(app): State<Shared>,
    ThreadPath(key): ThreadPath,
    JsonBody(NewBranch { before, thread_id }): JsonBody<NewBranch>,
) -> Result<Json<MadeBranch>, Problem> {
    let id = thread_id.as_deref().map(parse_thread_id).transpose()?;
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

/// Lists the branches of a conversation.
///
/// These are the conversation that it descends from, and the turns that are different in other
/// conversations.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/branches", operation_id = "list_branches", tag = "threads",
    params(("thread_id" = String, Path, description = "Id of the conversation, or the client's name for it.")),
    responses((status = 200, description = "The branches and their siblings.", body = Branches)))]
async fn branches(
    State(app): State<Shared>,
    ThreadPath(key): ThreadPath,
) -> Result<Json<Branches>, Problem> {
    let conversations = app.agent.conversations();
    let summary = conversations.summary(&key).await?;
    let summary = summary.ok_or_else(|| Problem::unknown("conversation"))?;
    let found = conversations.alternatives(&key).await?;
    // The whole conversation is only needed to find the turns at the branch points.
    let events = match found.is_empty() {
        true => Vec::new(),
        false => {
            app.agent
                .journal()
                .load(&key)
                .await
                // As an error of a run, which names a conversation that a newer version wrote as
                // unreadable.
                .map_err(|error| Problem::run(&error.into()))?
                .events
        }
    };
    let alternatives = found
        .into_iter()
        .filter_map(|position| Alternative::from_position(position, &events));
    Ok(Json(Branches {
        branched_from: summary
            .branched_from
            .map(|BranchPoint { conversation, .. }| conversation.to_string()),
        alternatives: alternatives.collect(),
    }))
}

impl Alternative {
    /// Returns the first turn after the position, with its alternatives; `None` if there is none
    /// yet.
    fn from_position(place: Alternatives, events: &[Recorded]) -> Option<Self> {
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

fn problem(error: BranchError) -> Problem {
    match error {
        BranchError::NoSuchConversation => Problem::unknown("conversation"),
        BranchError::NoSuchTurn => Problem::unknown("turn in this conversation"),
        BranchError::Store(StoreError::Reused) => Problem::new(
            StatusCode::CONFLICT,
            "thread_exists",
            "The conversation exists already",
            "the thread_id of the branch is that of another conversation; nothing was done",
        ),
        BranchError::Store(error) => Problem::run(&error.into()),
        error => Problem::internal_error(&error),
    }
}

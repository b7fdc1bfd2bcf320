//! `/v1/turns/{turn_id}/feedback`: what a person thinks of an answer.

use adjutant_core::port::{LogStore, Rated};
use adjutant_core::{COMMENT_CHARS_MAX, Feedback, Rating, TurnId, UserId};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::length::at_most;
use crate::object::Object;
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;

/// A person's opinion of an answer.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"rating": "down", "comment": "The date is wrong."}))]
pub(crate) struct Opinion {
    /// `up`: the answer was of use. `down`: it was not.
    #[schema(value_type = String, pattern = "^(up|down)$")]
    rating: Rating,
    /// The reason, in the person's words; control characters but line ends become spaces. Operators
    /// read it with the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000)]
    comment: Option<String>,
}

impl Opinion {
    pub(crate) fn of(feedback: Feedback) -> Self {
        Self {
            rating: feedback.rating,
            comment: feedback.comment,
        }
    }
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(rate, take_back))
}

/// Keeps what a person thinks of the answer of a turn.
///
/// It replaces what they thought of it before. It stands in the decision log, where operators read
/// it; how much of a comment is kept, `log.content` says.
#[utoipa::path(put, path = "/v1/turns/{turn_id}/feedback", operation_id = "rate_answer", tag = "threads", request_body = Opinion,
    params(("turn_id" = String, Path, description = "The turn: `run_id` elsewhere.")),
    responses(
        (status = 204, description = "It is kept."),
        (status = 404, description = "Whoever asks has no such turn."),
        (status = 409, description = "The turn runs or waits (`running`): there is no answer yet."),
    ))]
async fn rate(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
    body: Result<Json<Object<Opinion>>, JsonRejection>,
) -> Result<StatusCode, Problem> {
    let turn = turn(id)?;
    let Json(Object(Opinion { rating, comment })) = body?;
    if let Some(comment) = &comment {
        at_most("comment", comment, COMMENT_CHARS_MAX)?;
    }
    let feedback = Feedback::new(rating, comment.as_deref(), app.agent.now())
        .map_err(|error| Problem::invalid(error.to_string()))?;
    let before = keep(&**app.agent.logs(), &user, turn, Some(&feedback)).await?;
    if before != Some(rating) {
        app.metrics.rated(rating);
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Takes back what a person thought of the answer of a turn.
///
/// Without a rating nothing changes.
#[utoipa::path(delete, path = "/v1/turns/{turn_id}/feedback", operation_id = "take_rating_back", tag = "threads",
    params(("turn_id" = String, Path, description = "The turn: `run_id` elsewhere.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 404, description = "Whoever asks has no such turn."),
        (status = 409, description = "The turn runs or waits (`running`): there is no answer yet."),
    ))]
async fn take_back(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    keep(&**app.agent.logs(), &user, turn(id)?, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reads the id of a turn. What cannot be one is that of nothing.
fn turn(id: Result<Path<String>, PathRejection>) -> Result<TurnId, Problem> {
    let Path(id) = id?;
    id.parse().map_err(|_| Problem::unknown("turn"))
}

/// Keeps it, and returns the rating there was before.
async fn keep(
    logs: &dyn LogStore,
    user: &UserId,
    turn: TurnId,
    feedback: Option<&Feedback>,
) -> Result<Option<Rating>, Problem> {
    match logs
        .rate(user, turn, feedback)
        .await
        .map_err(|error| Problem::store(&error))?
    {
        Rated::Kept { before } => Ok(before),
        Rated::NoSuchTurn => Err(Problem::unknown("turn")),
        Rated::Open => Err(Problem::new(
            StatusCode::CONFLICT,
            "running",
            "The turn has not ended",
            "it runs or waits, so there is no answer to rate yet; nothing was kept",
        )),
    }
}

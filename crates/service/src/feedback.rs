//! `/v1/turns/{turn_id}/feedback`: the user's rating of an answer.

use adjutant_core::port::{LogStore, Rated};
use adjutant_core::{COMMENT_CHARS_MAX, Feedback, Rating, TurnId, UserId};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::{JsonBody, PathParam};
use crate::problem::Problem;
use crate::state::Shared;
use crate::text_length::at_most;
use crate::user::User;

/// A user's rating of an answer.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"rating": "down", "comment": "The date is wrong."}))]
pub(crate) struct AnswerRating {
    /// `up`: the answer was useful. `down`: it was not.
    #[schema(value_type = String, pattern = "^(up|down)$")]
    rating: Rating,
    /// The reason; control characters except line breaks become spaces. Operators read it with the
    /// turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000)]
    comment: Option<String>,
}

impl AnswerRating {
    pub(crate) fn from_feedback(feedback: Feedback) -> Self {
        Self {
            rating: feedback.rating,
            comment: feedback.comment,
        }
    }
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(rate, remove))
}

/// Rates the answer of a turn.
///
/// Replaces an earlier rating. It is stored in the decision log, where operators read it; the
/// setting `log.content` determines how much of a comment is stored.
#[utoipa::path(put, path = "/v1/turns/{turn_id}/feedback", operation_id = "rate_answer", tag = "threads", request_body = AnswerRating,
    params(("turn_id" = String, Path, description = "Id of the turn; other routes name it `run_id`.")),
    responses(
        (status = 204, description = "The rating was stored."),
        (status = 404, description = "The caller has no such turn."),
        (status = 409, description = "The turn runs or waits (`running`): there is no answer yet."),
    ))]
async fn rate(
    State(app): State<Shared>,
    User(user): User,
    PathParam(id): PathParam,
    JsonBody(AnswerRating { rating, comment }): JsonBody<AnswerRating>,
) -> Result<StatusCode, Problem> {
    let turn = parse_turn(&id)?;
    if let Some(comment) = &comment {
        at_most("comment", comment, COMMENT_CHARS_MAX)?;
    }
    let feedback = Feedback::new(rating, comment.as_deref(), app.agent.now())
        .map_err(|error| Problem::invalid(error.to_string()))?;
    let before = store_rating(&**app.agent.logs(), &user, turn, Some(&feedback)).await?;
    // A repeated rating is not counted twice.
    if before != Some(rating) {
        app.metrics.record_rating(rating);
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Removes the rating of an answer.
///
/// Has no effect if there is no rating.
#[utoipa::path(delete, path = "/v1/turns/{turn_id}/feedback", operation_id = "take_rating_back", tag = "threads",
    params(("turn_id" = String, Path, description = "Id of the turn; other routes name it `run_id`.")),
    responses(
        (status = 204, description = "The rating was removed."),
        (status = 404, description = "The caller has no such turn."),
        (status = 409, description = "The turn runs or waits (`running`): there is no answer yet."),
    ))]
async fn remove(
    State(app): State<Shared>,
    User(user): User,
    PathParam(id): PathParam,
) -> Result<StatusCode, Problem> {
    store_rating(&**app.agent.logs(), &user, parse_turn(&id)?, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Parses the id of a turn. An invalid id names no turn.
fn parse_turn(id: &str) -> Result<TurnId, Problem> {
    // Which part of an id is wrong helps no client, so the cause is dropped.
    id.parse().map_err(|_| Problem::unknown("turn"))
}

/// Stores or removes a rating, and returns the previous one.
async fn store_rating(
    logs: &dyn LogStore,
    user: &UserId,
    turn: TurnId,
    feedback: Option<&Feedback>,
) -> Result<Option<Rating>, Problem> {
    match logs.rate(user, turn, feedback).await? {
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

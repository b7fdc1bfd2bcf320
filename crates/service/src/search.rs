//! `/v1/search`: what was said in the conversations of whoever asks, found by what is meant.

use adjutant_core::{Role, TurnId};
use adjutant_memory::{PastHit, PastOptions, search_past};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::length::search_words;
use crate::paging::Limit;
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;

/// Unicode characters of a search at most.
const SEARCH_CHARS_MAX: usize = 500;

/// A search.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// The words, in any of their forms. `"several words"` have to stand there as they are.
    #[param(
        min_length = 1,
        max_length = 500,
        example = "when did we talk about the garden?"
    )]
    q: String,
    /// At most so many conversations.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
}

/// A conversation in which something was said that fits.
#[derive(Debug, Serialize, ToSchema)]
struct FoundThread {
    thread_id: String,
    /// Its title. Empty: it has none yet.
    title: String,
    /// The turn that fits best.
    #[schema(value_type = uuid::Uuid)]
    run_id: TurnId,
    /// The time at which that began.
    at: Timestamp,
    /// The speaker of the passage: `user` or `assistant`.
    #[schema(value_type = String)]
    said_by: Role,
    /// The part of the words that fits best, at most 240 characters. What looks like a secret is
    /// left out.
    passage: String,
}

/// The conversations that fit best.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"threads": [{"thread_id": "0199c0de-0000-7000-8000-000000000001", "title": "The garden", "run_id":
    "0199c0de-0000-7000-8000-000000000002", "at": "2026-03-01T10:00:00Z", "said_by": "user", "passage": "The roses go to the south wall."}],
    "is_complete": true}))]
struct FoundThreads {
    /// The best first, each once.
    threads: Vec<FoundThread>,
    /// False if conversations of before were not looked through, because they are not in the index
    /// yet.
    is_complete: bool,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(search))
}

impl FoundThread {
    fn of(hit: PastHit) -> Self {
        Self {
            thread_id: hit.conversation.to_string(),
            title: hit.title,
            run_id: hit.turn,
            at: hit.at,
            said_by: hit.said_by,
            passage: hit.passage,
        }
    }
}

/// The conversations of whoever asks in which something was said that fits.
///
/// Words are looked for in all their forms, and ranked by how rare they are. Only what people said
/// and what they were answered is searched, not what tools gave. A turn is found as soon as it has
/// begun.
#[utoipa::path(get, path = "/v1/search", operation_id = "search_threads", tag = "threads", params(SearchQuery), responses(
    (status = 200, description = "The conversations that fit best.", body = FoundThreads),
    (status = 404, description = "This service has no search."),
))]
async fn search(
    State(app): State<Shared>,
    User(user): User,
    query: Result<Query<SearchQuery>, QueryRejection>,
) -> Result<Json<FoundThreads>, Problem> {
    let Query(SearchQuery { q, limit }) = query?;
    let Some(words) = search_words(Some(&q), SEARCH_CHARS_MAX)? else {
        return Err(Problem::invalid("q has no words"));
    };
    let past = app.past.get().ok_or_else(|| Problem::unknown("search"))?;
    let limit = usize::try_from(limit.unwrap_or_default().get()).unwrap_or(usize::MAX);
    let options = PastOptions {
        limit,
        ..PastOptions::default()
    };
    let found = search_past(&**past, (app.agent.name(), &user), words, options).await;
    let found = found.map_err(|error| Problem::store(&error))?;
    let threads = found.found.into_iter().map(FoundThread::of).collect();
    Ok(Json(FoundThreads {
        threads,
        is_complete: found.is_complete,
    }))
}

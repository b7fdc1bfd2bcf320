//! `GET /v1/search`: full-text search in the caller's conversations.

use std::collections::HashSet;

use adjutant_core::port::StoreError;
use adjutant_core::{ConversationId, ConversationKey, Role, TurnId};
use adjutant_memory::{ConversationHit, ConversationSearchOptions, search_conversations};
use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::QueryParams;
use crate::paging::Limit;
use crate::problem::Problem;
use crate::state::Shared;
use crate::text_length::search_query;
use crate::user::User;

/// Hits that are looked at for each conversation that is returned: versions of one conversation
/// often match alike.
const HITS_PER_CONVERSATION: usize = 4;

/// Longest search text, in Unicode characters.
const SEARCH_CHARS_MAX: usize = 500;

/// A search in the caller's conversations.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// Search text; words match in all inflected forms. `"several words"` in quotes match
    /// literally.
    #[param(
        min_length = 1,
        max_length = 500,
        example = "when did we talk about the garden?"
    )]
    q: String,
    /// Largest number of conversations.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
}

/// A conversation that matches a search.
#[derive(Debug, Serialize, ToSchema)]
struct FoundThread {
    /// Id of the conversation: of its versions, the one with the turn that matches best.
    thread_id: String,
    /// Id of the version that all others branch off, directly or not.
    root_id: String,
    /// Title; without one, the first words of the turn that matches best.
    title: String,
    /// The turn that matches best.
    #[schema(value_type = uuid::Uuid)]
    run_id: TurnId,
    /// Time of the turn's start.
    at: Timestamp,
    /// Author of the passage: `user` or `assistant`.
    #[schema(value_type = String)]
    said_by: Role,
    /// The best matching passage, at most 240 characters. Possible secrets are left out.
    passage: String,
}

/// The conversations that match a search.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"threads": [{"thread_id": "0199c0de-0000-7000-8000-000000000001", "root_id": "0199c0de-0000-7000-8000-000000000001", "title": "The garden", "run_id":
    "0199c0de-0000-7000-8000-000000000002", "at": "2026-03-01T10:00:00Z", "said_by": "user", "passage": "The roses go to the south wall."}],
    "is_complete": true}))]
struct FoundThreads {
    /// The best match first, each conversation once, whatever the number of its versions.
    threads: Vec<FoundThread>,
    /// False if older conversations were not searched because they are not in the index yet.
    is_complete: bool,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(search))
}

impl FoundThread {
    fn from_hit(hit: ConversationHit, root: ConversationId) -> Self {
        Self {
            thread_id: hit.conversation.to_string(),
            root_id: root.to_string(),
            title: hit.title,
            run_id: hit.turn,
            at: hit.at,
            said_by: hit.said_by,
            passage: hit.passage,
        }
    }
}

/// Searches the caller's conversations.
///
/// Words match in all inflected forms, and rare words count more. Messages of the user and answers
/// are searched, tool results are not. A turn is found as soon as it has started.
#[utoipa::path(get, path = "/v1/search", operation_id = "search_threads", tag = "threads", params(SearchQuery), responses(
    (status = 200, description = "The conversations that match best.", body = FoundThreads),
    (status = 404, description = "This service has no conversation search."),
    (status = 409, description = "Too many requests over all of the caller's data wait already (`busy_with_your_data`)."),
))]
async fn search(
    State(app): State<Shared>,
    User(user): User,
    QueryParams(SearchQuery { q, limit }): QueryParams<SearchQuery>,
) -> Result<Json<FoundThreads>, Problem> {
    let Some(words) = search_query(Some(&q), SEARCH_CHARS_MAX)? else {
        return Err(Problem::invalid("q is empty"));
    };
    let past = app
        .conversation_search
        .get()
        .ok_or_else(|| Problem::unknown("search"))?;
    let limit = limit.unwrap_or_default().entries();
    let options = ConversationSearchOptions {
        limit: limit.saturating_mul(HITS_PER_CONVERSATION),
        ..ConversationSearchOptions::default()
    };
    // An index that is still being built is searched as far as it reaches.
    let (past, agent) = (past.clone(), app.agent.name().clone());
    let conversations = app.agent.conversations().clone();
    let (owner, words) = (user.clone(), words.to_owned());
    let search = async move {
        let found = search_conversations(&*past, &agent, &owner, &words, options).await?;
        let mut threads = Vec::new();
        let mut seen: HashSet<ConversationId> = HashSet::new();
        for hit in found.found {
            if threads.len() == limit {
                break;
            }
            if seen.contains(&hit.conversation) {
                continue;
            }
            let key = ConversationKey {
                agent: agent.clone(),
                user: owner.clone(),
                conversation: hit.conversation,
            };
            // It may have been deleted since.
            let Some(versions) = conversations.versions(&key).await? else {
                continue;
            };
            seen.extend(versions.ids);
            threads.push(FoundThread::from_hit(hit, versions.root));
        }
        Ok::<_, StoreError>(Json(FoundThreads {
            threads,
            is_complete: found.is_complete,
        }))
    };
    app.whole_data.run(&user, search).await
}

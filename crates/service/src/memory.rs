//! `/v1/memory`: what is remembered of whoever asks, in their vault or in the database, for the
//! panel beside a conversation.

use adjutant_core::{MemoryChange, MemoryEffect, UserId};
use adjutant_memory::{
    Cause, FACT_CHARS_MAX, FactChange, KeyFact, KeyFactStore, Memory, MemoryError, VaultError,
};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::length::{at_most, search_words};
use crate::object::Object;
use crate::problem::Problem;
use crate::state::{App, Shared};
use crate::user::User;

/// Which facts to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only facts that hold these words, the best match first.
    #[param(max_length = 1000)]
    q: Option<String>,
}

/// A fact.
#[derive(Debug, Serialize, ToSchema)]
struct Fact {
    /// It changes with the words.
    id: String,
    content: String,
    /// Whether the agent is always told.
    important: bool,
    /// With `#`.
    tags: Vec<String>,
    /// The day it was recorded, if its line or its history says.
    #[schema(value_type = Option<String>, format = Date)]
    created: Option<jiff::civil::Date>,
    /// The conversation where it was learned, if its history knows.
    thread_id: Option<String>,
    /// The turn in it.
    run_id: Option<String>,
}

/// The remembered facts, in the order of the file, in a database oldest first; or the best match
/// first.
#[derive(Debug, Serialize, ToSchema)]
struct Facts {
    facts: Vec<Fact>,
}

/// A fact, and how it came about.
#[derive(Debug, Serialize, ToSchema)]
struct FactDetail {
    #[serde(flatten)]
    fact: Fact,
    /// Oldest first. Empty for a fact that was written by hand, or if its history was lost.
    history: Vec<Change>,
}

/// A change that led to a fact.
#[derive(Debug, Serialize, ToSchema)]
struct Change {
    at: Timestamp,
    /// How it read before.
    before: Option<String>,
    /// How it read afterwards.
    after: Option<String>,
    /// The conversation that was the cause. None: a person, by hand.
    thread_id: Option<String>,
    /// The turn in it.
    run_id: Option<String>,
}

/// A fact to be remembered.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"content": "Takes the tea without sugar", "important": false}))]
struct NewFact {
    /// One line. Words that announce a correction ("actually", "no longer") of a known fact take
    /// its place.
    #[schema(
        min_length = 1,
        max_length = 1000,
        pattern = r"[^\s\x00-\x1f\x7f-\x9f]"
    )]
    content: String,
    /// Whether the agent is always told.
    #[serde(default)]
    important: bool,
}

/// What is to be different about a fact.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"important": true}))]
struct FactEdit {
    #[schema(
        min_length = 1,
        max_length = 1000,
        pattern = r"[^\s\x00-\x1f\x7f-\x9f]"
    )]
    content: Option<String>,
    important: Option<bool>,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct Changed {
    /// `added`, `updated`, `known` (nothing was changed) or `forgotten`.
    status: &'static str,
    fact: Fact,
    /// The words that were replaced.
    before: Option<String>,
}

/// What was taken back.
#[derive(Debug, Serialize, ToSchema)]
struct TakenBack {
    /// In words for the person.
    message: String,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, remember))
        .routes(routes!(one, edit, forget))
        .routes(routes!(undo))
}

/// The memory of a user, if they have one.
pub(crate) fn memory_of(app: &App, user: &UserId) -> Option<Memory> {
    app.memories.get()?.of(user)
}

/// Returns where the facts about a user are, as a word, if they have a memory: `vault` or
/// `database`.
pub(crate) fn place(app: &App, user: &UserId) -> Option<&'static str> {
    let memory = memory_of(app, user)?;
    Some(if memory.vault().is_some() {
        "vault"
    } else {
        "database"
    })
}

/// Returns why nothing is remembered of this user, as a word and in words for them. `None`:
/// something is.
pub(crate) fn absent(app: &App, user: &UserId) -> Option<(&'static str, &'static str)> {
    match app.memories.get() {
        Some(_) if memory_of(app, user).is_some() => None,
        Some(memories) if memories.is_out_of_reach(user) => Some((
            "out_of_reach",
            "Your notes could not be opened when this service began, so nothing is remembered until it begins again with them.",
        )),
        Some(memories) if !memories.is_empty() => Some((
            "not_yours",
            "Nothing is remembered of you here: the notes and the memory of this service are somebody else's, and nobody but them \
             sees or changes them. You have your tasks and your conversations.",
        )),
        Some(_) | None => Some((
            "no_vault",
            "This service has no folder of notes, so nothing is remembered.",
        )),
    }
}

fn of_user(app: &App, User(user): &User) -> Result<Memory, Problem> {
    memory_of(app, user).ok_or_else(|| Problem::unknown("memory"))
}

/// The facts that are remembered of whoever asks.
///
/// Those of a vault are read fresh: what was changed by hand counts. Without a vault they are in
/// the database.
#[utoipa::path(get, path = "/v1/memory", operation_id = "list_facts", tag = "memory", params(ListQuery), responses(
    (status = 200, description = "The facts.", body = Facts),
    (status = 404, description = "Nothing is remembered of whoever asks."),
    (status = 409, description = "The vault is not as it has to be."),
))]
async fn list(
    State(app): State<Shared>,
    user: User,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<Facts>, Problem> {
    let Query(ListQuery { q }) = query?;
    let words = search_words(q.as_deref(), FACT_CHARS_MAX)?;
    let facts = of_user(&app, &user)?.facts();
    let found = match words {
        Some(words) => facts.search(words).await,
        None => facts.list().await,
    };
    Ok(Json(Facts {
        facts: found.map_err(problem)?.into_iter().map(Fact::of).collect(),
    }))
}

/// Remembers a fact, or corrects the one that it is much like.
///
/// `status` says which of these it was. A fact that is known already is not written again.
#[utoipa::path(post, path = "/v1/memory", operation_id = "remember_fact", tag = "memory", request_body = NewFact, responses(
    (status = 200, description = "What became of it.", body = Changed),
    (status = 404, description = "Nothing is remembered of whoever asks."),
    (status = 409, description = "There are as many facts as may be, or the vault is not as it has to be."),
))]
async fn remember(
    State(app): State<Shared>,
    user: User,
    body: Result<Json<Object<NewFact>>, JsonRejection>,
) -> Result<Json<Changed>, Problem> {
    let Json(Object(NewFact { content, important })) = body?;
    at_most("content", &content, FACT_CHARS_MAX)?;
    let facts = of_user(&app, &user)?.facts();
    facts
        .add(&content, important, &Cause::person())
        .await
        .map(|change| Json(Changed::of(change)))
        .map_err(problem)
}

/// A fact, with the changes that led to it.
///
/// The changes name the conversations and turns that they were made in, if those are known.
#[utoipa::path(get, path = "/v1/memory/{id}", operation_id = "get_fact", tag = "memory",
    params(("id" = String, Path, description = "The fact's id.")),
    responses(
        (status = 200, description = "The fact.", body = FactDetail),
        (status = 404, description = "There is no such fact."),
        (status = 409, description = "The vault is not as it has to be."),
    ))]
async fn one(
    State(app): State<Shared>,
    user: User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<FactDetail>, Problem> {
    let (facts, id) = fact_of(&app, &user, id).await?;
    let why = facts.why(&id).await.map_err(problem)?;
    let history = why.history.into_iter().filter_map(Change::of).collect();
    Ok(Json(FactDetail {
        fact: Fact::of(why.fact),
        history,
    }))
}

/// Gives a fact other words, makes it important, or no longer so.
///
/// A member that the body does not name stays as it is. A fact that gets other words gets another
/// id.
#[utoipa::path(patch, path = "/v1/memory/{id}", operation_id = "update_fact", tag = "memory", request_body = FactEdit,
    params(("id" = String, Path, description = "The fact's id.")),
    responses(
        (status = 200, description = "What became of it; its id is another one if its words are.", body = Changed),
        (status = 404, description = "There is no such fact."),
        (status = 409, description = "The vault is not as it has to be."),
    ))]
async fn edit(
    State(app): State<Shared>,
    user: User,
    id: Result<Path<String>, PathRejection>,
    body: Result<Json<Object<FactEdit>>, JsonRejection>,
) -> Result<Json<Changed>, Problem> {
    let Json(Object(FactEdit { content, important })) = body?;
    at_most(
        "content",
        content.as_deref().unwrap_or_default(),
        FACT_CHARS_MAX,
    )?;
    let (facts, id) = fact_of(&app, &user, id).await?;
    let change = facts
        .edit(&id, content.as_deref(), important, &Cause::person())
        .await;
    change
        .map(|change| Json(Changed::of(change)))
        .map_err(problem)
}

/// Forgets a fact.
///
/// `POST /v1/memory/undo` brings it back.
#[utoipa::path(delete, path = "/v1/memory/{id}", operation_id = "forget_fact", tag = "memory",
    params(("id" = String, Path, description = "The fact's id.")),
    responses(
        (status = 200, description = "The fact as it was.", body = Changed),
        (status = 404, description = "There is no such fact."),
        (status = 409, description = "The vault is not as it has to be."),
    ))]
async fn forget(
    State(app): State<Shared>,
    user: User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Changed>, Problem> {
    let (facts, id) = fact_of(&app, &user, id).await?;
    facts
        .forget(&id, &Cause::person())
        .await
        .map(|change| Json(Changed::of(change)))
        .map_err(problem)
}

/// Takes back the newest change of the memory.
///
/// That may be a change of a fact or of a note. What was changed by hand since is left as it is.
#[utoipa::path(post, path = "/v1/memory/undo", operation_id = "undo_memory_change", tag = "memory", responses(
    (status = 200, description = "What was taken back.", body = TakenBack),
    (status = 404, description = "Nothing is remembered of whoever asks, or there is nothing to take back."),
    (status = 409, description = "What was changed was changed by hand since; it was left as it is."),
))]
async fn undo(State(app): State<Shared>, user: User) -> Result<Json<TakenBack>, Problem> {
    let undone = of_user(&app, &user)?.undo().await.map_err(problem)?;
    Ok(Json(TakenBack {
        message: undone.words,
    }))
}

/// The user's facts, and the id of one there is. Only by its id: words that fit several are for
/// people who can be asked.
async fn fact_of(
    app: &App,
    user: &User,
    id: Result<Path<String>, PathRejection>,
) -> Result<(KeyFactStore, String), Problem> {
    let Path(id) = id?;
    let facts = of_user(app, user)?.facts();
    let known = facts
        .list()
        .await
        .map_err(problem)?
        .into_iter()
        .any(|fact| fact.id.as_str() == id);
    if known {
        Ok((facts, id))
    } else {
        Err(Problem::unknown("fact"))
    }
}

impl Fact {
    fn of(fact: KeyFact) -> Self {
        Self {
            id: fact.id.to_string(),
            important: fact.is_important(),
            thread_id: fact
                .source
                .as_ref()
                .map(|source| source.conversation.to_string()),
            run_id: fact.source.as_ref().map(|source| source.turn.to_string()),
            content: fact.content,
            tags: fact.tags,
            created: fact.created,
        }
    }
}

impl Change {
    /// `None`: it was none of a fact.
    fn of(change: MemoryChange) -> Option<Self> {
        let MemoryEffect::Fact { before, after } = change.effect else {
            return None;
        };
        Some(Self {
            at: change.at,
            before: before.map(|line| line.text),
            after: after.map(|line| line.text),
            thread_id: change
                .source
                .as_ref()
                .map(|source| source.conversation.to_string()),
            run_id: change.source.as_ref().map(|source| source.turn.to_string()),
        })
    }
}

impl Changed {
    fn of(change: FactChange) -> Self {
        let (status, fact, before) = match change {
            FactChange::Added { fact } => ("added", fact, None),
            FactChange::Updated { fact, before } => ("updated", fact, Some(before)),
            FactChange::Known { fact } => ("known", fact, None),
            FactChange::Forgotten { fact } => ("forgotten", fact, None),
        };
        Self {
            status,
            fact: Fact::of(fact),
            before,
        }
    }
}

/// Where on the disk the vault is, and what a database said, is for whoever runs the service.
pub(crate) fn problem(error: MemoryError) -> Problem {
    let conflict = |detail: String| {
        Problem::new(
            StatusCode::CONFLICT,
            "memory_conflict",
            "The memory was left as it is",
            detail,
        )
    };
    match error {
        MemoryError::Fact { reason } => Problem::invalid(reason),
        MemoryError::NoSuchFact { .. } | MemoryError::Ambiguous { .. } => Problem::unknown("fact"),
        MemoryError::NothingToUndo => Problem::unknown("change to take back"),
        MemoryError::Vault(VaultError::Missing { .. } | VaultError::NotAFolder { .. }) => conflict(
            "the vault's folder is not there at the moment; nothing was changed".to_owned(),
        ),
        MemoryError::NotYours => Problem::unknown("memory"),
        MemoryError::Store { .. } => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "Not available right now",
            error.to_string(),
        ),
        error => conflict(error.to_string()),
    }
}

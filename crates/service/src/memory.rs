//! `/v1/memory`: the facts that are remembered about the caller, in their vault or in the database.

use adjutant_core::{MemoryChange, MemoryEffect, UserId};
use adjutant_memory::{
    Cause, FACT_CHARS_MAX, FactChange, KeyFact, KeyFactStore, Memory, MemoryError, VaultError,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::{JsonBody, PathParam, QueryParams};
use crate::problem::{NOT_AVAILABLE, Problem};
use crate::state::{App, Shared};
use crate::text_length::{at_most, search_query};
use crate::user::User;

/// Filter of the list of facts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only facts with these words, the best match first.
    #[param(max_length = 1000)]
    q: Option<String>,
}

/// A fact that is remembered about the user.
#[derive(Debug, Serialize, ToSchema)]
struct Fact {
    /// Id of the fact; it changes with the text.
    id: String,
    /// The text.
    content: String,
    /// True if the model always reads it.
    important: bool,
    /// Tags, each with `#`.
    tags: Vec<String>,
    /// Day on which it was recorded, if known.
    #[schema(value_type = Option<String>, format = Date)]
    created: Option<jiff::civil::Date>,
    /// The conversation in which it was learned, if known.
    thread_id: Option<String>,
    /// The turn in which it was learned, if known.
    run_id: Option<String>,
}

/// The remembered facts, in the order of the vault's file or, in a database, oldest first; in a
/// search, the best match first.
#[derive(Debug, Serialize, ToSchema)]
struct Facts {
    facts: Vec<Fact>,
}

/// A fact with its history.
#[derive(Debug, Serialize, ToSchema)]
struct FactDetail {
    #[serde(flatten)]
    fact: Fact,
    /// The changes, oldest first. Empty for a fact that was written by hand, or whose history is
    /// lost.
    history: Vec<FactHistoryEntry>,
}

/// A change of a fact.
#[derive(Debug, Serialize, ToSchema)]
struct FactHistoryEntry {
    /// Time of the change.
    at: Timestamp,
    /// Text before the change.
    before: Option<String>,
    /// Text after the change.
    after: Option<String>,
    /// The conversation that caused it. Null: the user changed it directly.
    thread_id: Option<String>,
    /// The turn that caused it.
    run_id: Option<String>,
}

/// A fact to remember.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"content": "Takes the tea without sugar", "important": false}))]
struct NewFact {
    /// The fact, on one line. A text that corrects a known fact ("actually", "no longer") replaces
    /// it.
    #[schema(
        min_length = 1,
        max_length = 1000,
        pattern = r"[^\s\x00-\x1f\x7f-\x9f]"
    )]
    content: String,
    /// True if the model should always read it.
    #[serde(default)]
    important: bool,
}

/// Changes of a fact. Absent members stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"important": true}))]
struct FactEdit {
    /// New text, on one line.
    #[schema(
        min_length = 1,
        max_length = 1000,
        pattern = r"[^\s\x00-\x1f\x7f-\x9f]"
    )]
    content: Option<String>,
    /// True if the model should always read it.
    important: Option<bool>,
}

/// Result of a change.
#[derive(Debug, Serialize, ToSchema)]
struct ChangedFact {
    /// `added`, `updated`, `known` (unchanged, because the fact is known) or `forgotten`.
    status: &'static str,
    /// The fact after the change, or before it was forgotten.
    fact: Fact,
    /// The text that was replaced.
    before: Option<String>,
}

/// The change that was undone.
#[derive(Debug, Serialize, ToSchema)]
struct Undone {
    /// Description for the user.
    message: String,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, remember))
        .routes(routes!(get_fact, edit, forget))
        .routes(routes!(undo))
}

/// Returns the memory of a user, if they have one.
pub(crate) fn memory_of(app: &App, user: &UserId) -> Option<Memory> {
    app.memories.get()?.for_user(user)
}

/// State of a user's memory, for `/v1/me`.
#[derive(Default)]
pub(crate) struct MemoryState {
    /// Storage of the facts: `vault` or `database`.
    pub(crate) stored_in: Option<&'static str>,
    /// Name of the vault.
    pub(crate) vault: Option<String>,
    /// Reason for which nothing is remembered, as a code and a description.
    pub(crate) absent: Option<(&'static str, &'static str)>,
}

impl MemoryState {
    pub(crate) fn for_user(app: &App, user: &UserId) -> Self {
        let Some(memory) = memory_of(app, user) else {
            return Self {
                absent: Some(reason_for_none(app, user)),
                ..Self::default()
            };
        };
        // The facts of a user with a vault are in its files.
        let vault = memory.vault().map(|vault| vault.name());
        Self {
            stored_in: Some(vault.as_ref().map_or("database", |_| "vault")),
            vault,
            absent: None,
        }
    }
}

fn reason_for_none(app: &App, user: &UserId) -> (&'static str, &'static str) {
    match app.memories.get() {
        Some(memories) if memories.is_out_of_reach(user) => (
            "out_of_reach",
            "Your notes could not be opened when this service started, so nothing is remembered until it is restarted with them.",
        ),
        Some(memories) if !memories.is_empty() => (
            "not_yours",
            "Nothing is remembered about you here: the notes and the memory of this service belong to another user, and only they can \
             see or change them. You have your tasks and your conversations.",
        ),
        Some(_) | None => (
            "no_vault",
            "This service has no folder of notes, so nothing is remembered.",
        ),
    }
}

fn caller_memory(app: &App, User(user): &User) -> Result<Memory, Problem> {
    memory_of(app, user).ok_or_else(|| Problem::unknown("memory"))
}

/// Lists the facts that are remembered about the caller.
///
/// A vault's file is read at each request, so changes by hand are included. Without a vault, facts
/// are in the database.
#[utoipa::path(get, path = "/v1/memory", operation_id = "list_facts", tag = "memory", params(ListQuery), responses(
    (status = 200, description = "The facts.", body = Facts),
    (status = 404, description = "The caller has no memory."),
    (status = 409, description = "The vault is missing or invalid, or too many requests over all of the caller's data wait already (`busy_with_your_data`)."),
))]
async fn list(
    State(app): State<Shared>,
    user: User,
    QueryParams(ListQuery { q }): QueryParams<ListQuery>,
) -> Result<Response, Problem> {
    let words = search_query(q.as_deref(), FACT_CHARS_MAX)?.map(str::to_owned);
    // Read at each request: the user may have edited the file by hand.
    let facts = caller_memory(&app, &user)?.facts();
    let read = async move {
        let found = match words {
            Some(words) => facts.search(&words).await,
            None => facts.list().await,
        };
        let facts = found?.into_iter().map(Fact::from_key_fact).collect();
        Ok::<_, MemoryError>(Json(Facts { facts }).into_response())
    };
    app.whole_data.run(&user.0, read).await
}

/// Remembers a fact, or corrects a similar one.
///
/// `status` is `added`, `updated` or `known`. A fact that is already known is not stored again.
#[utoipa::path(post, path = "/v1/memory", operation_id = "remember_fact", tag = "memory", request_body = NewFact, responses(
    (status = 200, description = "The fact, and how it was stored.", body = ChangedFact),
    (status = 404, description = "The caller has no memory."),
    (status = 409, description = "The maximum number of facts is reached, or the vault is missing or invalid."),
))]
async fn remember(
    State(app): State<Shared>,
    user: User,
    JsonBody(NewFact { content, important }): JsonBody<NewFact>,
) -> Result<Json<ChangedFact>, Problem> {
    // Counted as sent, as the OpenAPI document states it; the store counts the cleaned text.
    at_most("content", &content, FACT_CHARS_MAX)?;
    let facts = caller_memory(&app, &user)?.facts();
    let change = facts.add(&content, important, &Cause::person()).await?;
    Ok(Json(ChangedFact::from_change(change)))
}

/// Returns a fact with its history.
///
/// Changes name the conversation and turn that caused them, if known.
#[utoipa::path(get, path = "/v1/memory/{id}", operation_id = "get_fact", tag = "memory",
    params(("id" = String, Path, description = "Id of the fact.")),
    responses(
        (status = 200, description = "The fact.", body = FactDetail),
        (status = 404, description = "There is no such fact."),
        (status = 409, description = "The vault is missing or invalid."),
    ))]
async fn get_fact(
    State(app): State<Shared>,
    user: User,
    PathParam(id): PathParam,
) -> Result<Json<FactDetail>, Problem> {
    let (facts, id) = find_fact(&app, &user, id).await?;
    let why = facts.provenance(&id).await?;
    let history = why.history.into_iter();
    Ok(Json(FactDetail {
        fact: Fact::from_key_fact(why.fact),
        history: history
            .filter_map(FactHistoryEntry::from_memory_change)
            .collect(),
    }))
}

/// Changes the text or the importance of a fact.
///
/// Absent members stay as they are. A new text gives the fact a new id.
#[utoipa::path(patch, path = "/v1/memory/{id}", operation_id = "update_fact", tag = "memory", request_body = FactEdit,
    params(("id" = String, Path, description = "Id of the fact.")),
    responses(
        (status = 200, description = "The changed fact; a new text gives it a new id.", body = ChangedFact),
        (status = 404, description = "There is no such fact."),
        (status = 409, description = "The vault is missing or invalid."),
    ))]
async fn edit(
    State(app): State<Shared>,
    user: User,
    PathParam(id): PathParam,
    JsonBody(FactEdit { content, important }): JsonBody<FactEdit>,
) -> Result<Json<ChangedFact>, Problem> {
    let text = content.as_deref().unwrap_or_default();
    at_most("content", text, FACT_CHARS_MAX)?;
    let (facts, id) = find_fact(&app, &user, id).await?;
    let change = facts
        .edit(&id, content.as_deref(), important, &Cause::person())
        .await?;
    Ok(Json(ChangedFact::from_change(change)))
}

/// Forgets a fact.
///
/// `POST /v1/memory/undo` restores it.
#[utoipa::path(delete, path = "/v1/memory/{id}", operation_id = "forget_fact", tag = "memory",
    params(("id" = String, Path, description = "Id of the fact.")),
    responses(
        (status = 200, description = "The forgotten fact.", body = ChangedFact),
        (status = 404, description = "There is no such fact."),
        (status = 409, description = "The vault is missing or invalid."),
    ))]
async fn forget(
    State(app): State<Shared>,
    user: User,
    PathParam(id): PathParam,
) -> Result<Json<ChangedFact>, Problem> {
    let (facts, id) = find_fact(&app, &user, id).await?;
    let change = facts.forget(&id, &Cause::person()).await?;
    Ok(Json(ChangedFact::from_change(change)))
}

/// Undoes the latest change of the memory.
///
/// That can be a change of a fact or of a note. If it was edited by hand since, it stays as it is.
#[utoipa::path(post, path = "/v1/memory/undo", operation_id = "undo_memory_change", tag = "memory", responses(
    (status = 200, description = "The change was undone.", body = Undone),
    (status = 404, description = "The caller has no memory, or there is no change to undo."),
    (status = 409, description = "The text was edited by hand since the change; nothing was undone."),
))]
async fn undo(State(app): State<Shared>, user: User) -> Result<Json<Undone>, Problem> {
    let message = caller_memory(&app, &user)?.undo().await?.message;
    Ok(Json(Undone { message }))
}

/// Returns the user's facts and the id, if a fact has it. Other than the agent's tools, routes do
/// not accept a text in place of an id: they cannot ask which of several facts is meant.
async fn find_fact(app: &App, user: &User, id: String) -> Result<(KeyFactStore, String), Problem> {
    let facts = caller_memory(app, user)?.facts();
    if facts.has_id(&id).await? {
        Ok((facts, id))
    } else {
        Err(Problem::unknown("fact"))
    }
}

impl Fact {
    fn from_key_fact(fact: KeyFact) -> Self {
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

impl FactHistoryEntry {
    /// Returns `None` for changes of notes.
    fn from_memory_change(change: MemoryChange) -> Option<Self> {
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

impl ChangedFact {
    fn from_change(change: FactChange) -> Self {
        let (status, fact, before) = match change {
            FactChange::Added { fact } => ("added", fact, None),
            FactChange::Updated { fact, before } => ("updated", fact, Some(before)),
            FactChange::Known { fact } => ("known", fact, None),
            FactChange::Forgotten { fact } => ("forgotten", fact, None),
        };
        Self {
            status,
            fact: Fact::from_key_fact(fact),
            before,
        }
    }
}

impl From<MemoryError> for Problem {
    /// Paths of the vault and messages of the database are not shown to clients.
    fn from(error: MemoryError) -> Self {
        let detail = match error {
            MemoryError::Fact { reason } => return Self::invalid(reason),
            // Only a text can be ambiguous, which routes do not accept in place of an id.
            MemoryError::NoSuchFact { .. } | MemoryError::Ambiguous { .. } => {
                return Self::unknown("fact");
            }
            MemoryError::NothingToUndo => return Self::unknown("change to undo"),
            MemoryError::NotYours => return Self::unknown("memory"),
            MemoryError::Store { .. } => {
                let (status, code) = (StatusCode::SERVICE_UNAVAILABLE, "unavailable");
                return Self::new(status, code, NOT_AVAILABLE, error.to_string());
            }
            MemoryError::Vault(VaultError::Missing { .. } | VaultError::NotAFolder { .. }) => {
                "the vault's folder is not there at the moment; nothing was changed".to_owned()
            }
            error => error.to_string(),
        };
        let (status, title) = (StatusCode::CONFLICT, "The memory was not changed");
        Self::new(status, "memory_conflict", title, detail)
    }
}

//! `/v1/threads`: the conversations of whoever asks, and what was said in them.

use std::collections::HashMap;

use adjutant_core::port::{ConversationFilter, ConversationSummary, Deleted, StoreError};
use adjutant_core::{
    Arguments, CallId, ConversationKey, Event, Recorded, Role, TITLE_CHARS_MAX, ToolResult,
    TranscriptMessage, TurnId, UserId, Verdict, conversation, given_title, transcript_page,
};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::agui::Transcript;
use crate::chat::conversation_of;
use crate::export::Export;
use crate::feedback::Opinion;
use crate::length::search_words;
use crate::object::Object;
use crate::paging::{Before, Limit, cursor, split};
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;
use crate::wire::Pending;

/// What is searched may be this long, in Unicode characters.
const SEARCH_CHARS_MAX: usize = 200;

/// Which conversations to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// At most so many.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// Go on behind the last page: its `next_cursor`.
    cursor: Option<String>,
    /// Only those with these words in their title, in upper or lower case.
    #[param(max_length = 200)]
    q: Option<String>,
}

/// A conversation in the list.
#[derive(Debug, Serialize, ToSchema)]
struct Thread {
    thread_id: String,
    /// The first words said in it that are no greeting, until somebody renames it. Empty: there are
    /// none yet.
    title: String,
    created_at: Timestamp,
    /// When its last input came.
    updated_at: Timestamp,
    /// Something in it waits for an answer.
    pending: bool,
    /// The conversation that it is a branch of.
    #[serde(skip_serializing_if = "Option::is_none")]
    branched_from: Option<String>,
}

/// A page of the list.
#[derive(Debug, Serialize, ToSchema)]
struct ThreadList {
    /// The one with the newest input first.
    threads: Vec<Thread>,
    /// `null`: this was the last page.
    next_cursor: Option<String>,
}

/// One conversation.
#[derive(Debug, Serialize, ToSchema)]
struct ThreadDetail {
    thread_id: String,
    title: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// What waits for an answer.
    pending: Vec<Pending>,
}

/// Which messages of a conversation to read.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MessagesQuery {
    /// At most so many, in whole turns: a last turn of more messages comes whole, alone.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// Go on with what was said before the last page: its `next_cursor`. Unless it is given, the
    /// newest messages are read.
    #[param(pattern = "^e[1-9][0-9]{0,17}$")]
    before: Option<String>,
}

/// Some of what was said in a conversation, in whole turns.
#[derive(Debug, Serialize, ToSchema)]
struct ThreadMessages {
    /// Oldest first.
    messages: Vec<Message>,
    /// Where the messages before these are, for `before`. It stays good while the conversation goes
    /// on. `null`: there are none.
    next_cursor: Option<String>,
    /// What waits for an answer. Only with the newest messages.
    pending: Vec<Pending>,
    /// The id that the last message has in AG-UI. A client that sends it in the `messages` of its
    /// next run is not sent again what it has read here. Only with the newest messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_message_id: Option<String>,
}

/// One message: words, calls, or the result of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Message {
    /// `user`, `assistant` or `tool`.
    #[schema(value_type = String)]
    role: Role,
    /// The words; of a tool, its result as the model reads it. Empty where an assistant only calls
    /// tools.
    content: String,
    /// The turn. Not there for what was said before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    run_id: Option<TurnId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Timestamp>,
    /// What an assistant calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
    /// The call a tool answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    tool_call_id: Option<CallId>,
    /// What came out of it: `success`, and `data` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    result: Option<ToolResult>,
    /// Words for the person about it, if there are some: the tool's own, or those in the place of
    /// the error of a call that broke off.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    /// Time that the tool took, in milliseconds. Not there if it did not run here to its end: a
    /// person or a program said what came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<u64>,
    /// The question about it that a person was asked: what it would touch, or may have, in words.
    /// Without `ms` it has not run since.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    /// The parts of the person's memory that the model read with a message of theirs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory: Vec<FromMemory>,
    /// The user's rating of the answer. It stands at the last words of its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<Opinion>,
}

/// A part of the person's memory that was told with a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FromMemory {
    /// The fact's id: that of its words at that time. Not there for the news that a fact was
    /// withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The line as the model read it.
    text: String,
}

/// Facts about a call from the events of a conversation, beside its result.
#[derive(Default)]
struct CallNotes<'a> {
    summary: Option<&'a str>,
    ms: Option<u64>,
    asked: Option<&'a str>,
    /// True if its result was reported by a person or a program.
    is_reported: bool,
}

impl<'a> CallNotes<'a> {
    fn all(events: &'a [Recorded]) -> HashMap<&'a CallId, Self> {
        let mut calls: HashMap<&CallId, Self> = HashMap::new();
        for recorded in events {
            match &*recorded.event {
                Event::CallFinished {
                    call, summary, ms, ..
                } => {
                    let notes = calls.entry(call).or_default();
                    (notes.summary, notes.ms) =
                        (summary.as_deref(), Some(*ms).filter(|_| !notes.is_reported));
                }
                Event::CallAnswered {
                    call,
                    verdict: Some(verdict),
                    ..
                }
                | Event::DoubtResolved { call, verdict, .. } => {
                    let is_reported =
                        matches!(verdict, Verdict::Provided | Verdict::Done | Verdict::Leave);
                    calls.entry(call).or_default().is_reported = is_reported;
                }
                Event::TurnParked { pending, .. } => {
                    for waiting in pending.iter().filter(|waiting| waiting.awaits.is_none()) {
                        calls.entry(&waiting.call_id).or_default().asked = Some(&waiting.preview);
                    }
                }
                _ => {}
            }
        }
        calls
    }
}

/// A call in a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Call {
    #[schema(value_type = String)]
    id: CallId,
    tool: String,
    #[schema(value_type = Object)]
    args: Arguments,
}

impl Message {
    pub(crate) fn of(message: TranscriptMessage) -> Self {
        let calls = message.tool_calls.into_iter();
        Self {
            role: message.role,
            content: message.content,
            run_id: message.turn,
            created_at: message.at,
            tool_calls: calls
                .map(|call| Call {
                    id: call.id,
                    tool: call.tool,
                    args: call.arguments,
                })
                .collect(),
            tool_call_id: message.tool_call_id,
            result: message.result,
            summary: None,
            ms: None,
            asked: None,
            memory: Vec::new(),
            feedback: None,
        }
    }

    /// With what is written down of the call that it answers.
    fn with_call(mut self, calls: &HashMap<&CallId, CallNotes<'_>>) -> Self {
        if let Some(notes) = self.tool_call_id.as_ref().and_then(|call| calls.get(call)) {
            self.summary = notes.summary.map(str::to_owned);
            self.ms = notes.ms;
            self.asked = notes.asked.map(str::to_owned);
        }
        self
    }
}

/// The format in which a conversation is exported.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    /// `markdown` for people (the default), or `json` for programs.
    #[serde(default)]
    #[param(inline)]
    format: ExportFormat,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ExportFormat {
    #[default]
    Markdown,
    Json,
}

/// Another name for a conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"title": "The week's shopping"}))]
struct Rename {
    /// 1 to 200 Unicode characters, at least one of them visible; control characters become spaces.
    #[schema(min_length = 1, max_length = 200, pattern = r"[^\s\x00-\x1f\x7f-\x9f]")]
    title: String,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one, rename, delete))
        .routes(routes!(messages))
        .routes(routes!(export))
}

impl Thread {
    fn of(summary: ConversationSummary) -> Self {
        Self {
            thread_id: summary.id.to_string(),
            title: summary.title,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
            pending: summary.pending,
            branched_from: summary
                .branched_from
                .map(|point| point.conversation.to_string()),
        }
    }
}

/// The conversations of whoever asks, the one with the newest input first.
///
/// They come page by page: `next_cursor` of an answer is the `cursor` of the next request.
#[utoipa::path(get, path = "/v1/threads", operation_id = "list_threads", tag = "threads", params(ListQuery), responses(
    (status = 200, description = "A page of the list.", body = ThreadList),
))]
async fn list(
    State(app): State<Shared>,
    User(user): User,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<ThreadList>, Problem> {
    let Query(query) = query?;
    let search = search_words(query.q.as_deref(), SEARCH_CHARS_MAX)?;
    let limit = query.limit.unwrap_or_default();
    let filter = ConversationFilter {
        search: search.map(str::to_owned),
        after: cursor(query.cursor.as_deref())?,
        // One more tells whether there is another page.
        limit: limit.get() + 1,
    };
    let found = app
        .agent
        .conversations()
        .list(app.agent.name(), &user, &filter)
        .await
        .map_err(|error| Problem::store(&error))?;
    let (found, next_cursor) = split(found, limit, ConversationSummary::cursor);
    Ok(Json(ThreadList {
        threads: found.into_iter().map(Thread::of).collect(),
        next_cursor,
    }))
}

/// One conversation, and what waits in it.
///
/// `/v1/threads/{thread_id}/messages` has what was said in it.
#[utoipa::path(get, path = "/v1/threads/{thread_id}", operation_id = "get_thread", tag = "threads",
    params(("thread_id" = String, Path, description = "Our id of it, or the name it was begun with.")),
    responses((status = 200, description = "The conversation.", body = ThreadDetail)))]
async fn one(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<ThreadDetail>, Problem> {
    let key = key(&app, user, id)?;
    let failed = |error: StoreError| Problem::store(&error);
    let found = app
        .agent
        .conversations()
        .summary(&key)
        .await
        .map_err(failed)?;
    let summary = found.ok_or_else(unknown)?;
    let last = app
        .agent
        .journal()
        .load_turns(&key, None, 1)
        .await
        .map_err(failed)?;
    let pending = conversation::pending(&last.map(|last| last.events).unwrap_or_default());
    Ok(Json(ThreadDetail {
        thread_id: summary.id.to_string(),
        title: summary.title,
        created_at: summary.created_at,
        updated_at: summary.updated_at,
        pending: pending.into_iter().map(Pending::of).collect(),
    }))
}

/// Gives a conversation another name.
///
/// Its id stays as it is.
#[utoipa::path(patch, path = "/v1/threads/{thread_id}", operation_id = "rename_thread", tag = "threads", request_body = Rename,
    params(("thread_id" = String, Path, description = "Our id of it, or the name it was begun with.")),
    responses((status = 200, description = "The conversation, renamed.", body = Thread)))]
async fn rename(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
    body: Result<Json<Object<Rename>>, JsonRejection>,
) -> Result<Json<Thread>, Problem> {
    let key = key(&app, user, id)?;
    let Json(Object(Rename { title })) = body?;
    let title = given_title(&title).ok_or_else(|| {
        Problem::invalid(format!("a title has 1 to {TITLE_CHARS_MAX} characters"))
    })?;
    let failed = |error: StoreError| Problem::store(&error);
    let conversations = app.agent.conversations();
    if !conversations.rename(&key, &title).await.map_err(failed)? {
        return Err(unknown());
    }
    let renamed = conversations.summary(&key).await.map_err(failed)?;
    Ok(Json(Thread::of(renamed.ok_or_else(unknown)?)))
}

/// Deletes a conversation with everything that was said and logged of it.
///
/// A call that waits in it goes with it, and is not done. One that runs is left alone: stop it
/// first, or wait.
#[utoipa::path(delete, path = "/v1/threads/{thread_id}", operation_id = "delete_thread", tag = "threads",
    params(("thread_id" = String, Path, description = "Our id of it, or the name it was begun with.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 409, description = "A turn runs in it (`running`); nothing was deleted."),
    ))]
async fn delete(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let key = key(&app, user, id)?;
    match app
        .agent
        .conversations()
        .delete(&key)
        .await
        .map_err(|error| Problem::store(&error))?
    {
        Deleted::Yes => Ok(StatusCode::NO_CONTENT),
        Deleted::NoSuchConversation => Err(unknown()),
        Deleted::Running => Err(Problem::new(
            StatusCode::CONFLICT,
            "running",
            "The conversation is at work",
            "a turn runs in it: stop it or wait for its end, then delete it; nothing was deleted",
        )),
    }
}

/// The messages of a conversation: the words, the calls and their results.
///
/// The newest messages come first, and page by page those before them: `next_cursor` of an answer
/// is `before` of the next request. Within a page they are in the order in which they were said.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/messages", operation_id = "list_messages", tag = "threads",
    params(("thread_id" = String, Path, description = "Our id of it, or the name it was begun with."), MessagesQuery),
    responses(
        (status = 200, description = "A page of its messages.", body = ThreadMessages),
        (status = 400, description = "`before` is no cursor."),
    ))]
async fn messages(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
    query: Result<Query<MessagesQuery>, QueryRejection>,
) -> Result<Json<ThreadMessages>, Problem> {
    let key = key(&app, user, id)?;
    let Query(query) = query?;
    let before = query
        .before
        .as_deref()
        .map(Before::read)
        .transpose()?
        .map(Before::place);
    let limit = query.limit.unwrap_or_default().get();
    // A turn has two messages or more: what was said, and what was answered.
    let turns = app
        .agent
        .journal()
        .load_turns(&key, before, limit.div_ceil(2));
    let turns = turns
        .await
        .map_err(|error| Problem::store(&error))?
        .ok_or_else(unknown)?;
    let page = transcript_page(
        &turns.events,
        turns.after,
        usize::try_from(limit).unwrap_or(usize::MAX),
    );
    let (pending, last_message_id) = match before {
        None => (
            conversation::pending(&turns.events)
                .into_iter()
                .map(Pending::of)
                .collect(),
            Transcript::of(&turns.events, app.agent.for_user(&key.user).tools()).last_id(),
        ),
        Some(_) => (Vec::new(), None),
    };
    let calls = CallNotes::all(&turns.events);
    let mut messages: Vec<Message> = page
        .messages
        .into_iter()
        .map(|message| Message::of(message).with_call(&calls))
        .collect();
    add_memory(&turns.events, &mut messages);
    add_feedback(&app, &key.user, &mut messages)
        .await
        .map_err(|error| Problem::store(&error))?;
    Ok(Json(ThreadMessages {
        messages,
        next_cursor: page.before.map(Before::written),
        pending,
        last_message_id,
    }))
}

/// Adds what was told of the memory to the messages it was told with.
fn add_memory(events: &[Recorded], messages: &mut [Message]) {
    for recorded in events {
        let Event::TurnStarted { turn, told, .. } = &*recorded.event else {
            continue;
        };
        let is_asked =
            |message: &&mut Message| message.run_id == Some(*turn) && message.role == Role::User;
        if let Some(asked) = messages
            .iter_mut()
            .find(is_asked)
            .filter(|_| !told.is_empty())
        {
            asked.memory = told
                .iter()
                .map(|told| FromMemory {
                    id: told.id.clone(),
                    text: told.text.clone(),
                })
                .collect();
        }
    }
}

/// Adds what the user thinks of answers to the last words of their turns.
async fn add_feedback(
    app: &Shared,
    user: &UserId,
    messages: &mut [Message],
) -> Result<(), StoreError> {
    let mut turns: Vec<TurnId> = messages
        .iter()
        .filter_map(|message| message.run_id)
        .collect();
    turns.dedup();
    for (turn, feedback) in app.agent.logs().feedback(user, &turns).await? {
        let is_answer = |message: &&mut Message| {
            message.run_id == Some(turn)
                && message.role == Role::Assistant
                && message.tool_calls.is_empty()
        };
        if let Some(answer) = messages.iter_mut().rev().find(is_answer) {
            answer.feedback = Some(Opinion::of(feedback));
        }
    }
    Ok(())
}

/// Writes a conversation into a file: every message, call and result, and what waits.
///
/// In the Markdown nothing that was said is live or leaves its place. The file is the same as that
/// of `adjutant sessions export`.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/export", operation_id = "export_thread", tag = "threads",
    params(("thread_id" = String, Path, description = "Our id of it, or the name it was begun with."), ExportQuery),
    responses((status = 200, description = "The file, to be kept and not to be shown.", content(
        (String = "text/markdown", example = json!("# buy milk\n\n- Conversation: `0199d5b6-…`\n")),
        (serde_json::Value = "application/json", example = json!({"id": "0199d5b6-…", "title": "buy milk", "messages": [], "pending": []})),
    ))))]
async fn export(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
    query: Result<Query<ExportQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let key = key(&app, user, id)?;
    let Query(ExportQuery { format }) = query?;
    let failed = |error: StoreError| Problem::store(&error);
    let summary = app
        .agent
        .conversations()
        .summary(&key)
        .await
        .map_err(failed)?
        .ok_or_else(unknown)?;
    let export = Export::of(
        summary,
        app.agent.journal().load(&key).await.map_err(failed)?,
    );
    let (kind, text) = match format {
        ExportFormat::Markdown => ("text/markdown; charset=utf-8", export.markdown()),
        ExportFormat::Json => (
            "application/json",
            export.json(&export.session(app.agent.now(), None)) + "\n",
        ),
    };
    Ok((
        [(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, "attachment")],
        text,
    )
        .into_response())
}

fn key(
    app: &Shared,
    user: UserId,
    id: Result<Path<String>, PathRejection>,
) -> Result<ConversationKey, Problem> {
    let Path(id) = id?;
    // What cannot be a name is the name of nothing.
    Ok(app
        .agent
        .key_of(user, conversation_of(&id).map_err(|_| unknown())?))
}

fn unknown() -> Problem {
    Problem::unknown("conversation")
}

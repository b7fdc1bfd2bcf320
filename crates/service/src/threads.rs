//! `/v1/threads`: the caller's conversations and their messages.

use std::collections::HashMap;

use adjutant_core::port::{ConversationFilter, ConversationSummary, Deleted, Entries, StoreError};
use adjutant_core::{
    Arguments, CallId, ConversationKey, Event, Recorded, Role, TITLE_CHARS_MAX, ToolResult,
    TranscriptMessage, TurnId, UserId, Verdict, conversation, given_title, transcript_page,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::agui::Transcript;
use crate::export::Export;
use crate::extract::{JsonBody, QueryParams};
use crate::feedback::AnswerRating;
use crate::paging::{Before, Limit, parse_cursor, split_page};
use crate::problem::Problem;
use crate::state::Shared;
use crate::text_length::search_query;
use crate::thread_id::ThreadPath;
use crate::user::User;
use crate::wire::Pending;

/// Longest search text, in Unicode characters.
const SEARCH_CHARS_MAX: usize = 200;

/// Filter and page of the list of conversations.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Largest number of conversations.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
    /// Only conversations whose title contains this text, ignoring case.
    #[param(max_length = 200)]
    q: Option<String>,
}

/// A conversation in a list. All its versions (an edited message, another answer) are one entry.
#[derive(Debug, Serialize, ToSchema)]
struct Thread {
    /// Id of the conversation: of its versions, the one with the newest input.
    thread_id: String,
    /// Id of the version that all others branch off, directly or not. It stays the same whichever
    /// version is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    root_id: Option<String>,
    /// Number of versions, at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<u64>,
    /// The first message that is more than a greeting, until it is renamed. As long as there is
    /// none, the first greeting. Empty: there is no message yet.
    title: String,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of the last input.
    updated_at: Timestamp,
    /// Time of the last input or of what followed from it, such as the answer.
    last_activity: Timestamp,
    /// True if a call waits for an answer.
    pending: bool,
    /// True if a turn is running in it.
    running: bool,
    /// The conversation that it is a branch of.
    #[serde(skip_serializing_if = "Option::is_none")]
    branched_from: Option<String>,
}

/// A page of conversations.
#[derive(Debug, Serialize, ToSchema)]
struct ThreadList {
    /// The conversations, the one with the newest input first.
    threads: Vec<Thread>,
    /// Cursor of the next page. `null`: this is the last page.
    next_cursor: Option<String>,
}

/// A conversation with its pending calls.
#[derive(Debug, Serialize, ToSchema)]
struct ThreadDetail {
    /// Id of the conversation.
    thread_id: String,
    /// Id of the version that all others branch off, directly or not.
    root_id: String,
    /// Ids of all versions: the one with the newest input first, those in which nothing was said
    /// last.
    version_ids: Vec<String>,
    /// Title; may be empty.
    title: String,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of the last input.
    updated_at: Timestamp,
    /// Time of the last input or of what followed from it, such as the answer.
    last_activity: Timestamp,
    /// True if a turn is running in it.
    running: bool,
    /// Calls that wait for an answer.
    pending: Vec<Pending>,
}

/// Versions that a request is about.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VersionsQuery {
    /// `all`: all versions of the conversation. Default: this one; the others stay.
    #[param(inline)]
    versions: Option<WhichVersions>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum WhichVersions {
    All,
}

/// Page of a conversation's messages.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MessagesQuery {
    /// Largest number of messages. Turns are not divided; a longer turn comes alone.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// `next_cursor` of the previous page. Default: the newest messages.
    #[param(pattern = "^e[1-9][0-9]{0,17}$")]
    before: Option<String>,
}

/// A page of messages, consisting of whole turns.
#[derive(Debug, Serialize, ToSchema)]
struct ThreadMessages {
    /// The messages, oldest first.
    messages: Vec<Message>,
    /// Value of `before` for the messages before these. Stays valid when the conversation
    /// continues. `null`: there are no earlier messages.
    next_cursor: Option<String>,
    /// Calls that wait for an answer. Only with the newest messages.
    pending: Vec<Pending>,
    /// AG-UI id of the last message. A client that sends it among the `messages` of its next run is
    /// not sent again what it has read here. Only with the newest messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_message_id: Option<String>,
}

/// A message: text, tool calls, or the result of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Message {
    /// `user`, `assistant` or `tool`.
    #[schema(value_type = String)]
    role: Role,
    /// The text; of a tool, its result as the model reads it. Empty if an assistant only calls
    /// tools.
    content: String,
    /// The turn. Absent in an imported history.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    run_id: Option<TurnId>,
    /// Time of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Timestamp>,
    /// Tool calls of an assistant's message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
    /// The call that a tool's message answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    tool_call_id: Option<CallId>,
    /// Result of the call: `success`, and `data` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    result: Option<ToolResult>,
    /// Summary of the result for the user, if there is one: that of the tool, or the error of an
    /// interrupted call.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    /// Duration of the call in milliseconds. Absent if it did not run to its end here, for example
    /// because a client provided the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<u64>,
    /// The question that the user was asked about the call. Without `ms` it has not been executed
    /// since.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    /// Facts of the user's memory that the model read with this message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory: Vec<FromMemory>,
    /// The user's rating of the answer, at the last message of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<AnswerRating>,
}

/// A fact of the user's memory that was attached to a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FromMemory {
    /// Id of the fact at that time. Absent if the entry says that a fact was withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The line that the model read.
    text: String,
}

/// Details of a call from the events, besides its result.
#[derive(Default)]
struct CallNotes<'a> {
    summary: Option<&'a str>,
    ms: Option<u64>,
    asked: Option<&'a str>,
    /// True if a person or a client provided the result.
    is_reported: bool,
}

impl<'a> CallNotes<'a> {
    fn from_events(events: &'a [Recorded]) -> HashMap<&'a CallId, Self> {
        let mut calls: HashMap<&CallId, Self> = HashMap::new();
        for recorded in events {
            match &*recorded.event {
                Event::CallFinished {
                    call, summary, ms, ..
                } => {
                    let notes = calls.entry(call).or_default();
                    // A result that was provided has a duration of 0, which would be shown as a
                    // time.
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
                    // A call that awaits its result asks the user nothing.
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

/// A tool call in an assistant's message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Call {
    /// Id of the call.
    #[schema(value_type = String)]
    id: CallId,
    /// Name of the tool.
    tool: String,
    /// Arguments of the call.
    #[schema(value_type = Object)]
    args: Arguments,
}

impl Message {
    pub(crate) fn from_transcript(message: TranscriptMessage) -> Self {
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

    /// Adds what the events say about the call that the message answers.
    fn with_call(mut self, calls: &HashMap<&CallId, CallNotes<'_>>) -> Self {
        if let Some(notes) = self.tool_call_id.as_ref().and_then(|call| calls.get(call)) {
            self.summary = notes.summary.map(str::to_owned);
            self.ms = notes.ms;
            self.asked = notes.asked.map(str::to_owned);
        }
        self
    }
}

/// Format of an exported conversation.
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

/// A new title for a conversation.
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
        .routes(routes!(get_thread, rename, delete))
        .routes(routes!(messages))
        .routes(routes!(export))
}

impl Thread {
    fn from_summary(summary: ConversationSummary) -> Self {
        Self {
            thread_id: summary.id.to_string(),
            root_id: summary.versions.map(|versions| versions.root.to_string()),
            versions: summary.versions.map(|versions| versions.count),
            title: summary.title,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
            last_activity: summary.last_activity,
            pending: summary.pending,
            running: summary.running,
            branched_from: summary
                .branched_from
                .map(|point| point.conversation.to_string()),
        }
    }
}

/// Lists the caller's conversations, the one with the newest input first.
///
/// All versions of a conversation are one entry, that of the version with the newest input.
/// `next_cursor` of a page is the `cursor` of the next request.
#[utoipa::path(get, path = "/v1/threads", operation_id = "list_threads", tag = "threads", params(ListQuery), responses(
    (status = 200, description = "A page of conversations.", body = ThreadList),
    (status = 409, description = "Too many requests over all of the caller's data wait already (`busy_with_your_data`); only with `q`."),
))]
async fn list(
    State(app): State<Shared>,
    User(user): User,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<ThreadList>, Problem> {
    let search = search_query(query.q.as_deref(), SEARCH_CHARS_MAX)?;
    let limit = query.limit.unwrap_or_default();
    let filter = ConversationFilter {
        search: search.map(str::to_owned),
        after: parse_cursor(query.cursor.as_deref())?,
        // One more shows if there is another page.
        limit: limit.get() + 1,
        entries: Entries::Conversations,
    };
    let (conversations, agent) = (app.agent.conversations().clone(), app.agent.name().clone());
    let found = if filter.search.is_some() {
        let owner = user.clone();
        let search = async move { conversations.list(&agent, &owner, &filter).await };
        app.whole_data.run(&user, search).await?
    } else {
        conversations.list(&agent, &user, &filter).await?
    };
    let (found, next_cursor) = split_page(found, limit, ConversationSummary::cursor);
    Ok(Json(ThreadList {
        threads: found.into_iter().map(Thread::from_summary).collect(),
        next_cursor,
    }))
}

/// Returns a conversation with its pending calls.
///
/// `/v1/threads/{thread_id}/messages` has its messages.
#[utoipa::path(get, path = "/v1/threads/{thread_id}", operation_id = "get_thread", tag = "threads",
    params(("thread_id" = String, Path, description = "Id of the conversation, or the client's name for it.")),
    responses((status = 200, description = "The conversation.", body = ThreadDetail)))]
async fn get_thread(
    State(app): State<Shared>,
    ThreadPath(key): ThreadPath,
) -> Result<Json<ThreadDetail>, Problem> {
    let found = app.agent.conversations().summary(&key).await?;
    let summary = found.ok_or_else(unknown)?;
    let versions = app.agent.conversations().versions(&key).await?;
    let versions = versions.ok_or_else(unknown)?;
    // Only the last turn can have pending calls.
    let last = app.agent.journal().load_turns(&key, None, 1).await?;
    let pending = conversation::pending(&last.map(|last| last.events).unwrap_or_default());
    Ok(Json(ThreadDetail {
        thread_id: summary.id.to_string(),
        root_id: versions.root.to_string(),
        version_ids: versions.ids.iter().map(ToString::to_string).collect(),
        title: summary.title,
        created_at: summary.created_at,
        updated_at: summary.updated_at,
        last_activity: summary.last_activity,
        running: summary.running,
        pending: pending.into_iter().map(Pending::from_call).collect(),
    }))
}

/// Renames a conversation, or with `versions=all` all its versions.
///
/// Its id does not change.
#[utoipa::path(patch, path = "/v1/threads/{thread_id}", operation_id = "rename_thread", tag = "threads", request_body = Rename,
    params(("thread_id" = String, Path, description = "Id of the conversation, or the client's name for it."), VersionsQuery),
    responses((status = 200, description = "The conversation, renamed.", body = Thread)))]
async fn rename(
    State(app): State<Shared>,
    ThreadPath(key): ThreadPath,
    QueryParams(VersionsQuery { versions }): QueryParams<VersionsQuery>,
    JsonBody(Rename { title }): JsonBody<Rename>,
) -> Result<Json<Thread>, Problem> {
    let title = given_title(&title).ok_or_else(|| {
        Problem::invalid(format!("a title has 1 to {TITLE_CHARS_MAX} characters"))
    })?;
    let conversations = app.agent.conversations();
    if !conversations.rename(&key, &title).await? {
        return Err(unknown());
    }
    if let Some(WhichVersions::All) = versions {
        let versions = conversations.versions(&key).await?;
        for conversation in versions.map(|versions| versions.ids).unwrap_or_default() {
            let version = ConversationKey {
                conversation,
                ..key.clone()
            };
            conversations.rename(&version, &title).await?;
        }
    }
    // It may have been deleted since.
    let renamed = conversations.summary(&key).await?;
    Ok(Json(Thread::from_summary(renamed.ok_or_else(unknown)?)))
}

/// Deletes a conversation with its messages and log entries, or with `versions=all` all its
/// versions.
///
/// Shared events of versions stay until the last of them is deleted. Pending calls are deleted too and
/// not executed. A conversation with a running turn is not deleted: cancel the turn first, or wait.
#[utoipa::path(delete, path = "/v1/threads/{thread_id}", operation_id = "delete_thread", tag = "threads",
    params(("thread_id" = String, Path, description = "Id of the conversation, or the client's name for it."), VersionsQuery),
    responses(
        (status = 204, description = "The conversation was deleted."),
        (status = 409, description = "A turn runs in it (`running`), or too many requests over all of the caller's data wait already (`busy_with_your_data`); nothing was deleted."),
    ))]
async fn delete(
    State(app): State<Shared>,
    ThreadPath(key): ThreadPath,
    QueryParams(VersionsQuery { versions }): QueryParams<VersionsQuery>,
) -> Result<StatusCode, Problem> {
    let (user, conversations) = (key.user.clone(), app.agent.conversations().clone());
    let delete = async move {
        match versions {
            Some(WhichVersions::All) => conversations.delete_versions(&key).await,
            None => conversations.delete(&key).await,
        }
    };
    match app.whole_data.run(&user, delete).await? {
        Deleted::Yes => Ok(StatusCode::NO_CONTENT),
        Deleted::NoSuchConversation => Err(unknown()),
        Deleted::Running => Err(Problem::new(
            StatusCode::CONFLICT,
            "running",
            "A turn is running",
            "a turn runs in it: stop it or wait for its end, then delete it; nothing was deleted",
        )),
    }
}

/// Returns the messages of a conversation: texts, tool calls and their results.
///
/// The first page has the newest messages; `next_cursor` of a page is `before` of the next request.
/// Within a page, messages are ordered from the oldest to the newest.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/messages", operation_id = "list_messages", tag = "threads",
    params(("thread_id" = String, Path, description = "Id of the conversation, or the client's name for it."), MessagesQuery),
    responses(
        (status = 200, description = "A page of messages.", body = ThreadMessages),
        (status = 400, description = "`before` is not a cursor."),
    ))]
async fn messages(
    State(app): State<Shared>,
    ThreadPath(key): ThreadPath,
    QueryParams(query): QueryParams<MessagesQuery>,
) -> Result<Json<ThreadMessages>, Problem> {
    let before = query.before.as_deref().map(Before::parse).transpose()?;
    let before = before.map(Before::position);
    let limit = query.limit.unwrap_or_default();
    // A turn has at least two messages: the user's and the answer.
    let turns_max = limit.get().div_ceil(2);
    let turns = app.agent.journal().load_turns(&key, before, turns_max);
    let turns = turns.await?.ok_or_else(unknown)?;
    let page = transcript_page(&turns.events, turns.after, limit.entries());
    let (pending, last_message_id) = match before {
        None => (
            conversation::pending(&turns.events)
                .into_iter()
                .map(Pending::from_call)
                .collect(),
            Transcript::from_events(&turns.events, app.agent.for_user(&key.user).tools()).last_id(),
        ),
        Some(_) => (Vec::new(), None),
    };
    let calls = CallNotes::from_events(&turns.events);
    let mut messages: Vec<Message> = page
        .messages
        .into_iter()
        .map(|message| Message::from_transcript(message).with_call(&calls))
        .collect();
    add_memory(&turns.events, &mut messages);
    add_feedback(&app, &key.user, &mut messages).await?;
    Ok(Json(ThreadMessages {
        messages,
        next_cursor: page.before.map(Before::format),
        pending,
        last_message_id,
    }))
}

/// Adds the facts of automatic recall to the user messages they were attached to.
fn add_memory(events: &[Recorded], messages: &mut [Message]) {
    for recorded in events {
        let Event::TurnStarted {
            turn,
            recalled_texts: facts,
            ..
        } = &*recorded.event
        else {
            continue;
        };
        let is_asked =
            |message: &&mut Message| message.run_id == Some(*turn) && message.role == Role::User;
        let Some(asked) = messages.iter_mut().find(is_asked) else {
            continue;
        };
        let from_memory = facts.iter().map(|fact| FromMemory {
            id: fact.id.clone(),
            text: fact.text.clone(),
        });
        asked.memory = from_memory.collect();
    }
}

/// Adds the user's ratings to the last messages of their turns.
async fn add_feedback(
    app: &Shared,
    user: &UserId,
    messages: &mut [Message],
) -> Result<(), StoreError> {
    let mut turns: Vec<TurnId> = messages
        .iter()
        .filter_map(|message| message.run_id)
        .collect();
    // The messages of a turn are adjacent.
    turns.dedup();
    for (turn, feedback) in app.agent.logs().feedback(user, &turns).await? {
        let is_answer = |message: &&mut Message| {
            message.run_id == Some(turn)
                && message.role == Role::Assistant
                && message.tool_calls.is_empty()
        };
        if let Some(answer) = messages.iter_mut().rev().find(is_answer) {
            answer.feedback = Some(AnswerRating::from_feedback(feedback));
        }
    }
    Ok(())
}

/// Exports a conversation with all messages, calls, results and pending calls.
///
/// In the Markdown, texts of the conversation are inert: no links, images or HTML in them are
/// active. `adjutant sessions export` writes the same file.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/export", operation_id = "export_thread", tag = "threads",
    params(("thread_id" = String, Path, description = "Id of the conversation, or the client's name for it."), ExportQuery),
    responses(
        (status = 200, description = "The file, as an attachment.", content(
            (String = "text/markdown", example = json!("# buy milk\n\n- Conversation: `0199d5b6-…`\n")),
            (serde_json::Value = "application/json", example = json!({"id": "0199d5b6-…", "title": "buy milk", "messages": [], "pending": []})),
        )),
        (status = 409, description = "Too many requests over all of the caller's data wait already (`busy_with_your_data`)."),
    ))]
async fn export(
    State(app): State<Shared>,
    ThreadPath(key): ThreadPath,
    QueryParams(ExportQuery { format }): QueryParams<ExportQuery>,
) -> Result<Response, Problem> {
    let summary = app
        .agent
        .conversations()
        .summary(&key)
        .await?
        .ok_or_else(unknown)?;
    let (user, journal, now) = (
        key.user.clone(),
        app.agent.journal().clone(),
        app.agent.now(),
    );
    let write = async move {
        let export = Export::new(summary, journal.load(&key).await?);
        let (kind, text) = match format {
            ExportFormat::Markdown => ("text/markdown; charset=utf-8", export.markdown()),
            ExportFormat::Json => (
                "application/json",
                export.json(&export.session(now, None)) + "\n",
            ),
        };
        let headers = [(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, "attachment")];
        Ok::<_, StoreError>((headers, text).into_response())
    };
    app.whole_data.run(&user, write).await
}

fn unknown() -> Problem {
    Problem::unknown("conversation")
}

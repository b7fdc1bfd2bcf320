//! Routes that list turns of all users and pending confirmations.

use adjutant_core::port::{Cursor, WaitingFilter, WaitingTurn, Which};
use adjutant_core::{
    DecisionFilter, DecisionRecord, LogContent, Notice, Rating, Step, StepKind, TurnId,
};
use adjutant_runtime::read_trace;
use axum::Json;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tracing::info;
use utoipa::{IntoParams, ToSchema};

use super::access::Administrator;
use super::people::parse_user;
use super::span::Days;
use crate::decisions::parse_outcome;
use crate::extract::{PathParam, QueryParams};
use crate::paging::{Limit, parse_cursor, split_page};
use crate::problem::Problem;
use crate::state::Shared;
use crate::text_length::at_most;
use crate::wire::{Timing, Usage};

/// Longest request id in a query, in Unicode characters.
const REQUEST_CHARS_MAX: usize = 200;
/// Codes of errors whose message is about the account, the model or the connection. That of any
/// other may quote what was said.
const WITHOUT_QUOTATIONS: [&str; 7] = [
    "auth",
    "not_permitted",
    "quota",
    "rate_limit",
    "not_found",
    "network",
    "timeout",
];
/// Default of the shortest waiting time in the list of pending confirmations, in hours.
const HOURS: u32 = 1;

/// A turn without its texts.
#[derive(Debug, Serialize, ToSchema)]
struct TurnState {
    /// Id of the turn; other routes name it `run_id`.
    #[schema(value_type = uuid::Uuid)]
    id: TurnId,
    /// Name of the user.
    user: String,
    /// Id of the conversation.
    thread_id: String,
    /// Name of the agent.
    agent: String,
    /// Version of the agent.
    version: Option<String>,
    /// Id of the HTTP request that started it, if one did; the service's log has its lines.
    request_id: Option<String>,
    /// Time at which it was started.
    started_at: Timestamp,
    /// Time at which it ended. `null`: it has not ended.
    ended_at: Option<Timestamp>,
    /// Outcome, also of a turn that waits for the user. `null`: it runs.
    outcome: Option<&'static str>,
    /// Code of its error, if it failed.
    error_code: Option<String>,
    /// Command that shows the turn in full on the service's machine.
    command: String,
    /// Length of the user's message, in Unicode characters.
    message_chars: usize,
    /// Number of model calls.
    model_calls: u32,
    /// Number of rounds with tool calls.
    iterations: u32,
    /// Model, tokens and cost.
    usage: Usage,
    /// Durations in milliseconds.
    timing_ms: Timing,
    /// The user's rating of the answer: `up` or `down`. The comment is part of `words`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    rating: Option<Rating>,
}

impl TurnState {
    fn from_record(record: &DecisionRecord, now: Timestamp) -> Self {
        Self {
            id: record.id,
            user: record.user.to_string(),
            thread_id: record.conversation.to_string(),
            agent: record.agent.to_string(),
            version: record.version.clone(),
            request_id: record.request_id.clone(),
            started_at: record.started_at,
            ended_at: record.ended_at,
            outcome: record.outcome.map(|outcome| outcome.as_str()),
            error_code: record.error_code.clone(),
            command: format!("adjutant log show {}", record.id),
            message_chars: record.message_chars,
            model_calls: record.model_calls,
            iterations: record.iterations,
            usage: Usage::from_record(record),
            timing_ms: Timing::from_record(record, now),
            rating: record.feedback.as_ref().map(|feedback| feedback.rating),
        }
    }
}

/// A page of turns.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "turns": [{"id": "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11", "user": "anna", "thread_id": "0199d5b6-0000-7c8a-a2f5-3d1f0e6b9a11",
               "agent": "adjutant", "version": null, "request_id": "0b1f6f1e-8a55-4f61-b0a4-5c1b7a3f2d11",
               "started_at": "2026-01-31T09:00:00Z", "ended_at": "2026-01-31T09:00:01Z", "outcome": "ERROR:LLM_FAILURE",
               "error_code": "network", "command": "adjutant log show 0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11", "message_chars": 12,
               "model_calls": 1, "iterations": 0,
               "usage": {"model": "gemini/gemini-2.5-flash", "input_tokens": null, "output_tokens": null, "cached_tokens": null,
                         "thinking_tokens": null, "cost_usd": null},
               "timing_ms": {"llm": 1000, "tools": 0, "total": 1004}}],
    "next_cursor": null
}))]
pub(super) struct TurnList {
    /// The turns, newest first.
    turns: Vec<TurnState>,
    /// Cursor of the next page. `null`: this is the last page.
    next_cursor: Option<String>,
}

/// Filter and page of a list of turns.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TurnQuery {
    /// Only turns with an error code.
    #[serde(default)]
    failed: bool,
    /// Only turns with this outcome, such as `ERROR:LLM_FAILURE`.
    outcome: Option<String>,
    /// Only turns whose answer has this rating: `up` or `down`.
    #[param(value_type = Option<String>, pattern = "^(up|down)$")]
    rating: Option<Rating>,
    /// Only turns of this user.
    #[param(min_length = 1, max_length = 1000)]
    user: Option<String>,
    /// Only turns started by this request. Cannot be combined with other filters.
    #[param(min_length = 1, max_length = 200)]
    request_id: Option<String>,
    /// Period in days; default 7.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 366)]
    days: Option<Days>,
    /// Largest number of turns.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// Lists turns of all users, newest first: user, times, outcome, error code and the request that
/// started each.
///
/// For operators. Contains no texts of users.
#[utoipa::path(get, path = "/v1/admin/turns", tag = "administration", operation_id = "admin_turns", params(TurnQuery), responses(
    (status = 200, description = "A page of turns.", body = TurnList),
    (status = 403, description = "The caller is not an operator."),
))]
pub(super) async fn turns(
    State(app): State<Shared>,
    Administrator { administration, .. }: Administrator,
    QueryParams(query): QueryParams<TurnQuery>,
) -> Result<Json<TurnList>, Problem> {
    let (store, now) = (&*administration.store, app.agent.now());
    let states = |found: &[DecisionRecord]| -> Vec<TurnState> {
        let states = found.iter();
        states
            .map(|record| TurnState::from_record(record, now))
            .collect()
    };
    let limit = query.limit.unwrap_or_default();
    if let Some(request_id) = &query.request_id {
        if request_id.is_empty() {
            return Err(Problem::invalid(
                "request_id is empty; leave it out for the turns of all requests",
            ));
        }
        at_most("request_id", request_id, REQUEST_CHARS_MAX)?;
        if query.user.is_some()
            || query.outcome.is_some()
            || query.failed
            || query.cursor.is_some()
            || query.rating.is_some()
        {
            return Err(Problem::invalid("request_id goes with nothing but limit"));
        }
        let found = store.decisions_of_request(request_id, limit.get()).await?;
        let (turns, next_cursor) = (states(&found), None);
        return Ok(Json(TurnList { turns, next_cursor }));
    }
    let filter = DecisionFilter {
        outcome: query.outcome.as_deref().map(parse_outcome).transpose()?,
        feedback: query.rating,
        since: Some(query.days.unwrap_or(Days::WEEK).before(now)),
        after: parse_cursor(query.cursor.as_deref())?,
        // One more shows if there is another page.
        limit: Some(limit.get() + 1),
        ..DecisionFilter::default()
    };
    let found = match query.user.map(parse_user).transpose()? {
        Some(_) if query.failed => {
            return Err(Problem::invalid(
                "failed goes with no user; an outcome does",
            ));
        }
        Some(user) => app.agent.logs().decisions(&user, &filter).await?,
        None if query.failed => store.decisions_of_all(&filter, Which::Failed).await?,
        None => store.decisions_of_all(&filter, Which::All).await?,
    };
    let (found, next_cursor) = split_page(found, limit, DecisionRecord::cursor);
    let turns = states(&found);
    Ok(Json(TurnList { turns, next_cursor }))
}

/// A step of a turn, without its texts.
#[derive(Debug, Serialize, ToSchema)]
struct StepState {
    /// Kind of step: `queue`, `load`, `model`, `tool`, `wait` or `engine`.
    #[schema(value_type = String)]
    kind: StepKind,
    /// Name of the model or the tool.
    name: String,
    /// Start, in milliseconds after the start of the turn.
    offset_ms: u64,
    /// Duration in milliseconds. `null`: it has not ended.
    ms: Option<u64>,
    /// Number of attempts of a model or tool call. `null`: not counted.
    attempt: Option<u32>,
    /// Input tokens of a model call.
    input_tokens: Option<u64>,
    /// Output tokens of a model call.
    output_tokens: Option<u64>,
    /// True if it failed.
    failed: bool,
    /// Error code of a failed model call.
    error_code: Option<String>,
    /// Message of a failed model call, with that of the provider, if it is about the account, the
    /// model or the connection and the log keeps messages (`log.content`). Others may quote what was
    /// said and are only in `words`.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
}

/// The texts of a turn: message, answer, notices and the contents of its steps.
#[derive(Debug, Serialize, ToSchema)]
struct TurnTexts {
    /// The user's message.
    message: String,
    /// The answer.
    content: Option<String>,
    /// The model's response, if it was invalid.
    raw_response: Option<String>,
    /// Notices to the user.
    #[schema(value_type = Vec<Object>)]
    notices: Vec<Notice>,
    /// The steps with their inputs and outputs.
    #[schema(value_type = Vec<Object>)]
    steps: Vec<Step>,
    /// The user's comment on their rating.
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
}

/// A turn with its steps.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11", "user": "anna", "thread_id": "0199d5b6-0000-7c8a-a2f5-3d1f0e6b9a11",
    "agent": "adjutant", "version": null, "request_id": "0b1f6f1e-8a55-4f61-b0a4-5c1b7a3f2d11",
    "started_at": "2026-01-31T09:00:00Z", "ended_at": "2026-01-31T09:00:01Z", "outcome": "ERROR:LLM_FAILURE",
    "error_code": "network", "command": "adjutant log show 0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11", "message_chars": 12,
    "model_calls": 1, "iterations": 0,
    "usage": {"model": "gemini/gemini-2.5-flash", "input_tokens": null, "output_tokens": null, "cached_tokens": null,
              "thinking_tokens": null, "cost_usd": null},
    "timing_ms": {"llm": 1000, "tools": 0, "total": 1004},
    "steps": [{"kind": "model", "name": "gemini/gemini-2.5-flash", "offset_ms": 3, "ms": 1000, "attempt": 4, "input_tokens": null,
               "output_tokens": null, "failed": true, "error_code": "network"}],
    "words": null
}))]
pub(super) struct TurnDetail {
    #[serde(flatten)]
    turn: TurnState,
    /// The steps with their durations.
    steps: Vec<StepState>,
    /// Texts of the turn; `null` unless `serve.operator_sees_words` is set. Limited to what the log
    /// keeps (`log.content`).
    words: Option<TurnTexts>,
}

/// Owner of a turn.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OwnerQuery {
    /// Name of the user whose turn it is.
    #[param(min_length = 1, max_length = 1000)]
    user: String,
}

/// Returns a turn with the durations of its steps and the step that failed.
///
/// For operators; each call is logged. Contains texts of users only if `serve.operator_sees_words` is set.
#[utoipa::path(get, path = "/v1/admin/turns/{id}", tag = "administration", operation_id = "admin_turn",
    params(("id" = String, Path, description = "Id of the turn."), OwnerQuery),
    responses(
        (status = 200, description = "The turn.", body = TurnDetail),
        (status = 403, description = "The caller is not an operator."),
        (status = 404, description = "The user has no such turn."),
    ))]
pub(super) async fn turn(
    State(app): State<Shared>,
    Administrator {
        user: operator,
        administration,
    }: Administrator,
    PathParam(id): PathParam,
    QueryParams(OwnerQuery { user }): QueryParams<OwnerQuery>,
) -> Result<Json<TurnDetail>, Problem> {
    let unknown = || Problem::unknown("turn");
    let id: TurnId = id.parse().map_err(|_| unknown())?;
    let user = parse_user(user)?;
    let record = app
        .agent
        .logs()
        .decision(&user, id)
        .await?
        .ok_or_else(unknown)?;
    let sees_words = administration.sees_words;
    // Logged before the steps are read, so that a call that fails then is in the log too.
    info!(%operator, owner = user.as_str(), turn = %id, words = sees_words, "an operator looked at a turn");
    let content = app.agent.logs().content();
    let steps = read_trace(&**app.agent.journal(), &record.key(), id, content).await?;
    let turn = TurnState::from_record(&record, app.agent.now());
    Ok(Json(TurnDetail {
        turn,
        steps: steps
            .iter()
            .map(|step| StepState::from_step(step, content))
            .collect(),
        words: sees_words.then(|| TurnTexts {
            message: record.message,
            content: record.content,
            raw_response: record.raw_response,
            notices: record.notices,
            comment: record.feedback.and_then(|feedback| feedback.comment),
            steps,
        }),
    }))
}

impl StepState {
    fn from_step(step: &Step, content: LogContent) -> Self {
        let field = |name| {
            let error = step
                .error
                .as_ref()
                .filter(|_| step.kind == StepKind::Model)?;
            error.get(name)?.as_str()
        };
        let code = field("code");
        let is_shown = content == LogContent::Full
            && code.is_some_and(|code| WITHOUT_QUOTATIONS.contains(&code));
        Self {
            kind: step.kind,
            // The name of a waiting step is the text of the question, which operators may not see.
            name: if step.kind == StepKind::Wait {
                String::new()
            } else {
                step.name.clone()
            },
            offset_ms: step.offset_ms,
            ms: step.ms,
            attempt: step.attempt,
            input_tokens: step.usage.and_then(|usage| usage.input_tokens),
            output_tokens: step.usage.and_then(|usage| usage.output_tokens),
            failed: step.error.is_some(),
            error_code: code.map(str::to_owned),
            error_message: field("message").filter(|_| is_shown).map(str::to_owned),
        }
    }
}

/// A conversation with pending confirmations.
#[derive(Debug, Serialize, ToSchema)]
struct Question {
    /// Name of the user.
    user: String,
    /// Name of the agent.
    agent: String,
    /// Id of the conversation.
    thread_id: String,
    /// Id of the waiting turn.
    run_id: Option<String>,
    /// Time since which it waits, or of the conversation's last input.
    since: Timestamp,
    /// Time at which the first of the calls expires.
    expires_at: Option<Timestamp>,
    /// Number of pending calls.
    calls: u64,
}

/// A page of conversations with pending confirmations.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "questions": [{"user": "anna", "agent": "adjutant", "thread_id": "0199d5b6-0000-7c8a-a2f5-3d1f0e6b9a11",
                   "run_id": "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11", "since": "2026-01-31T07:00:00Z",
                   "expires_at": "2026-02-07T07:00:00Z", "calls": 1}],
    "next_cursor": null
}))]
pub(super) struct QuestionList {
    /// The conversations, the longest waiting first.
    questions: Vec<Question>,
    /// Cursor of the next page. `null`: this is the last page.
    next_cursor: Option<String>,
}

/// Filter and page of a list of pending confirmations.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct QuestionQuery {
    /// Shortest waiting time in hours; default 1.
    #[param(value_type = Option<u32>, maximum = 8784)]
    hours: Option<u32>,
    /// Largest number of conversations.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// Lists conversations whose confirmations have been pending for long, the longest first.
///
/// For operators. Does not contain the questions.
#[utoipa::path(get, path = "/v1/admin/questions", tag = "administration", operation_id = "admin_questions", params(QuestionQuery), responses(
    (status = 200, description = "A page of conversations.", body = QuestionList),
    (status = 403, description = "The caller is not an operator."),
))]
pub(super) async fn questions(
    State(app): State<Shared>,
    Administrator { administration, .. }: Administrator,
    QueryParams(query): QueryParams<QuestionQuery>,
) -> Result<Json<QuestionList>, Problem> {
    let hours = query.hours.unwrap_or(HOURS);
    if hours > 24 * 366 {
        return Err(Problem::invalid("hours is from 0 to 8784"));
    }
    let limit = query.limit.unwrap_or_default();
    let before = app
        .agent
        .now()
        .checked_sub(SignedDuration::from_hours(i64::from(hours)));
    let filter = WaitingFilter {
        before: before.unwrap_or(Timestamp::MIN),
        after: parse_cursor(query.cursor.as_deref())?
            .map(position_from_cursor)
            .transpose()?,
        // One more shows if there is another page.
        limit: limit.get() + 1,
    };
    let found = administration.store.waiting(&filter).await?;
    let (found, next_cursor) =
        split_page(found, limit, |waiting| cursor_from_position(waiting.place));
    let question = |waiting: WaitingTurn| Question {
        user: waiting.user,
        agent: waiting.agent.to_string(),
        thread_id: waiting.conversation.to_string(),
        run_id: waiting.turn,
        since: waiting.since,
        expires_at: waiting.expires_at,
        calls: waiting.calls,
    };
    Ok(Json(QuestionList {
        questions: found.into_iter().map(question).collect(),
        next_cursor,
    }))
}

/// Encodes a position in the list of pending confirmations as a cursor.
fn cursor_from_position((at, key): (Timestamp, i64)) -> Cursor {
    Cursor {
        at,
        // The row number takes the place of an id, so that cursors of all lists have one form.
        id: uuid::Uuid::from_u128(u128::from(key.unsigned_abs())),
    }
}

/// Decodes a position from a cursor.
fn position_from_cursor(Cursor { at, id }: Cursor) -> Result<(Timestamp, i64), Problem> {
    let key = i64::try_from(id.as_u128());
    key.map(|key| (at, key))
        // `TryFromIntError` has no details.
        .map_err(|_| Problem::malformed("cursor: use the one an answer gave, as it is"))
}

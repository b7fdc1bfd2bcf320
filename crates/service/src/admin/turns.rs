//! Turns of everybody, and questions that wait.

use adjutant_core::port::{Cursor, StoreError, WaitingFilter, WaitingTurn, Which};
use adjutant_core::{
    DecisionFilter, DecisionRecord, LogContent, Notice, Rating, Step, StepKind, TurnId,
};
use adjutant_runtime::read_trace;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::info;
use utoipa::{IntoParams, ToSchema};

use super::access::Administrator;
use super::people::user_named;
use super::span::Days;
use crate::decisions::outcome;
use crate::length::at_most;
use crate::paging::{Limit, cursor, split};
use crate::problem::Problem;
use crate::state::Shared;
use crate::wire::{Timing, Usage};

/// The longest id of a request that is asked for, in Unicode characters.
const REQUEST_CHARS_MAX: usize = 200;
/// Hours for which a question has waited at least, unless said otherwise.
const HOURS: u32 = 1;

/// A turn, without what was said in it.
#[derive(Debug, Serialize, ToSchema)]
struct TurnState {
    /// The turn's id, `run_id` elsewhere.
    #[schema(value_type = uuid::Uuid)]
    id: TurnId,
    user: String,
    thread_id: String,
    agent: String,
    version: Option<String>,
    /// The HTTP request that started it, if one did: the service's log has its lines.
    request_id: Option<String>,
    started_at: Timestamp,
    /// `null`: it runs or waits.
    ended_at: Option<Timestamp>,
    /// The outcome it ended with, or the one of a turn that waits. `null`: it runs.
    outcome: Option<&'static str>,
    error_code: Option<String>,
    /// The command that shows everything of it at the machine.
    command: String,
    /// Characters of the person's message.
    message_chars: usize,
    model_calls: u32,
    /// Rounds of tools.
    iterations: u32,
    usage: Usage,
    timing_ms: Timing,
    /// The person's rating of the answer: `up` or `down`. A comment is shown where words of people
    /// are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    rating: Option<Rating>,
}

impl TurnState {
    fn of(record: &DecisionRecord, now: Timestamp) -> Self {
        let so_far =
            u64::try_from(now.as_millisecond() - record.started_at.as_millisecond()).unwrap_or(0);
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
            usage: Usage {
                model: record.model.to_string(),
                input_tokens: record.usage.input_tokens,
                output_tokens: record.usage.output_tokens,
                cached_tokens: record.usage.cached_tokens,
                thinking_tokens: record.usage.thinking_tokens,
                cost_usd: record.cost.map(adjutant_core::Cost::usd),
            },
            timing_ms: Timing {
                llm: record.model_ms,
                tools: record.tool_ms,
                total: record.total_ms.unwrap_or(so_far),
            },
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
    /// Newest first.
    turns: Vec<TurnState>,
    /// `null`: this was the last page.
    next_cursor: Option<String>,
}

/// The filter and the page of a list of turns.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TurnQuery {
    /// Only those with an error's code.
    #[serde(default)]
    failed: bool,
    /// Only this outcome, such as `ERROR:LLM_FAILURE`.
    outcome: Option<String>,
    /// Only those whose answer was rated so: `up` or `down`.
    #[param(value_type = Option<String>, pattern = "^(up|down)$")]
    rating: Option<Rating>,
    /// Only those of this user.
    #[param(min_length = 1, max_length = 1000)]
    user: Option<String>,
    /// Only those that this request started. Goes with nothing else.
    #[param(min_length = 1, max_length = 200)]
    request_id: Option<String>,
    /// Those of so many days, 7 unless said otherwise.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 366)]
    days: Option<Days>,
    /// At most so many.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// Go on behind the last page: its `next_cursor`.
    cursor: Option<String>,
}

/// Turns of all users, newest first: when, whose, how they ended, with which error, started by
/// which request.
///
/// For whoever runs the service. What was said is not in it.
#[utoipa::path(get, path = "/v1/admin/turns", tag = "administration", operation_id = "admin_turns", params(TurnQuery), responses(
    (status = 200, description = "A page of the list.", body = TurnList),
    (status = 403, description = "Whoever asks does not run the service."),
))]
pub(super) async fn turns(
    State(app): State<Shared>,
    Administrator { administration, .. }: Administrator,
    query: Result<Query<TurnQuery>, QueryRejection>,
) -> Result<Json<TurnList>, Problem> {
    let Query(query) = query?;
    let (store, now) = (&*administration.store, app.agent.now());
    let limit = query.limit.unwrap_or_default();
    let failed = |error: StoreError| Problem::store(&error);
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
        let found = store
            .decisions_of_request(request_id, limit.get())
            .await
            .map_err(failed)?;
        let turns = found
            .iter()
            .map(|record| TurnState::of(record, now))
            .collect();
        return Ok(Json(TurnList {
            turns,
            next_cursor: None,
        }));
    }
    let filter = DecisionFilter {
        outcome: query.outcome.as_deref().map(outcome).transpose()?,
        feedback: query.rating,
        since: Some(query.days.unwrap_or(Days::WEEK).before(now)),
        after: cursor(query.cursor.as_deref())?,
        // One more tells whether there is another page.
        limit: Some(limit.get() + 1),
        ..DecisionFilter::default()
    };
    let found = match query.user.map(user_named).transpose()? {
        Some(_) if query.failed => {
            return Err(Problem::invalid(
                "failed goes with no user; an outcome does",
            ));
        }
        Some(user) => app
            .agent
            .logs()
            .decisions(&user, &filter)
            .await
            .map_err(failed)?,
        None => {
            let which = if query.failed {
                Which::Failed
            } else {
                Which::All
            };
            store
                .decisions_of_all(&filter, which)
                .await
                .map_err(failed)?
        }
    };
    let (found, next_cursor) = split(found, limit, DecisionRecord::cursor);
    let turns = found
        .iter()
        .map(|record| TurnState::of(record, now))
        .collect();
    Ok(Json(TurnList { turns, next_cursor }))
}

/// A step of a turn, without what went out and came back.
#[derive(Debug, Serialize, ToSchema)]
struct StepState {
    /// `queue`, `load`, `model`, `tool`, `wait` or `engine`.
    #[schema(value_type = String)]
    kind: StepKind,
    /// The model or the tool.
    name: String,
    offset_ms: u64,
    /// `null`: it goes on.
    ms: Option<u64>,
    /// Times that a model call was sent or a tool was started, repeats included. `null`: not
    /// counted.
    attempt: Option<u32>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    /// It failed.
    failed: bool,
    /// The code of a model's error.
    error_code: Option<String>,
}

/// The words of a turn: message, answer, notices and the contents of its steps.
#[derive(Debug, Serialize, ToSchema)]
struct Words {
    message: String,
    content: Option<String>,
    raw_response: Option<String>,
    #[schema(value_type = Vec<Object>)]
    notices: Vec<Notice>,
    /// The steps with what went out and came back.
    #[schema(value_type = Vec<Object>)]
    steps: Vec<Step>,
    /// The person's reason for rating the answer as they did.
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
}

/// A turn and its steps.
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
    /// The steps, with the time that each took.
    steps: Vec<StepState>,
    /// The words of the turn; `null` unless `serve.operator_sees_words` is set, as far as the log
    /// has them (`log.content`).
    words: Option<Words>,
}

/// Whose turn it is.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WhoseQuery {
    /// The user whose turn it is.
    #[param(min_length = 1, max_length = 1000)]
    user: String,
}

/// One turn of a user, with where its time went and which step failed.
///
/// For whoever runs the service, and told in its log. What was said is in it only if
/// `serve.operator_sees_words` is set.
#[utoipa::path(get, path = "/v1/admin/turns/{id}", tag = "administration", operation_id = "admin_turn",
    params(("id" = String, Path, description = "The turn's id."), WhoseQuery),
    responses(
        (status = 200, description = "The turn.", body = TurnDetail),
        (status = 403, description = "Whoever asks does not run the service."),
        (status = 404, description = "The user has no such turn."),
    ))]
pub(super) async fn turn(
    State(app): State<Shared>,
    Administrator {
        user: operator,
        administration,
    }: Administrator,
    id: Result<Path<String>, PathRejection>,
    query: Result<Query<WhoseQuery>, QueryRejection>,
) -> Result<Json<TurnDetail>, Problem> {
    let (Path(id), Query(WhoseQuery { user })) = (id?, query?);
    let unknown = || Problem::unknown("turn");
    let id: TurnId = id.parse().map_err(|_| unknown())?;
    let user = user_named(user)?;
    let failed = |error: StoreError| Problem::store(&error);
    let record = app
        .agent
        .logs()
        .decision(&user, id)
        .await
        .map_err(failed)?
        .ok_or_else(unknown)?;
    let sees_words = administration.sees_words;
    info!(%operator, owner = user.as_str(), turn = %id, words = sees_words, "an operator looked at a turn");
    let content = if sees_words {
        app.agent.logs().content()
    } else {
        LogContent::None
    };
    let steps = read_trace(&**app.agent.journal(), &record.key(), id, content)
        .await
        .map_err(failed)?;
    let turn = TurnState::of(&record, app.agent.now());
    Ok(Json(TurnDetail {
        turn,
        steps: steps.iter().map(StepState::of).collect(),
        words: sees_words.then(|| Words {
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
    fn of(step: &Step) -> Self {
        let code = step
            .error
            .as_ref()
            .and_then(|error| error.get("code"))
            .and_then(Value::as_str);
        Self {
            kind: step.kind,
            // What it waited for is a question in words.
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
            error_code: code
                .filter(|_| step.kind == StepKind::Model)
                .map(str::to_owned),
        }
    }
}

/// A conversation that waits for a person.
#[derive(Debug, Serialize, ToSchema)]
struct Question {
    user: String,
    agent: String,
    thread_id: String,
    /// The turn that waits, `run_id` elsewhere.
    run_id: Option<String>,
    /// Since when, or since something last came into the conversation.
    since: Timestamp,
    /// Time at which the first of the calls expires.
    expires_at: Option<Timestamp>,
    /// Calls that wait.
    calls: u64,
}

/// A page of questions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "questions": [{"user": "anna", "agent": "adjutant", "thread_id": "0199d5b6-0000-7c8a-a2f5-3d1f0e6b9a11",
                   "run_id": "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11", "since": "2026-01-31T07:00:00Z",
                   "expires_at": "2026-02-07T07:00:00Z", "calls": 1}],
    "next_cursor": null
}))]
pub(super) struct QuestionList {
    /// The longest first.
    questions: Vec<Question>,
    /// `null`: this was the last page.
    next_cursor: Option<String>,
}

/// The filter and the page of a list of questions.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct QuestionQuery {
    /// Only those that have waited for so many hours, 1 unless said otherwise.
    #[param(value_type = Option<u32>, maximum = 8784)]
    hours: Option<u32>,
    /// At most so many.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// Go on behind the last page: its `next_cursor`.
    cursor: Option<String>,
}

/// Conversations that have waited for a person for long, the longest first.
///
/// For whoever runs the service. What is asked is not in it.
#[utoipa::path(get, path = "/v1/admin/questions", tag = "administration", operation_id = "admin_questions", params(QuestionQuery), responses(
    (status = 200, description = "A page of the list.", body = QuestionList),
    (status = 403, description = "Whoever asks does not run the service."),
))]
pub(super) async fn questions(
    State(app): State<Shared>,
    Administrator { administration, .. }: Administrator,
    query: Result<Query<QuestionQuery>, QueryRejection>,
) -> Result<Json<QuestionList>, Problem> {
    let Query(query) = query?;
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
        after: cursor(query.cursor.as_deref())?.map(place_of).transpose()?,
        limit: limit.get() + 1,
    };
    let found = administration
        .store
        .waiting(&filter)
        .await
        .map_err(|error| Problem::store(&error))?;
    let (found, next_cursor) = split(found, limit, |waiting| cursor_of(waiting.place));
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

/// Writes a place in the list of questions as a cursor.
fn cursor_of((at, key): (Timestamp, i64)) -> Cursor {
    Cursor {
        at,
        id: uuid::Uuid::from_u128(u128::from(key.unsigned_abs())),
    }
}

/// Reads it.
fn place_of(Cursor { at, id }: Cursor) -> Result<(Timestamp, i64), Problem> {
    let key = i64::try_from(id.as_u128());
    key.map(|key| (at, key))
        .map_err(|_| Problem::malformed("cursor: use the one an answer gave, as it is"))
}

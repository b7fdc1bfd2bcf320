//! `/v1/decisions`: what was decided, why, and where the time went: the decision log and the
//! tool-invocation log.

use adjutant_core::port::StoreError;
use adjutant_core::{
    AgentName, Arguments, DecisionFilter, DecisionKind, DecisionRecord, Notice, OutcomeCategory,
    Rating, Step, ToolInvocationRecord, ToolResult, TurnId, UserId, UserIntent, nearest,
};
use adjutant_runtime::read_trace;
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures::TryStreamExt as _;
use futures::stream;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::chat::conversation_of;
use crate::feedback::Opinion;
use crate::length::at_most;
use crate::paging::{Limit, cursor, split};
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;
use crate::wire::{Timing, Usage};

/// How many decisions an export reads at once.
const EXPORTED_AT_ONCE: u32 = 100;

/// Which decisions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only this outcome, such as `ERROR:LLM_FAILURE`.
    outcome: Option<String>,
    /// Only those started at or after this moment.
    since: Option<Timestamp>,
    /// Only those started before this moment.
    until: Option<Timestamp>,
    /// Only this conversation.
    #[param(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: Option<String>,
    /// Only those in which this tool was executed.
    tool: Option<String>,
    /// Only those of the agent that keeps its conversations under this name. Default: those of all
    /// agents.
    #[param(min_length = 1, max_length = 200, pattern = r"\S")]
    agent: Option<String>,
    /// Only those whose answer was rated so: `up` or `down`.
    #[param(value_type = Option<String>, pattern = "^(up|down)$")]
    feedback: Option<Rating>,
    /// At most so many.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// Go on behind the last page: its `next_cursor`.
    cursor: Option<String>,
}

/// Which decisions to export.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    /// Only this outcome, such as `ERROR:LLM_FAILURE`.
    outcome: Option<String>,
    /// Only those started at or after this moment.
    since: Option<Timestamp>,
    /// Only those started before this moment.
    until: Option<Timestamp>,
    /// Only this conversation.
    #[param(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: Option<String>,
    /// Only those in which this tool was executed.
    tool: Option<String>,
    /// Only those of the agent that keeps its conversations under this name. Default: those of all
    /// agents.
    #[param(min_length = 1, max_length = 200, pattern = r"\S")]
    agent: Option<String>,
    /// Only those whose answer was rated so: `up` or `down`.
    #[param(value_type = Option<String>, pattern = "^(up|down)$")]
    feedback: Option<Rating>,
}

/// One turn in the decision log. How much of what was said is in it, `log.content` says.
#[derive(Debug, Serialize, ToSchema)]
struct Decision {
    /// The turn's id, `run_id` elsewhere.
    #[schema(value_type = uuid::Uuid)]
    id: TurnId,
    thread_id: String,
    /// The name its agent keeps conversations under.
    agent: String,
    /// The agent's version then, if its developer gives one.
    version: Option<String>,
    user_id: String,
    /// The HTTP request that started it, if one did.
    request_id: Option<String>,
    started_at: Timestamp,
    /// `null`: it runs or waits.
    ended_at: Option<Timestamp>,
    /// The person's words, as the model got them.
    message: String,
    /// How many Unicode characters they had before any cut.
    message_chars: usize,
    #[schema(value_type = Option<String>)]
    intent: Option<UserIntent>,
    /// The strongest thing that happened, once it is known.
    #[schema(value_type = Option<String>)]
    decision: Option<DecisionKind>,
    #[schema(value_type = Option<String>)]
    outcome: Option<OutcomeCategory>,
    /// The words the person got.
    content: Option<String>,
    model_calls: u32,
    /// Rounds of tools.
    iterations: u32,
    usage: Usage,
    timing_ms: Timing,
    error_code: Option<String>,
    /// What the model answered, if it was unreadable, bounded.
    raw_response: Option<String>,
    #[schema(value_type = Vec<Object>)]
    notices: Vec<Notice>,
    /// The person's rating of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<Opinion>,
}

/// A page of the list.
#[derive(Debug, Serialize, ToSchema)]
struct DecisionList {
    /// Newest first.
    decisions: Vec<Decision>,
    /// `null`: this was the last page.
    next_cursor: Option<String>,
}

/// One executed call in the tool-invocation log.
#[derive(Debug, Serialize, ToSchema)]
struct ToolInvocation {
    /// The call's id.
    id: String,
    tool: String,
    #[schema(value_type = Object)]
    args: Arguments,
    /// `success`, and `data` or `error`.
    #[schema(value_type = Object)]
    result: ToolResult,
    ms: u64,
    /// How often it was started, crashes included.
    attempt: u32,
    /// When it ended.
    at: Timestamp,
}

/// A decision with the calls that were executed for it.
#[derive(Debug, Serialize, ToSchema)]
struct DecisionWithCalls {
    #[serde(flatten)]
    decision: Decision,
    /// In the order they ended.
    tool_invocations: Vec<ToolInvocation>,
}

/// A decision with everything that led to it.
#[derive(Debug, Serialize, ToSchema)]
struct DecisionDetail {
    #[serde(flatten)]
    decision: Decision,
    /// In the order they ended.
    tool_invocations: Vec<ToolInvocation>,
    /// Where the time went, in the order the steps began: `kind` (`queue`, `load`, `model`, `tool`,
    /// `wait`, `engine`), `name`, `started_at`, `offset_ms`, `ms` (`null`: it goes on), and where
    /// there is one `attempt`, `usage`, `finish_reason`, `cost_usd`, `request`, `response`,
    /// `error`.
    #[schema(value_type = Vec<Object>)]
    steps: Vec<Step>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(export))
        .routes(routes!(one))
}

impl Decision {
    fn of(record: DecisionRecord, now: Timestamp) -> Self {
        let so_far = || now.as_millisecond() - record.started_at.as_millisecond();
        let total = record
            .total_ms
            .unwrap_or_else(|| u64::try_from(so_far()).unwrap_or(0));
        Self {
            id: record.id,
            thread_id: record.conversation.to_string(),
            agent: record.agent.to_string(),
            version: record.version,
            user_id: record.user.into(),
            request_id: record.request_id,
            started_at: record.started_at,
            ended_at: record.ended_at,
            message: record.message,
            message_chars: record.message_chars,
            intent: record.intent,
            decision: record.kind,
            outcome: record.outcome,
            content: record.content,
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
                total,
            },
            error_code: record.error_code,
            raw_response: record.raw_response,
            notices: record.notices,
            feedback: record.feedback.map(Opinion::of),
        }
    }
}

impl ToolInvocation {
    fn of(record: ToolInvocationRecord) -> Self {
        Self {
            id: record.id.into(),
            tool: record.tool,
            args: record.arguments,
            result: record.result,
            ms: record.ms,
            attempt: record.attempt,
            at: record.at,
        }
    }
}

/// The longest name of an agent that is asked for, in Unicode characters.
const AGENT_CHARS_MAX: usize = 200;

/// Reads the name of an agent.
fn agent(name: String) -> Result<AgentName, Problem> {
    at_most("agent", &name, AGENT_CHARS_MAX)?;
    AgentName::new(name).map_err(|error| Problem::invalid(error.to_string()))
}

/// What was decided for whoever asks, newest first.
///
/// They come page by page: `next_cursor` of an answer is the `cursor` of the next request.
#[utoipa::path(get, path = "/v1/decisions", operation_id = "list_decisions", tag = "decisions", params(ListQuery), responses(
    (status = 200, description = "A page of the list.", body = DecisionList),
))]
async fn list(
    State(app): State<Shared>,
    User(user): User,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<DecisionList>, Problem> {
    let Query(query) = query?;
    let limit = query.limit.unwrap_or_default();
    let filter = DecisionFilter {
        agent: query.agent.map(agent).transpose()?,
        outcome: query.outcome.as_deref().map(outcome).transpose()?,
        conversation: query
            .thread_id
            .as_deref()
            .map(conversation_of)
            .transpose()?,
        feedback: query.feedback,
        tool: query.tool,
        since: query.since,
        until: query.until,
        after: cursor(query.cursor.as_deref())?,
        // One more tells whether there is another page.
        limit: Some(limit.get() + 1),
    };
    let found = app
        .agent
        .logs()
        .decisions(&user, &filter)
        .await
        .map_err(|error| Problem::store(&error))?;
    let (found, next_cursor) = split(found, limit, DecisionRecord::cursor);
    let now = app.agent.now();
    let decisions = found
        .into_iter()
        .map(|record| Decision::of(record, now))
        .collect();
    Ok(Json(DecisionList {
        decisions,
        next_cursor,
    }))
}

/// One decision, the calls that were executed for it, and where the time went.
///
/// The id is that of the turn, which every answer of a turn has as `run_id`.
#[utoipa::path(get, path = "/v1/decisions/{id}", operation_id = "get_decision", tag = "decisions",
    params(("id" = String, Path, description = "The decision's id: that of its turn.")),
    responses((status = 200, description = "The decision.", body = DecisionDetail)))]
async fn one(
    State(app): State<Shared>,
    User(user): User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<DecisionDetail>, Problem> {
    let Path(id) = id?;
    let unknown = || Problem::unknown("decision");
    let id: TurnId = id.parse().map_err(|_| unknown())?;
    let failed = |error: StoreError| Problem::store(&error);
    let logs = app.agent.logs();
    let record = logs
        .decision(&user, id)
        .await
        .map_err(failed)?
        .ok_or_else(unknown)?;
    let calls = logs.tool_invocations(&user, id).await.map_err(failed)?;
    let journal = &**app.agent.journal();
    let steps = read_trace(journal, &record.key(), id, logs.content())
        .await
        .map_err(failed)?;
    Ok(Json(DecisionDetail {
        decision: Decision::of(record, app.agent.now()),
        tool_invocations: calls.into_iter().map(ToolInvocation::of).collect(),
        steps,
    }))
}

/// All decisions with their calls, newest first, one JSON object a line.
///
/// They are sent as they are read; if that fails, the answer breaks off in a way that a client
/// notices.
#[utoipa::path(get, path = "/v1/decisions/export", operation_id = "export_decisions", tag = "decisions", params(ExportQuery), responses(
    (status = 200, description = "One decision a line.", body = DecisionWithCalls, content_type = "application/x-ndjson"),
))]
async fn export(
    State(app): State<Shared>,
    User(user): User,
    query: Result<Query<ExportQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query?;
    let filter = DecisionFilter {
        agent: query.agent.map(agent).transpose()?,
        outcome: query.outcome.as_deref().map(outcome).transpose()?,
        conversation: query
            .thread_id
            .as_deref()
            .map(conversation_of)
            .transpose()?,
        feedback: query.feedback,
        tool: query.tool,
        since: query.since,
        until: query.until,
        after: None,
        limit: Some(EXPORTED_AT_ONCE),
    };
    // The first page is read before anything is sent, so that a store that is gone is told as every
    // problem is.
    let first = page(&app, &user, &filter)
        .await
        .map_err(|error| Problem::store(&error))?;
    let pages = stream::try_unfold(
        (app, user, filter, Some(first)),
        |(app, user, mut filter, read)| async move {
            let lines = match read {
                Some(lines) => lines,
                None => page(&app, &user, &filter).await?,
            };
            let Some(after) = lines.after else {
                return Ok::<_, StoreError>(None);
            };
            filter.after = Some(after);
            Ok(Some((lines.text, (app, user, filter, None))))
        },
    );
    let mut response = Body::from_stream(pages.map_err(std::io::Error::other)).into_response();
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-ndjson"),
    );
    headers.insert(
        CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment; filename=\"decisions.ndjson\""),
    );
    Ok(response)
}

/// Lines of an export, and where they end. Without an end there were none.
struct Lines {
    text: String,
    after: Option<adjutant_core::port::Cursor>,
}

async fn page(app: &Shared, user: &UserId, filter: &DecisionFilter) -> Result<Lines, StoreError> {
    let logs = app.agent.logs();
    let records = logs.decisions(user, filter).await?;
    let mut lines = Lines {
        text: String::new(),
        after: records.last().map(DecisionRecord::cursor),
    };
    for record in records {
        let calls = logs.tool_invocations(user, record.id).await?;
        let line = DecisionWithCalls {
            decision: Decision::of(record, app.agent.now()),
            tool_invocations: calls.into_iter().map(ToolInvocation::of).collect(),
        };
        let unusable = |error: serde_json::Error| StoreError::Unusable {
            message: error.to_string(),
        };
        lines.text += &serde_json::to_string(&line).map_err(unusable)?;
        lines.text.push('\n');
    }
    Ok(lines)
}

pub(crate) fn outcome(word: &str) -> Result<OutcomeCategory, Problem> {
    word.parse().map_err(|_| {
        let known = OutcomeCategory::ALL.iter().map(|outcome| outcome.as_str());
        match nearest(word, known) {
            Some(near) => Problem::invalid(format!(
                "there is no outcome {word:?}; did you mean {near}?"
            )),
            None => Problem::invalid(format!("there is no outcome {word:?}")),
        }
    })
}

//! `/v1/decisions`: the decision log and the tool-invocation log, with the steps of each turn.

use adjutant_core::port::StoreError;
use adjutant_core::{
    AgentName, Arguments, DecisionFilter, DecisionKind, DecisionRecord, Notice, OutcomeCategory,
    Rating, Step, ToolInvocationRecord, ToolResult, TurnId, UserId, UserIntent, nearest,
};
use adjutant_runtime::read_trace;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures::TryStreamExt as _;
use futures::stream;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::{PathParam, QueryParams};
use crate::feedback::AnswerRating;
use crate::paging::{Limit, parse_cursor, split_page};
use crate::problem::Problem;
use crate::state::Shared;
use crate::text_length::at_most;
use crate::thread_id::parse_thread_id;
use crate::user::User;
use crate::wire::{Timing, Usage};

/// Decisions that an export reads at once.
const EXPORT_PAGE: u32 = 100;

/// Filter and page of the list of decisions.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only decisions with this outcome, such as `ERROR:LLM_FAILURE`.
    outcome: Option<String>,
    /// Only turns started at or after this time.
    since: Option<Timestamp>,
    /// Only turns started before this time.
    until: Option<Timestamp>,
    /// Only turns of this conversation.
    #[param(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: Option<String>,
    /// Only turns in which this tool was executed.
    tool: Option<String>,
    /// Only turns of the agent with this name. Default: all agents.
    #[param(min_length = 1, max_length = 200, pattern = r"\S")]
    agent: Option<String>,
    /// Only turns whose answer has this rating: `up` or `down`.
    #[param(value_type = Option<String>, pattern = "^(up|down)$")]
    feedback: Option<Rating>,
    /// Largest number of decisions.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<Limit>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// Filter of an export of decisions.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    /// Only decisions with this outcome, such as `ERROR:LLM_FAILURE`.
    outcome: Option<String>,
    /// Only turns started at or after this time.
    since: Option<Timestamp>,
    /// Only turns started before this time.
    until: Option<Timestamp>,
    /// Only turns of this conversation.
    #[param(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: Option<String>,
    /// Only turns in which this tool was executed.
    tool: Option<String>,
    /// Only turns of the agent with this name. Default: all agents.
    #[param(min_length = 1, max_length = 200, pattern = r"\S")]
    agent: Option<String>,
    /// Only turns whose answer has this rating: `up` or `down`.
    #[param(value_type = Option<String>, pattern = "^(up|down)$")]
    feedback: Option<Rating>,
}

/// A turn in the decision log. The setting `log.content` determines how much of its texts is
/// stored.
#[derive(Debug, Serialize, ToSchema)]
struct Decision {
    /// Id of the turn; other routes name it `run_id`.
    #[schema(value_type = uuid::Uuid)]
    id: TurnId,
    /// Id of the conversation.
    thread_id: String,
    /// Name of the agent, as its conversations are stored under.
    agent: String,
    /// Version of the agent at that time, if it has one.
    version: Option<String>,
    /// Name of the user.
    user_id: String,
    /// Id of the HTTP request that started it, if one did.
    request_id: Option<String>,
    /// Time at which it was started.
    started_at: Timestamp,
    /// Time at which it ended. `null`: it has not ended.
    ended_at: Option<Timestamp>,
    /// The user's message as the model received it.
    message: String,
    /// Length of the message before it was cut, in Unicode characters.
    message_chars: usize,
    /// Intent of the user, derived from the tools that were called.
    #[schema(value_type = Option<String>)]
    intent: Option<UserIntent>,
    /// Kind of decision; of several, the one with the strongest effect.
    #[schema(value_type = Option<String>)]
    decision: Option<DecisionKind>,
    /// Outcome of the turn. `null`: it runs.
    #[schema(value_type = Option<String>)]
    outcome: Option<OutcomeCategory>,
    /// The answer.
    content: Option<String>,
    /// Number of model calls.
    model_calls: u32,
    /// Number of rounds with tool calls.
    iterations: u32,
    /// Model, tokens and cost.
    usage: Usage,
    /// Durations in milliseconds.
    timing_ms: Timing,
    /// Code of the error, if the turn failed.
    error_code: Option<String>,
    /// The model's response, if it was invalid; bounded in length.
    raw_response: Option<String>,
    /// Notices to the user.
    #[schema(value_type = Vec<Object>)]
    notices: Vec<Notice>,
    /// The user's rating of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<AnswerRating>,
}

/// A page of decisions.
#[derive(Debug, Serialize, ToSchema)]
struct DecisionList {
    /// The decisions, newest first.
    decisions: Vec<Decision>,
    /// Cursor of the next page. `null`: this is the last page.
    next_cursor: Option<String>,
}

/// An executed call in the tool-invocation log.
#[derive(Debug, Serialize, ToSchema)]
struct ToolInvocation {
    /// Id of the call.
    id: String,
    /// Name of the tool.
    tool: String,
    /// Arguments that the tool ran with.
    #[schema(value_type = Object)]
    args: Arguments,
    /// `success`, and `data` or `error`.
    #[schema(value_type = Object)]
    result: ToolResult,
    /// Duration in milliseconds.
    ms: u64,
    /// Number of times it was started, including those interrupted by crashes.
    attempt: u32,
    /// Time at which it ended.
    at: Timestamp,
}

/// A decision with its executed tool calls.
#[derive(Debug, Serialize, ToSchema)]
struct DecisionWithCalls {
    #[serde(flatten)]
    decision: Decision,
    /// The calls, in the order in which they ended.
    tool_invocations: Vec<ToolInvocation>,
}

/// A decision with its executed tool calls and the steps of the turn.
#[derive(Debug, Serialize, ToSchema)]
struct DecisionDetail {
    #[serde(flatten)]
    decision: DecisionWithCalls,
    /// The steps, in the order in which they started: `kind` (`queue`, `load`, `model`, `tool`,
    /// `wait`, `engine`), `name`, `started_at`, `offset_ms`, `ms` (`null`: not ended), and where it
    /// applies `attempt`, `usage`, `finish_reason`, `cost_usd`, `request`, `response`, `error`.
    #[schema(value_type = Vec<Object>)]
    steps: Vec<Step>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(export))
        .routes(routes!(get_decision))
}

impl ExportQuery {
    /// Returns the filter for the first page, without a limit.
    fn parse(self) -> Result<DecisionFilter, Problem> {
        let conversation = self.thread_id.as_deref().map(parse_thread_id);
        Ok(DecisionFilter {
            agent: self.agent.map(parse_agent).transpose()?,
            outcome: self.outcome.as_deref().map(parse_outcome).transpose()?,
            conversation: conversation.transpose()?,
            feedback: self.feedback,
            tool: self.tool,
            since: self.since,
            until: self.until,
            after: None,
            limit: None,
        })
    }
}

impl Decision {
    fn from_record(record: DecisionRecord, now: Timestamp) -> Self {
        let (usage, timing_ms) = (
            Usage::from_record(&record),
            Timing::from_record(&record, now),
        );
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
            usage,
            timing_ms,
            error_code: record.error_code,
            raw_response: record.raw_response,
            notices: record.notices,
            feedback: record.feedback.map(AnswerRating::from_feedback),
        }
    }
}

impl DecisionWithCalls {
    fn new(record: DecisionRecord, calls: Vec<ToolInvocationRecord>, now: Timestamp) -> Self {
        Self {
            decision: Decision::from_record(record, now),
            tool_invocations: calls.into_iter().map(ToolInvocation::from_record).collect(),
        }
    }
}

impl ToolInvocation {
    fn from_record(record: ToolInvocationRecord) -> Self {
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

/// Longest agent name in a query, in Unicode characters.
const AGENT_CHARS_MAX: usize = 200;

/// Parses the query parameter `agent`.
fn parse_agent(name: String) -> Result<AgentName, Problem> {
    at_most("agent", &name, AGENT_CHARS_MAX)?;
    AgentName::new(name).map_err(|error| Problem::invalid(error.to_string()))
}

/// Lists the caller's decisions, newest first.
///
/// `next_cursor` of a page is the `cursor` of the next request.
#[utoipa::path(get, path = "/v1/decisions", operation_id = "list_decisions", tag = "decisions", params(ListQuery), responses(
    (status = 200, description = "A page of decisions.", body = DecisionList),
))]
async fn list(
    State(app): State<Shared>,
    User(user): User,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<DecisionList>, Problem> {
    let limit = query.limit.unwrap_or_default();
    let filter = ExportQuery {
        outcome: query.outcome,
        since: query.since,
        until: query.until,
        thread_id: query.thread_id,
        tool: query.tool,
        agent: query.agent,
        feedback: query.feedback,
    };
    let filter = DecisionFilter {
        after: parse_cursor(query.cursor.as_deref())?,
        // One more shows if there is another page.
        limit: Some(limit.get() + 1),
        ..filter.parse()?
    };
    let found = app.agent.logs().decisions(&user, &filter).await?;
    let (found, next_cursor) = split_page(found, limit, DecisionRecord::cursor);
    let now = app.agent.now();
    let decisions = found
        .into_iter()
        .map(|record| Decision::from_record(record, now))
        .collect();
    Ok(Json(DecisionList {
        decisions,
        next_cursor,
    }))
}

/// Returns a decision with its tool calls and the steps of the turn.
///
/// Its id is that of the turn, which the turn's response has as `run_id`.
#[utoipa::path(get, path = "/v1/decisions/{id}", operation_id = "get_decision", tag = "decisions",
    params(("id" = String, Path, description = "Id of the turn.")),
    responses((status = 200, description = "The decision.", body = DecisionDetail)))]
async fn get_decision(
    State(app): State<Shared>,
    User(user): User,
    PathParam(id): PathParam,
) -> Result<Json<DecisionDetail>, Problem> {
    let unknown = || Problem::unknown("decision");
    let id: TurnId = id.parse().map_err(|_| unknown())?;
    let logs = app.agent.logs();
    let record = logs.decision(&user, id).await?.ok_or_else(unknown)?;
    let calls = logs.tool_invocations(&user, id).await?;
    let journal = &**app.agent.journal();
    let steps = read_trace(journal, &record.key(), id, logs.content()).await?;
    Ok(Json(DecisionDetail {
        decision: DecisionWithCalls::new(record, calls, app.agent.now()),
        steps,
    }))
}

/// Exports the caller's decisions with their tool calls, newest first, one JSON object per line.
///
/// They are sent as they are read. If reading fails, the transfer is aborted, so that the client
/// notices.
#[utoipa::path(get, path = "/v1/decisions/export", operation_id = "export_decisions", tag = "decisions", params(ExportQuery), responses(
    (status = 200, description = "One decision per line.", body = DecisionWithCalls, content_type = "application/x-ndjson"),
    (status = 409, description = "Too many requests over all of the caller's data wait already (`busy_with_your_data`)."),
))]
async fn export(
    State(app): State<Shared>,
    User(user): User,
    QueryParams(query): QueryParams<ExportQuery>,
) -> Result<Response, Problem> {
    let filter = DecisionFilter {
        limit: Some(EXPORT_PAGE),
        ..query.parse()?
    };
    // The first page is read before the response starts, so that a failing store is reported as a
    // problem.
    let first = page(app.clone(), user.clone(), filter.clone());
    let first = app.whole_data.run(&user, first).await?;
    let pages = stream::try_unfold(
        (app, user, filter, Some(first)),
        |(app, user, mut filter, read)| async move {
            let lines = match read {
                Some(lines) => lines,
                None => {
                    let next = page(app.clone(), user.clone(), filter.clone());
                    app.whole_data.run_part(&user, next).await?
                }
            };
            let Some(after) = lines.after else {
                return Ok::<_, Problem>(None);
            };
            // The cursor and not an offset: a decision that is added meanwhile shifts nothing.
            filter.after = Some(after);
            Ok(Some((lines.text, (app, user, filter, None))))
        },
    );
    // An error aborts the transfer, because the status has been sent already.
    let body = Body::from_stream(
        pages.map_err(|problem| std::io::Error::other(problem.detail().to_owned())),
    );
    let file = "attachment; filename=\"decisions.ndjson\"";
    let headers = [
        (CONTENT_TYPE, "application/x-ndjson"),
        (CONTENT_DISPOSITION, file),
    ];
    Ok((headers, body).into_response())
}

/// Lines of an export, and the cursor after the last one; `None` if there are no lines.
struct Lines {
    text: String,
    after: Option<adjutant_core::port::Cursor>,
}

async fn page(app: Shared, user: UserId, filter: DecisionFilter) -> Result<Lines, StoreError> {
    let logs = app.agent.logs();
    let records = logs.decisions(&user, &filter).await?;
    let mut lines = Lines {
        text: String::new(),
        after: records.last().map(DecisionRecord::cursor),
    };
    for record in records {
        let calls = logs.tool_invocations(&user, record.id).await?;
        let line = DecisionWithCalls::new(record, calls, app.agent.now());
        let unusable = |error: serde_json::Error| StoreError::unusable(error.to_string());
        lines.text += &serde_json::to_string(&line).map_err(unusable)?;
        lines.text.push('\n');
    }
    Ok(lines)
}

/// Parses an outcome; an error suggests the most similar one.
pub(crate) fn parse_outcome(word: &str) -> Result<OutcomeCategory, Problem> {
    // The error repeats the text; a suggestion helps more.
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

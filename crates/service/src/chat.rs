//! `POST /v1/chat`: sends a message or answers pending calls, and returns the turn's response.

use adjutant_core::port::StoreError;
use adjutant_core::{
    AgentResponse, Answer, Arguments, ConversationId, DecisionKind, Disposition, Event, FailedCall,
    InputBody, Notice, OutcomeCategory, PendingCall, Recorded, TurnId, TurnLimits, UserId,
    UserIntent, fingerprint,
};
use adjutant_runtime::RunContext;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::extract::JsonBody;
use crate::idempotency::idempotency_key;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Shared;
use crate::thread_id::parse_thread_id;
use crate::time_zone;
use crate::titles;
use crate::trace::Trace;
use crate::user::SignedIn;
use crate::wire::{CallAnswer, Cause, DoubtVerdict, Pending, Timing, ToolUsed, Usage};

/// Namespace for UUIDs of new conversations whose request has an idempotency key. Differs from that
/// of conversations' names, so that no name leads to one of them.
const REQUEST_NAMESPACE: Uuid = Uuid::from_u128(0x0d8e_6c54_92a7_4f3b_b1c5_7e2d_94f0_6a18);

/// A message to the agent, or answers to pending calls.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"message": "delete the milk", "thread_id": "t_1"}))]
pub(crate) struct ChatRequest {
    /// The user's message. Required unless `resume` has answers.
    #[schema(min_length = 1, pattern = r"\S")]
    message: Option<String>,
    /// Id of the conversation, or a name chosen by the client. Without it, a new conversation is
    /// created.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: Option<String>,
    /// Answers to pending calls.
    #[serde(default)]
    resume: Vec<Resume>,
    /// Time zone of the user, by its name in the IANA database; by default that of `/v1/settings`. With
    /// one the model reads the local time of the message in front of it; without it, no time.
    #[schema(example = "Europe/Berlin", min_length = 1, max_length = 64)]
    time_zone: Option<String>,
}

/// Answer to one pending call.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resume {
    /// The `interrupt_id` of the pending call.
    interrupt_id: String,
    /// Answer to a confirmation. Only `true` approves the call.
    approved: Option<bool>,
    /// Answer for a call in doubt.
    verdict: Option<DoubtVerdict>,
    /// Edited arguments to approve the call with. They are checked again. Unless `shown` is the
    /// preview of exactly these arguments, nothing is executed: the call stays pending with them,
    /// under another `interrupt_id`.
    #[serde(rename = "editedArgs")]
    #[schema(value_type = Option<Object>)]
    edited_args: Option<Arguments>,
    /// The `interrupt_id` that `POST /v1/pending/{interrupt_id}/preview` returned, if the user has
    /// seen the effect of the edited arguments.
    shown: Option<String>,
    /// With `approved`: also approves later calls of the tool in this conversation that are confirmed
    /// only because they are not in the user's own words. Amounts and addresses are still confirmed.
    /// Only for a pending call that has `for_conversation`.
    #[serde(default)]
    for_conversation: bool,
    /// With `approved`: also approves later calls of the tool in all conversations of the user, unless
    /// text of others was read before. `GET /v1/settings` lists the tools. Only for a pending call
    /// that has `always`.
    #[serde(default)]
    always: bool,
}

impl Resume {
    fn into_answer(self) -> CallAnswer {
        CallAnswer {
            approved: self.approved,
            verdict: self.verdict,
            edited_args: self.edited_args,
            shown: self.shown,
            for_conversation: self.for_conversation,
            always: self.always,
        }
    }
}

/// Converts a store error, naming a conversation that a newer version wrote as unreadable.
fn in_run(error: StoreError) -> Problem {
    Problem::run(&error.into())
}

/// The turn's response.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "thread_id": "t_1",
    "run_id": "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11",
    "decision": "REQUEST_CONFIRMATION",
    "intent": "DELETE_TASK",
    "outcome": "PENDING:CONFIRMATION",
    "disposition": "ran",
    "content": "Delete “buy milk”?",
    "pending": [{
        "interrupt_id": "6b1f0c…",
        "kind": "confirmation",
        "tool": "delete_task",
        "args": {"task_id": "7"},
        "preview": "Delete “buy milk”",
        "expires_at": "2026-11-29T09:30:00Z"
    }],
    "tools_used": [],
    "failed_calls": [],
    "usage": {
        "model": "gemini/gemini-flash",
        "input_tokens": 812,
        "output_tokens": 41,
        "cached_tokens": null,
        "thinking_tokens": null,
        "cost_usd": 0.0003
    },
    "timing_ms": {"llm": 911, "tools": 4, "total": 921}
}))]
pub(crate) struct ChatResponse {
    /// Id of the conversation, or the name that the client sent.
    thread_id: String,
    /// Id of the turn.
    #[schema(value_type = String)]
    run_id: TurnId,
    /// Kind of the agent's decision.
    #[schema(value_type = String)]
    decision: DecisionKind,
    /// Intent of the user, derived from the tools that were called.
    #[schema(value_type = String)]
    intent: UserIntent,
    /// Outcome of the turn.
    #[schema(value_type = String)]
    outcome: OutcomeCategory,
    /// Fate of the request's message or answers: `ran` (the response is that of its own
    /// turn), `queued` (it is kept and runs after the open turn; the response is the question that
    /// this turn waits with), `answered` (it answered the question of the turn in the response), or
    /// `dropped` (it never runs).
    #[schema(value_type = String)]
    disposition: Disposition,
    /// Text for the user.
    content: String,
    /// Calls that wait for an answer.
    pending: Vec<Pending>,
    /// Tool calls of the turn.
    tools_used: Vec<ToolUsed>,
    /// Calls that failed, with the reason for the user; also in a turn that succeeded otherwise.
    #[schema(value_type = Vec<Object>)]
    failed_calls: Vec<FailedCall>,
    /// Tokens and cost.
    usage: Usage,
    /// Durations in milliseconds.
    timing_ms: Timing,
    /// Notices to the user, for example that the message was cut.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    notices: Vec<Notice>,
    /// The error, if the turn did not fully succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cause>,
    /// Structured output, if the turn was asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
}

/// Problem document of a failed turn, with the members of the turn's response except `error`.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes what `ChatResponse::into_problem` returns"
)]
pub(crate) struct FailedTurn {
    #[serde(flatten)]
    problem: Problem,
    #[serde(flatten)]
    turn: ChatResponse,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(chat))
}

/// Sends a message to the agent, or answers pending calls.
///
/// The turn continues when the client disconnects. A request with an `Idempotency-Key` can be sent
/// again, to any replica, and then returns the response of the first.
#[utoipa::path(post, path = "/v1/chat", operation_id = "send_message", tag = "chat", request_body = ChatRequest,
    params(("Idempotency-Key" = Option<String>, Header,
        description = "Key that identifies the request: a request with the same key is not executed twice.",
        min_length = 1, max_length = 200, pattern = "^[ -~]*[!-~][ -~]*$")),
    responses(
        (status = 200, description = "The turn's response.", body = ChatResponse),
        (status = 404, description = "The answered call is not pending (any more)."),
        (status = 422, description = "The request is invalid, or its Idempotency-Key was used for another request."),
        (status = 429, description = "A limit of the user or of their conversation is reached (`limit_reached`); or, in a turn, \
            one of the provider (`rate_limit`, `quota`) or a budget: then there is a `run_id` and the members of 502."),
        (status = 502, description = "The model did not give a usable answer.", body = FailedTurn,
            content_type = "application/problem+json"),
        (status = 503, description = "The service cannot reach its data or its keys at the moment; or, in a turn, its model: then \
            there is a `run_id` and the members of 502."),
        (status = 504, description = "The model did not answer in time.", body = FailedTurn,
            content_type = "application/problem+json"),
    ))]
pub(crate) async fn chat(
    State(app): State<Shared>,
    SignedIn(caller): SignedIn,
    RequestId(request_id): RequestId,
    Trace(trace): Trace,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ChatRequest>,
) -> Result<Json<ChatResponse>, Problem> {
    let id = idempotency_key(&headers)?;
    // Does not include the conversation: keys are scoped to it, so a request to another one is
    // another request anyway.
    let fingerprint = id
        .as_ref()
        .map(|_| fingerprint(&json!([request.message, request.resume])));
    let mut context = RunContext {
        request_id,
        fingerprint,
        trace,
        time_zone: time_zone::parse(request.time_zone.as_deref())?,
        ..caller.run_context()
    };
    match (&request.thread_id, &id) {
        (Some(thread), _) => context.conversation = parse_thread_id(thread)?,
        // A repeated request must find the conversation that the first one created.
        (None, Some(id)) => {
            context.conversation =
                ConversationId(Uuid::new_v5(&REQUEST_NAMESPACE, id.as_str().as_bytes()));
        }
        (None, None) => {}
    }
    // Counted before the answers are consumed: if all are refused, the response is a problem.
    let answered = request.resume.len();
    let input = match (request.message, request.resume) {
        (Some(message), resume) if resume.is_empty() => said(&app, &context.user, message),
        (None, resume) if !resume.is_empty() => {
            let key = app.agent.key(&context);
            let again = match &id {
                Some(id) => app.agent.has_input(&key, id).await?,
                None => false,
            };
            let answers = if again {
                // The answers of the first request count; the calls may have been executed since.
                Vec::new()
            } else {
                let pending = app.agent.context(&key).await.map_err(in_run)?.pending;
                let waits = |resume: &Resume| {
                    pending
                        .iter()
                        .any(|call| call.digest == resume.interrupt_id)
                };
                // Only an answer to a call that is not pending needs the whole conversation.
                let before = if resume.iter().all(waits) {
                    Vec::new()
                } else {
                    app.agent.journal().load(&key).await.map_err(in_run)?.events
                };
                answers(&pending, &before, resume)?
            };
            InputBody::Answers { answers }
        }
        _ => return Err(Problem::invalid("send either message or resume")),
    };
    // After everything that can refuse the request, so that a refused one takes no turn.
    let running = app.begin_turn(&context.user)?;
    let here = app.clone();
    // In a task of its own: this future is dropped when the client disconnects.
    let turn = app.turns.spawn(async move {
        let response = here.agent.run_input(&mut context, id, input).await;
        response.inspect(|response| {
            running.record_end(response);
            titles::generate(&here, &here.agent.key(&context), response);
        })
    });
    let response = turn.await??;
    respond(&app, response, answered, request.thread_id)
}

/// Returns a message as input, with the limit of this route if it is over it.
fn said(app: &Shared, user: &UserId, message: String) -> InputBody {
    let agent = app.agent.for_user(user);
    let limits = agent.limits();
    let shorter = limits
        .message_chars_max
        .zip(app.chat_message_chars_max)
        .map(|(agents, own)| own.min(agents))
        .filter(|max| message.chars().nth(*max).is_some());
    let mut input = InputBody::message(message);
    if let (Some(max), InputBody::Message { limits: own, .. }) = (shorter, &mut input) {
        *own = Some(Box::new(TurnLimits {
            message_chars_max: Some(max),
            ..limits.clone()
        }));
    }
    input
}

/// Builds the response of a request: that of the turn, or the problem that the turn ended with.
/// `answered` is the number of answers in the request.
pub(crate) fn respond(
    app: &Shared,
    response: AgentResponse,
    answered: usize,
    thread: Option<String>,
) -> Result<Json<ChatResponse>, Problem> {
    let failed = Problem::for_turn(&response, app.agent.now());
    if let (None, Some(refused)) = (&failed, Problem::for_refused_answers(&response, answered)) {
        return Err(refused);
    }
    let response = ChatResponse::new(response, thread, app.agent.model().id().to_string());
    match failed {
        None => Ok(Json(response)),
        Some(problem) => Err(response.into_problem(problem)),
    }
}

/// Returns the confirmation with this digest, pending or answered, and its turn.
pub(crate) fn find_confirmation(
    events: &[Recorded],
    digest: &str,
) -> Option<(TurnId, PendingCall)> {
    events
        .iter()
        .rev()
        .find_map(|recorded| match &*recorded.event {
            Event::TurnParked { turn, pending, .. } => Some((
                *turn,
                pending.iter().find(|call| call.digest == digest)?.clone(),
            )),
            _ => None,
        })
}

/// Matches the answers with their calls. A call that was answered `before` is found too: the agent
/// then reports its result. An unknown digest is a 404.
fn answers(
    pending: &[PendingCall],
    before: &[Recorded],
    resume: Vec<Resume>,
) -> Result<Vec<Answer>, Problem> {
    let answer = |resume: Resume| {
        let waits = pending
            .iter()
            .find(|call| call.digest == resume.interrupt_id)
            .cloned();
        let call =
            waits.or_else(|| find_confirmation(before, &resume.interrupt_id).map(|(_, call)| call));
        let call = call.ok_or_else(|| Problem::unknown("pending call with this id"))?;
        resume.into_answer().answer_to(&call)
    };
    resume.into_iter().map(answer).collect()
}

impl ChatResponse {
    pub(crate) fn new(response: AgentResponse, thread: Option<String>, model: String) -> Self {
        let (usage, timing_ms) = (
            Usage::from_response(&response, model),
            Timing::from_response(&response),
        );
        Self {
            thread_id: thread.unwrap_or_else(|| response.conversation.to_string()),
            run_id: response.turn,
            decision: response.decision.kind,
            intent: response.decision.intent,
            outcome: response.outcome,
            disposition: response.disposition,
            content: response.content,
            pending: response
                .decision
                .pending
                .into_iter()
                .map(Pending::from_call)
                .collect(),
            tools_used: response
                .tools_used
                .into_iter()
                .map(ToolUsed::from_invocation)
                .collect(),
            failed_calls: response.failed_calls,
            usage,
            timing_ms,
            notices: response.notices,
            error: response.error.as_ref().map(Cause::from_error),
            output: response.output,
        }
    }

    /// Adds the response's members to the problem that the turn ended with, so that a client finds
    /// the decision in the same place in either case. The error itself is left out; it is logged.
    fn into_problem(self, problem: Problem) -> Problem {
        let members = serde_json::to_value(Self {
            error: None,
            ..self
        })
        .unwrap_or_default();
        let members = members.as_object().cloned().unwrap_or_default();
        // `run_id` is already a member of the problem.
        let others = members.into_iter().filter(|(name, _)| name != "run_id");
        others.fold(problem, |problem, (name, value)| problem.with(&name, value))
    }
}

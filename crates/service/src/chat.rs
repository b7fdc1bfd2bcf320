//! `POST /v1/chat`: a message or answers in, the turn's response out.

use adjutant_core::port::StoreError;
use adjutant_core::{
    AgentResponse, Answer, Arguments, ConversationId, DecisionKind, Event, InputBody, Notice,
    OutcomeCategory, PendingCall, Recorded, TurnId, UserIntent, Verdict, fingerprint,
};
use adjutant_runtime::RunContext;
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::idempotency::request_name;
use crate::length::at_most;
use crate::object::Object;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Shared;
use crate::titles;
use crate::trace::Trace;
use crate::user::User;
use crate::wire::{Cause, Pending, Timing, ToolUsed, Usage, with_edited};

/// A client's own name for a conversation may be this long, in characters.
pub(crate) const THREAD_ID_MAX: usize = 200;

/// Names of clients' own become UUIDs in this namespace.
const THREADS: Uuid = Uuid::from_u128(0x5b1c_0f5e_6d1a_4b0e_9a57_5a1f_3a8b_2c11);

/// Requests with a name and without a conversation begin one in this namespace, where no name of a
/// conversation leads.
const REQUESTS: Uuid = Uuid::from_u128(0x0d8e_6c54_92a7_4f3b_b1c5_7e2d_94f0_6a18);

/// What a client sends.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"message": "delete the milk", "thread_id": "t_1"}))]
pub(crate) struct ChatRequest {
    /// What the person says. Needed unless something is answered.
    #[schema(min_length = 1, pattern = r"\S")]
    message: Option<String>,
    /// The conversation, by our id or by a name of your own; without it a new one begins.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    thread_id: Option<String>,
    /// Answers to what waits.
    #[serde(default)]
    resume: Vec<Resume>,
}

/// The answer to one pending call.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resume {
    /// As the pending call was shown.
    interrupt_id: String,
    /// To a confirmation. Only `true` is a yes.
    approved: Option<bool>,
    /// To a doubt: what became of the call.
    verdict: Option<Became>,
    /// Other arguments to approve the call with. They pass the gate again. Unless `shown` is the
    /// preview of exactly what they come to, nothing is done: the call waits with them, under
    /// another `interrupt_id`.
    #[serde(rename = "editedArgs")]
    #[schema(value_type = Option<Object>)]
    edited_args: Option<Arguments>,
    /// The person was shown what the call does with `editedArgs`: the `interrupt_id` that
    /// `POST /v1/pending/{interrupt_id}/preview` answered.
    shown: Option<String>,
}

/// What became of a call in doubt, as the person has it.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Became {
    /// It was done.
    Done,
    /// It was not done; it is to be tried again.
    Retry,
    /// It is to be left as it is.
    Leave,
}

impl Resume {
    fn verdict(&self) -> Result<Verdict, Problem> {
        match (self.approved, self.verdict) {
            (Some(true), None) => Ok(Verdict::Approved),
            (Some(false), None) => Ok(Verdict::Denied),
            (None, Some(Became::Done)) => Ok(Verdict::Done),
            (None, Some(Became::Retry)) => Ok(Verdict::Retry),
            (None, Some(Became::Leave)) => Ok(Verdict::Leave),
            (Some(_), Some(_)) | (None, None) => Err(Problem::invalid(
                "an answer has either approved, or a verdict of done, retry or leave",
            )),
        }
    }
}

/// What a client gets.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "thread_id": "t_1",
    "run_id": "0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11",
    "decision": "REQUEST_CONFIRMATION",
    "intent": "DELETE_TASK",
    "outcome": "PENDING:CONFIRMATION",
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
    thread_id: String,
    #[schema(value_type = String)]
    run_id: TurnId,
    #[schema(value_type = String)]
    decision: DecisionKind,
    #[schema(value_type = String)]
    intent: UserIntent,
    #[schema(value_type = String)]
    outcome: OutcomeCategory,
    content: String,
    pending: Vec<Pending>,
    tools_used: Vec<ToolUsed>,
    usage: Usage,
    timing_ms: Timing,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    notices: Vec<Notice>,
    /// The typed cause, if the turn did not simply succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
}

/// The problem that a turn ended with, and all members of its response but `error`: what was done
/// before, and what is said to the person.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what `ChatResponse::beside` makes")]
pub(crate) struct FailedTurn {
    #[serde(flatten)]
    problem: Problem,
    #[serde(flatten)]
    turn: ChatResponse,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(chat))
}

/// Answers a message, or goes on with what was answered.
///
/// The turn goes on to its end also when the client goes away; one that gave its request a name
/// (`Idempotency-Key`) may send it again, here or to another replica, and gets what became of it.
#[utoipa::path(post, path = "/v1/chat", operation_id = "send_message", tag = "chat", request_body = ChatRequest,
    params(("Idempotency-Key" = Option<String>, Header,
        description = "What the client calls its request: sent again with the same one, it is the same request.",
        min_length = 1, max_length = 200, pattern = "^[ -~]*[!-~][ -~]*$")),
    responses(
        (status = 200, description = "What the turn came to.", body = ChatResponse),
        (status = 404, description = "What was answered does not wait (any more)."),
        (status = 422, description = "The request cannot be understood, or its Idempotency-Key was used for another one."),
        (status = 429, description = "The user's own bound or that of their conversation is reached (`limit_reached`); or the \
            provider's (`rate_limit`, `quota`) or a budget's in a turn, which has a `run_id` and all that 502 has."),
        (status = 502, description = "The model did not give a usable answer.", body = FailedTurn,
            content_type = "application/problem+json"),
        (status = 503, description = "The service cannot reach its data or its keys right now; or its model in a turn, which \
            has a `run_id` and all that 502 has."),
        (status = 504, description = "The model did not answer in time.", body = FailedTurn,
            content_type = "application/problem+json"),
    ))]
pub(crate) async fn chat(
    State(app): State<Shared>,
    User(user): User,
    RequestId(request_id): RequestId,
    Trace(trace): Trace,
    headers: HeaderMap,
    body: Result<Json<Object<ChatRequest>>, JsonRejection>,
) -> Result<Json<ChatResponse>, Problem> {
    let Json(Object(request)) = body?;
    let id = request_name(&headers)?;
    // The conversation is named beside it: the same request in another one is another request
    // anyway.
    let fingerprint = id
        .as_ref()
        .map(|_| fingerprint(&json!([request.message, request.resume])));
    let mut context = RunContext {
        request_id,
        fingerprint,
        trace,
        ..RunContext::new(user)
    };
    match (&request.thread_id, &id) {
        (Some(thread), _) => context.conversation = conversation_of(thread)?,
        // Sent again, it must not begin a second conversation.
        (None, Some(id)) => {
            context.conversation = ConversationId(Uuid::new_v5(&REQUESTS, id.as_str().as_bytes()));
        }
        (None, None) => {}
    }
    let answered = request.resume.len();
    let input = match (request.message, request.resume) {
        (Some(message), resume) if resume.is_empty() => InputBody::message(message),
        (None, resume) if !resume.is_empty() => {
            let key = app.agent.key(&context);
            let again = match &id {
                Some(id) => app
                    .agent
                    .has_input(&key, id)
                    .await
                    .map_err(|error| Problem::store(&error))?,
                None => false,
            };
            let answers = if again {
                // What was said the first time counts, and may have been carried out since.
                Vec::new()
            } else {
                let failed = |error: StoreError| Problem::run(&error.into());
                let pending = app.agent.context(&key).await.map_err(failed)?.pending;
                let waits = |resume: &Resume| {
                    pending
                        .iter()
                        .any(|call| call.digest == resume.interrupt_id)
                };
                let before = match resume.iter().all(waits) {
                    true => Vec::new(),
                    false => app.agent.journal().load(&key).await.map_err(failed)?.events,
                };
                answers(&pending, &before, resume)?
            };
            InputBody::Answers { answers }
        }
        _ => return Err(Problem::invalid("send either message or resume")),
    };
    let running = app.begin_turn(&context.user)?;
    let here = app.clone();
    let turn = app.turns.spawn(async move {
        let response = here.agent.run_input(&mut context, id, input).await;
        response.inspect(|response| {
            running.ended(response);
            titles::find(&here, &here.agent.key(&context), response);
        })
    });
    let response = turn
        .await
        .map_err(|_| Problem::internal())?
        .map_err(|error| Problem::run(&error))?;
    answer(&app, response, answered, request.thread_id)
}

/// What whoever asked gets: the turn's response, or the problem that the turn or its answers came
/// to.
pub(crate) fn answer(
    app: &Shared,
    response: AgentResponse,
    answered: usize,
    thread: Option<String>,
) -> Result<Json<ChatResponse>, Problem> {
    let failed = Problem::of_turn(&response, app.agent.now());
    if let (None, Some(refused)) = (&failed, Problem::of_answers(&response, answered)) {
        return Err(refused);
    }
    let response = ChatResponse::of(response, thread, app.agent.model().id().to_string());
    match failed {
        None => Ok(Json(response)),
        Some(problem) => Err(response.beside(problem)),
    }
}

/// The conversation a client means: by our id, or by a name of its own.
pub(crate) fn conversation_of(thread: &str) -> Result<ConversationId, Problem> {
    at_most("thread_id", thread, THREAD_ID_MAX)?;
    match thread.trim() {
        "" => Err(Problem::invalid(
            "thread_id is empty; leave it out to begin a conversation",
        )),
        name => {
            Ok(ConversationId(Uuid::parse_str(name).unwrap_or_else(|_| {
                Uuid::new_v5(&THREADS, name.as_bytes())
            })))
        }
    }
}

/// Returns what was asked under this name, now or earlier, and in which turn.
pub(crate) fn asked_before(events: &[Recorded], digest: &str) -> Option<(TurnId, PendingCall)> {
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

/// Answers the calls that wait, one by one. An answer to what was answered `before` is told what
/// became of it; what was never asked is no secret: it gets a 404.
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
            waits.or_else(|| asked_before(before, &resume.interrupt_id).map(|(_, call)| call));
        let call = call
            .ok_or_else(|| Problem::unknown("pending call: nothing of that name was asked here"))?;
        let answer = call.answer(resume.verdict()?);
        Ok(with_edited(answer, resume.edited_args, resume.shown))
    };
    resume.into_iter().map(answer).collect()
}

impl ChatResponse {
    pub(crate) fn of(response: AgentResponse, thread: Option<String>, model: String) -> Self {
        let (usage, timing_ms) = (Usage::of(&response, model), Timing::of(&response));
        Self {
            thread_id: thread.unwrap_or_else(|| response.conversation.to_string()),
            run_id: response.turn,
            decision: response.decision.kind,
            intent: response.decision.intent,
            outcome: response.outcome,
            content: response.content,
            pending: response
                .decision
                .pending
                .into_iter()
                .map(Pending::of)
                .collect(),
            tools_used: response.tools_used.into_iter().map(ToolUsed::of).collect(),
            usage,
            timing_ms,
            notices: response.notices,
            error: response.error.as_ref().map(Cause::of),
            output: response.output,
        }
    }

    /// The problem that the turn ended with, and beside its own members those of the response: a
    /// client reads the decision in the same place, whatever came of the turn. What exactly failed
    /// is for whoever runs the service.
    fn beside(self, problem: Problem) -> Problem {
        let members = serde_json::to_value(Self {
            error: None,
            ..self
        })
        .unwrap_or_default();
        let members = members.as_object().cloned().unwrap_or_default();
        // The problem has it already.
        let others = members.into_iter().filter(|(name, _)| name != "run_id");
        others.fold(problem, |problem, (name, value)| problem.with(&name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_has_our_id_or_the_clients_name() {
        let ours = ConversationId(Uuid::now_v7());
        assert_eq!(conversation_of(&ours.to_string()).unwrap(), ours);
        assert_eq!(
            conversation_of("t_1").unwrap(),
            conversation_of(" t_1 ").unwrap()
        );
        assert_ne!(
            conversation_of("t_1").unwrap(),
            conversation_of("t_2").unwrap()
        );
        assert!(conversation_of(" ").is_err() && conversation_of(&"x".repeat(201)).is_err());
    }
}

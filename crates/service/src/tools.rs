//! `/v1/tools`: calls a tool without a model, through the same gate and journal as a model's calls.

use adjutant_core::{
    Arguments, ConversationKey, PendingCall, Permission, RequestedCall, ToolResult, Verdict,
};
use adjutant_runtime::{Agent, CallOutcome, RunContext};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::{JsonBody, PathParam};
use crate::idempotency::idempotency_key;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Shared;
use crate::trace::Trace;
use crate::user::SignedIn;
use crate::wire::Pending;

/// A request to call a tool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"args": {"description": "buy milk"}}))]
struct Invocation {
    /// Arguments of the call. The user is not among them.
    #[serde(default)]
    #[schema(value_type = Object)]
    args: Arguments,
    /// `confirm` of the problem `pending_confirmation`, if the user has seen the preview and
    /// approves the call.
    #[serde(default, deserialize_with = "confirmed_digest")]
    confirm: Option<String>,
}

/// Deserializes `confirm`. A client that sends `true` gets an error that explains the field.
fn confirmed_digest<'de, D: Deserializer<'de>>(json: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(json)? {
        Value::Null => Ok(None),
        Value::String(digest) => Ok(Some(digest)),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(D::Error::custom(
                "confirm is the text that the problem pending_confirmation has under the same name, so that the yes is to what was \
             shown; nothing was done",
            ))
        }
    }
}

/// Result of a tool call.
#[derive(Debug, Serialize, ToSchema)]
struct Invoked {
    /// `success`, and `data` or `error`.
    #[schema(value_type = Object)]
    result: ToolResult,
    /// Arguments that the tool ran with, references resolved to ids.
    #[schema(value_type = Object)]
    args: Arguments,
    /// Summary for the user, if the tool gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(invoke))
}

/// Calls a tool without a model.
///
/// A destructive call is not executed at first: the problem `pending_confirmation` has a `preview`
/// of its effect, and the same request with its `confirm` executes exactly that. Until then, and
/// also if the process crashed during the call, it is a pending call like any other, which
/// `/v1/chat` answers with `thread_id` and `resume`. The call continues when the client
/// disconnects.
#[utoipa::path(post, path = "/v1/tools/{name}/invoke", operation_id = "invoke_tool", tag = "tasks", request_body = Invocation,
    params(
        ("name" = String, Path, description = "Name of the tool."),
        ("Idempotency-Key" = Option<String>, Header,
            description = "Key that identifies the request: a request with the same key is not executed twice.",
            min_length = 1, max_length = 200, pattern = "^[ -~]*[!-~][ -~]*$"),
    ),
    responses(
        (status = 200, description = "The tool was executed; `success` is false if it failed.", body = Invoked),
        (status = 403, description = "The policy forbids the call, or the host name or the page's origin is not accepted."),
        (status = 404, description = "There is no such tool, or the confirmed call is not pending (any more)."),
        (status = 409, description = "The call needs a confirmation (`pending_confirmation`, with `preview`), or it was started and \
            its result is unknown (`in_doubt`)."),
        (status = 422, description = "The arguments are invalid, or the Idempotency-Key or `confirm` belongs to another call."),
    ))]
async fn invoke(
    State(app): State<Shared>,
    SignedIn(caller): SignedIn,
    RequestId(request_id): RequestId,
    Trace(trace): Trace,
    headers: HeaderMap,
    PathParam(tool): PathParam,
    JsonBody(Invocation { args, confirm }): JsonBody<Invocation>,
) -> Result<Json<Invoked>, Problem> {
    let agent = app.agent.for_user(&caller.user);
    let Some(found) = agent.tools().get(&tool) else {
        return Err(Problem::unknown("tool"));
    };
    if agent.permission(&caller.user, found.definition()) == Permission::Deny {
        // Refused before a conversation for the call is created.
        return Err(Problem::forbidden(
            "the policy of this service does not allow that tool",
        ));
    }
    let id = idempotency_key(&headers)?;
    let requested = RequestedCall::new(tool, args);
    let mut context = RunContext {
        request_id,
        trace,
        ..caller.call_context(id.as_ref())
    };
    // In a task of its own: this future is dropped when the client disconnects.
    let call = app.turns.spawn(async move {
        let outcome = match confirm {
            Some(digest) => {
                confirmed(&agent, &mut context, id.is_some(), &requested, &digest).await
            }
            None => {
                // Only a request with a key can be the repetition of another.
                context.fingerprint = id.as_ref().map(|_| requested.fingerprint());
                Ok(agent.call_tool(&mut context, id, requested).await?)
            }
        };
        to_response(&agent.key(&context), outcome?)
    });
    call.await?.map(Json)
}

/// Executes a call whose preview had this digest; a repeated request returns the call's result.
/// `named`: the idempotency key leads to the call's conversation, so pending calls need not be
/// searched.
async fn confirmed(
    agent: &Agent,
    context: &mut RunContext,
    named: bool,
    requested: &RequestedCall,
    digest: &str,
) -> Result<CallOutcome, Problem> {
    if !named {
        let parked = agent
            .journal()
            .parked(agent.name(), Some(&context.user))
            .await?;
        for (key, _) in parked
            .into_iter()
            .filter(|(key, _)| key.conversation.is_of_a_request())
        {
            if is_shown(&agent.context(&key).await?.pending, digest) {
                context.conversation = key.conversation;
            }
        }
    }
    let Some((shown, outcome)) = agent.requested_call(&agent.key(context)).await? else {
        return Err(gone());
    };
    let arguments = match &outcome {
        CallOutcome::Confirm(pending) => Some(&pending.arguments),
        CallOutcome::Done { invocation, .. } => Some(&invocation.arguments),
        _ => None,
    };
    // The client sends the arguments of its first request, or those of the answer, in which
    // references are resolved to ids.
    if shown.tool != requested.tool
        || (shown.arguments != requested.arguments && arguments != Some(&requested.arguments))
    {
        return Err(Problem::invalid(
            "confirm belongs to another call; nothing was done",
        ));
    }
    match outcome {
        CallOutcome::Confirm(pending) if pending.digest == digest => Ok(agent
            .answer_call(context, None, pending.answer(Verdict::Approved))
            .await?),
        CallOutcome::Confirm(_) => Err(gone()),
        finished => Ok(finished),
    }
}

fn is_shown(pending: &[PendingCall], digest: &str) -> bool {
    pending.iter().any(|call| call.digest == digest)
}

fn gone() -> Problem {
    Problem::unknown("waiting call: it was answered, its time has run out, or it was never shown")
}

fn to_response(key: &ConversationKey, outcome: CallOutcome) -> Result<Invoked, Problem> {
    match outcome {
        CallOutcome::Done {
            invocation,
            summary,
        } => Ok(Invoked {
            result: invocation.result,
            args: invocation.arguments,
            summary,
        }),
        CallOutcome::Confirm(pending) | CallOutcome::InDoubt(pending) => Err(waiting(key, pending)),
        CallOutcome::Ask(question) => Err(Problem::invalid(question)),
        CallOutcome::Refused(message) => Err(Problem::invalid(message)),
        CallOutcome::Declined(message) => Err(Problem::new(
            StatusCode::CONFLICT,
            "declined",
            "It was not confirmed",
            message,
        )),
    }
}

/// Returns the problem of a call that waits for an answer.
fn waiting(key: &ConversationKey, pending: PendingCall) -> Problem {
    let (code, title, state) = match pending.doubt {
        None => (
            "pending_confirmation",
            "Confirmation required",
            "? Nothing was done; to confirm it, send the same request with the \"confirm\" of this answer",
        ),
        Some(_) => (
            "in_doubt",
            "The call is in doubt",
            ": it was started, and its result is unknown; report what happened with the \"resume\" of /v1/chat",
        ),
    };
    let detail = format!("{}{state}", pending.preview);
    let mut problem = Problem::new(StatusCode::CONFLICT, code, title, detail)
        .with("preview", pending.preview.clone())
        .with("args", pending.arguments.clone())
        .with("thread_id", key.conversation.to_string());
    if pending.doubt.is_none() {
        problem = problem.with("confirm", pending.digest.clone());
    }
    problem.with("pending", json!([Pending::from_call(pending)]))
}

//! `/v1/tools`: a person calls a tool without a model, through the same gate and journal as a
//! model's calls.

use adjutant_core::{
    Arguments, ConversationKey, PendingCall, Permission, RequestedCall, ToolResult, Verdict,
};
use adjutant_runtime::{Agent, CallOutcome, RunContext};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::idempotency::request_name;
use crate::object::Object;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Shared;
use crate::trace::Trace;
use crate::user::User;
use crate::wire::Pending;

/// What a tool is called with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"args": {"description": "buy milk"}}))]
struct Invocation {
    /// Its arguments. Who asks is no part of them.
    #[serde(default)]
    #[schema(value_type = Object)]
    args: Arguments,
    /// The person was shown what will be touched and says yes: the `confirm` of the problem
    /// `pending_confirmation`.
    #[serde(default, deserialize_with = "confirmed_digest")]
    confirm: Option<String>,
}

/// Reads `confirm`. A client that sends `true`, as if any yes would do, is told what to send.
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

/// What came of it.
#[derive(Debug, Serialize, ToSchema)]
struct Invoked {
    /// `success`, and `data` or `error`.
    #[schema(value_type = Object)]
    result: ToolResult,
    /// What it ran with, references resolved to ids.
    #[schema(value_type = Object)]
    args: Arguments,
    /// Words about it, if the tool has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(invoke))
}

/// Calls a tool without a model.
///
/// One that destroys something is not run at first: the problem `pending_confirmation` has a
/// `preview` of what would be touched, and the same request with its `confirm` runs exactly that.
/// Until then, and if the process died while the call ran, it is a waiting call like any other:
/// `/v1/chat` answers it with `thread_id` and `resume`. The call goes on to its end also when the
/// client goes away.
#[utoipa::path(post, path = "/v1/tools/{name}/invoke", operation_id = "invoke_tool", tag = "tasks", request_body = Invocation,
    params(
        ("name" = String, Path, description = "The tool."),
        ("Idempotency-Key" = Option<String>, Header,
            description = "What the client calls its request: sent again with the same one, nothing is done again.",
            min_length = 1, max_length = 200, pattern = "^[ -~]*[!-~][ -~]*$"),
    ),
    responses(
        (status = 200, description = "It ran, or failed: see `success`.", body = Invoked),
        (status = 403, description = "The policy forbids it, or the host name or the page's origin may not ask."),
        (status = 404, description = "There is no such tool, or what is confirmed does not wait (any more)."),
        (status = 409, description = "It needs a yes (`pending_confirmation`): `preview` says to what. Or it was begun and \
            nobody knows whether it was done (`in_doubt`)."),
        (status = 422, description = "The arguments do not fit, or the Idempotency-Key or `confirm` is another call's."),
    ))]
async fn invoke(
    State(app): State<Shared>,
    User(user): User,
    RequestId(request_id): RequestId,
    Trace(trace): Trace,
    headers: HeaderMap,
    name: Result<Path<String>, PathRejection>,
    body: Result<Json<Object<Invocation>>, JsonRejection>,
) -> Result<Json<Invoked>, Problem> {
    let Path(tool) = name?;
    let Json(Object(Invocation { args, confirm })) = body?;
    let agent = app.agent.for_user(&user);
    let Some(found) = agent.tools().get(&tool) else {
        return Err(Problem::unknown("tool"));
    };
    if agent.permission(&user, found.definition()) == Permission::Deny {
        return Err(Problem::forbidden(
            "the policy of this service does not allow that tool",
        ));
    }
    let id = request_name(&headers)?;
    let requested = RequestedCall {
        tool,
        arguments: args,
    };
    let mut context = RunContext {
        request_id,
        trace,
        ..RunContext::for_call(user, id.as_ref())
    };
    let call = app.turns.spawn(async move {
        let outcome = match confirm {
            Some(digest) => {
                confirmed(&agent, &mut context, id.is_some(), &requested, &digest).await
            }
            None => {
                context.fingerprint = id.as_ref().map(|_| requested.fingerprint());
                let called = agent.call_tool(&mut context, id, requested).await;
                called.map_err(|error| Problem::run(&error))
            }
        };
        answer(&agent.key(&context), outcome?)
    });
    call.await.map_err(|_| Problem::internal())?.map(Json)
}

/// Runs a call that was shown with this digest. Sent again, it gives what became of it. `named`:
/// the client's name for the request leads to the call, so it need not be looked for among what
/// waits.
async fn confirmed(
    agent: &Agent,
    context: &mut RunContext,
    named: bool,
    requested: &RequestedCall,
    digest: &str,
) -> Result<CallOutcome, Problem> {
    let failed = |error| Problem::store(&error);
    if !named {
        let parked = agent
            .journal()
            .parked(agent.name(), Some(&context.user))
            .await
            .map_err(failed)?;
        for (key, _) in parked
            .into_iter()
            .filter(|(key, _)| key.conversation.is_of_a_request())
        {
            if is_shown(&agent.context(&key).await.map_err(failed)?.pending, digest) {
                context.conversation = key.conversation;
            }
        }
    }
    let Some((shown, outcome)) = agent
        .requested_call(&agent.key(context))
        .await
        .map_err(failed)?
    else {
        return Err(gone());
    };
    let arguments = match &outcome {
        CallOutcome::Confirm(pending) => Some(&pending.arguments),
        CallOutcome::Done { invocation, .. } => Some(&invocation.arguments),
        _ => None,
    };
    if shown.tool != requested.tool
        || (shown.arguments != requested.arguments && arguments != Some(&requested.arguments))
    {
        return Err(Problem::invalid(
            "confirm belongs to another call; nothing was done",
        ));
    }
    match outcome {
        CallOutcome::Confirm(pending) if pending.digest == digest => {
            let answered = agent
                .answer_call(context, None, pending.answer(Verdict::Approved))
                .await;
            answered.map_err(|error| Problem::run(&error))
        }
        CallOutcome::Confirm(_) => Err(gone()),
        became => Ok(became),
    }
}

fn is_shown(pending: &[PendingCall], digest: &str) -> bool {
    pending.iter().any(|call| call.digest == digest)
}

fn gone() -> Problem {
    Problem::unknown("waiting call: it was answered, its time has run out, or it was never shown")
}

fn answer(key: &ConversationKey, outcome: CallOutcome) -> Result<Invoked, Problem> {
    match outcome {
        CallOutcome::Done {
            invocation,
            summary,
        } => Ok(Invoked {
            result: invocation.result,
            args: invocation.arguments,
            summary,
        }),
        CallOutcome::Confirm(pending) => {
            let detail = format!(
                "{}? Nothing was done; to do it, send the same again with the \"confirm\" of this answer",
                pending.preview
            );
            Err(waiting(
                key,
                pending,
                "pending_confirmation",
                "It needs a yes",
                detail,
            ))
        }
        CallOutcome::InDoubt(pending) => {
            let detail = format!(
                "{}: it was begun, and nobody saw how it ended; say what became of it with the \"resume\" of /v1/chat",
                pending.preview
            );
            Err(waiting(
                key,
                pending,
                "in_doubt",
                "It may have been done",
                detail,
            ))
        }
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

/// A call that waits for a person.
fn waiting(
    key: &ConversationKey,
    pending: PendingCall,
    code: &'static str,
    title: &'static str,
    detail: String,
) -> Problem {
    let asks = pending.doubt.is_none();
    let problem = Problem::new(StatusCode::CONFLICT, code, title, detail)
        .with("preview", pending.preview.clone())
        .with("args", pending.arguments.clone())
        .with("thread_id", key.conversation.to_string());
    let problem = if asks {
        problem.with("confirm", pending.digest.clone())
    } else {
        problem
    };
    problem.with("pending", json!([Pending::of(pending)]))
}

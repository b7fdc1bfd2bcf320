//! Whether the process lives, and whether it can work.

use std::time::Duration;

use adjutant_core::{ConversationId, UserId};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use tracing::warn;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::auth::{Auth, Oidc};
use crate::state::Shared;

/// Time that the store has to answer, before the service says that it is not ready. A request waits
/// longer; a prober wants to know.
const STORE_ANSWERS: Duration = Duration::from_secs(2);

/// That it lives.
#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok`.
    status: &'static str,
}

/// Whether it can take a request.
#[derive(Serialize, ToSchema)]
struct Readiness {
    /// `ready`, `not ready` or `stopping`.
    status: &'static str,
    /// Why not. The model is not asked: that costs money, and what is wrong with it stands in the
    /// answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    reasons: Vec<&'static str>,
    /// Things that it can do without, and lacks at the moment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    notes: Vec<&'static str>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(readyz))
}

/// Says that the process lives.
///
/// It looks at nothing else, so whoever restarts a process that does not answer asks here. No token
/// is needed.
#[utoipa::path(get, path = "/healthz", operation_id = "get_liveness", tag = "operations", security(()), responses(
    (status = 200, description = "It lives.", body = Health),
))]
async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Says whether it can take a request; if not, why.
///
/// It asks the database, and tells a load balancer with 503 to send nothing more: while the service
/// stops, cannot reach its data, or has no space to store anything. No token is needed.
#[utoipa::path(get, path = "/readyz", operation_id = "get_readiness", tag = "operations", security(()), responses(
    (status = 200, description = "It can take a request.", body = Readiness),
    (status = 503, description = "It cannot, and says why.", body = Readiness),
))]
async fn readyz(State(app): State<Shared>) -> (StatusCode, Json<Readiness>) {
    if app.draining.is_cancelled() {
        return not("stopping", vec!["it is about to end: send nothing new"]);
    }
    // Where the store is and what exactly is wrong with it is in the log, not for everybody.
    let mut reasons = Vec::new();
    // Nobody's conversation: whether the store answers is the question.
    let nobody = app
        .agent
        .key_of(UserId::local(), ConversationId(Uuid::nil()));
    let asked = tokio::time::timeout(STORE_ANSWERS, app.agent.context(&nobody)).await;
    let failure = match &asked {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!(
            "there was no answer within {} s",
            STORE_ANSWERS.as_secs()
        )),
    };
    if let Some(error) = failure {
        let reason = "the store does not answer";
        reasons.push(reason);
        if app.limits.may_tell(reason) {
            warn!(error, "not ready: {reason}");
        }
    }
    if app.is_full() {
        reasons.push("there is no space to store anything");
    }
    if let Auth::Jwt(jwt) = &app.auth
        && !jwt.is_usable()
    {
        reasons.push("the issuer's keys cannot be had");
    }
    reasons.extend(app.readiness.get().and_then(|readiness| readiness()));
    if reasons.is_empty() {
        let left_alone = app.agent.is_dispatch_left_alone().unwrap_or_default();
        let mut notes = Vec::new();
        if left_alone {
            notes.push("turns are not dispatched for now: this process does the work itself");
        }
        if let Auth::Oidc(oidc) = &app.auth {
            look_at_provider(&app, oidc);
            if !oidc.is_usable() {
                notes.push(
                    "nobody can sign in: the provider does not answer as it should; who is signed in goes on",
                );
            }
        }
        return (
            StatusCode::OK,
            Json(Readiness {
                status: "ready",
                reasons,
                notes,
            }),
        );
    }
    not("not ready", reasons)
}

/// Asks the provider at which people sign in about itself, if that is due. Nobody waits for it: the
/// next look knows.
fn look_at_provider(app: &Shared, oidc: &Oidc) {
    if oidc.is_due() {
        let app = app.clone();
        app.turns.clone().spawn(async move {
            if let Auth::Oidc(oidc) = &app.auth {
                // What is wrong with it is the note.
                let _ = oidc.load().await;
            }
        });
    }
}

fn not(status: &'static str, reasons: Vec<&'static str>) -> (StatusCode, Json<Readiness>) {
    (
        StatusCode::SERVICE_UNAVAILABLE,
        Json(Readiness {
            status,
            reasons,
            notes: Vec::new(),
        }),
    )
}

//! Liveness and readiness probes.

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

/// Time limit of the store for the readiness probe. Shorter than that of a request: a load balancer
/// needs to know soon.
const STORE_ANSWERS: Duration = Duration::from_secs(2);

/// State of the process.
#[derive(Serialize, ToSchema)]
struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Readiness of the service for requests.
#[derive(Serialize, ToSchema)]
struct Readiness {
    /// `ready`, `not ready` or `stopping`.
    status: &'static str,
    /// Reasons for which it is not ready. The model is not asked, because that costs money; its
    /// failures are in the answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    reasons: Vec<&'static str>,
    /// Impairments that requests can be served with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    notes: Vec<&'static str>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(readyz))
}

/// Answers that the process is alive.
///
/// Checks nothing else, so it suits as a liveness probe that restarts the process. Needs no token.
#[utoipa::path(get, path = "/healthz", operation_id = "get_liveness", tag = "operations", security(()), responses(
    (status = 200, description = "The process is alive.", body = Health),
))]
async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Checks if the service can take requests.
///
/// Asks the database. Answers 503, so that load balancers send no more requests, while the service
/// stops, cannot reach its data, has no space to store anything, or has a disk that fails. Needs no
/// token.
#[utoipa::path(get, path = "/readyz", operation_id = "get_readiness", tag = "operations", security(()), responses(
    (status = 200, description = "The service is ready.", body = Readiness),
    (status = 503, description = "The service is not ready, with the reasons.", body = Readiness),
))]
async fn readyz(State(app): State<Shared>) -> (StatusCode, Json<Readiness>) {
    if app.draining.is_cancelled() {
        let reasons = vec!["it is shutting down: send no new requests"];
        return answer("stopping", reasons, Vec::new());
    }
    // The reasons are public, so the error itself, which may name paths and hosts, is only logged.
    let mut reasons = Vec::new();
    // A conversation that does not exist: reading it shows if the store answers.
    let missing = app
        .agent
        .key_for(UserId::local(), ConversationId(Uuid::nil()));
    let asked = tokio::time::timeout(STORE_ANSWERS, app.agent.context(&missing)).await;
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
        if app.limits.may_warn(reason) {
            warn!(error, "not ready: {reason}");
        }
    }
    reasons.extend(app.not_storing());
    if let Auth::Jwt(jwt) = &app.auth
        && !jwt.is_usable()
    {
        reasons.push("the issuer's keys are not available");
    }
    reasons.extend(app.readiness.get().and_then(|readiness| readiness()));
    if !reasons.is_empty() {
        // Notes are for a service that works.
        return answer("not ready", reasons, Vec::new());
    }
    let mut notes = Vec::new();
    if app.agent.is_dispatch_suspended().unwrap_or_default() {
        notes.push("turns are not dispatched for now: this process does the work itself");
    }
    if let Auth::Oidc(oidc) = &app.auth {
        refresh_provider(&app, oidc);
        if !oidc.is_usable() {
            notes.push(
                "users cannot sign in: the provider does not answer correctly; users who are signed in are not affected",
            );
        }
    }
    answer("ready", reasons, notes)
}

/// Fetches the OpenID Connect provider's document in the background, if that is due. The next probe
/// sees the result.
fn refresh_provider(app: &Shared, oidc: &Oidc) {
    if oidc.is_due() {
        let app = app.clone();
        app.turns.clone().spawn(async move {
            if let Auth::Oidc(oidc) = &app.auth {
                // A failure is visible as `is_usable`.
                let _ = oidc.load().await;
            }
        });
    }
}

fn answer(
    status: &'static str,
    reasons: Vec<&'static str>,
    notes: Vec<&'static str>,
) -> (StatusCode, Json<Readiness>) {
    let code = if reasons.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let readiness = Readiness {
        status,
        reasons,
        notes,
    };
    (code, Json(readiness))
}

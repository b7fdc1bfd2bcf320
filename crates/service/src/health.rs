//! Whether the process lives, and whether it can work.

use adjutant_core::{ConversationId, ConversationKey, UserId};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::serve::Shared;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz))
}

/// It lives.
#[utoipa::path(get, path = "/healthz", responses((status = 200, description = "It lives.")))]
pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// Whether it can take a request; if not, why.
#[utoipa::path(get, path = "/readyz", responses(
    (status = 200, description = "It can take a request."),
    (status = 503, description = "It cannot, and says why."),
))]
pub(crate) async fn readyz(State(app): State<Shared>) -> (StatusCode, Json<Value>) {
    if app.stopping.is_cancelled() {
        let reasons =
            json!({ "status": "stopping", "reasons": ["it finishes what runs, and takes nothing new"] });
        return (StatusCode::SERVICE_UNAVAILABLE, Json(reasons));
    }
    // Nobody's conversation: whether the store answers is the question.
    let nobody = ConversationKey { user: UserId::local(), conversation: ConversationId(Uuid::nil()) };
    match app.agent.context(&nobody).await {
        Ok(_) => (StatusCode::OK, Json(json!({ "status": "ready" }))),
        // Where the store is and what exactly is wrong with it is in the log, not for everybody.
        Err(_) => {
            let reasons = json!({ "status": "not ready", "reasons": ["the store does not answer"] });
            (StatusCode::SERVICE_UNAVAILABLE, Json(reasons))
        }
    }
}

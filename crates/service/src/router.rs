//! Every address of the service, and what stands in front of all of them.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::problem::Problem;
use crate::serve::Shared;
use crate::{chat, guard, health, problem};

/// A request's body, in bytes. Source: `DESIGN.md` 4.
const BODY_MAX: usize = 1024 * 1024;

#[derive(OpenApi)]
#[openapi(info(
    title = "Adjutant",
    description = "An agent that touches the world only through tools: checked, confirmed, written down, explained."
))]
struct Description;

/// Every address. Each module that has some says which, with what they take and answer.
pub(crate) fn router(state: Shared) -> Router {
    let id = HeaderName::from_static("x-request-id");
    let (router, description) = OpenApiRouter::with_openapi(Description::openapi())
        .merge(chat::routes())
        .merge(health::routes())
        .split_for_parts();
    router
        .route("/openapi.json", get(async || axum::Json(description)))
        .fallback(async || Problem::unknown("address"))
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn_with_state(state.clone(), guard::check))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            Problem::internal().into_response()
        }))
        .layer(from_fn_with_state(state.clone(), problem::name_request))
        .layer(PropagateRequestIdLayer::new(id.clone()))
        .layer(SetRequestIdLayer::new(id, MakeRequestUuid))
        .with_state(state)
}

async fn method_not_allowed(method: Method) -> Response {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "invalid_request",
        "Not with that method",
        format!("{method} is not what this address takes"),
    )
    .into_response()
}

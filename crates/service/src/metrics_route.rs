//! `GET /metrics`, as a route of the service or at a separate address.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::Shared;
use crate::user::MetricsReader;

/// Builds the router of the separate metrics address, which needs no authentication.
pub(crate) fn router(state: Shared) -> Router {
    Router::new().route("/metrics", get(async move || state.render_metrics().await))
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(get_metrics))
}

/// Returns metrics of all users together, in Prometheus' text format.
///
/// Readable by operators and by tokens of the role `metrics`, unless `serve.metrics` says
/// otherwise. Not served here if the metrics have a separate address (`serve.metrics_bind`).
#[utoipa::path(get, path = "/metrics", operation_id = "get_metrics", tag = "operations", responses(
    (status = 200, description = "The metrics.", body = String, content_type = "text/plain"),
))]
async fn get_metrics(State(app): State<Shared>, _: MetricsReader) -> Response {
    app.render_metrics().await
}

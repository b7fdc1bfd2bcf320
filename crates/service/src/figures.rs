//! `/metrics`: the figures, beside the rest or at an address of their own.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::Shared;
use crate::user::MetricsReader;

/// The figures alone, at an address of their own.
pub(crate) fn router(state: Shared) -> Router {
    Router::new().route(
        "/metrics",
        get(async move || state.rendered_figures().await),
    )
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(metrics_))
}

/// Figures about everybody's requests together, as Prometheus reads them.
///
/// They are for operators and tokens of the role `metrics`, unless `serve.metrics` says otherwise,
/// and not here if they have an address of their own (`serve.metrics_bind`).
#[utoipa::path(get, path = "/metrics", operation_id = "get_metrics", tag = "operations", responses(
    (status = 200, description = "The figures.", body = String, content_type = "text/plain"),
))]
async fn metrics_(State(app): State<Shared>, _: MetricsReader) -> Response {
    app.rendered_figures().await
}

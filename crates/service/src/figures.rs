//! `/metrics`: the figures, beside the rest or at an address of their own.

use adjutant_core::UserId;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::metrics::MetricsAccess;
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;

/// The figures alone, at an address of their own.
pub(crate) fn router(state: Shared) -> Router {
    Router::new().route("/metrics", get(async move || state.rendered_figures().await))
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(metrics_))
}

/// Figures about everybody's requests together, as Prometheus reads them: for the user of the machine, unless
/// `serve.metrics` says otherwise. Not here if they have an address of their own (`serve.metrics_bind`).
#[utoipa::path(get, path = "/metrics", tag = "operations", operation_id = "metrics", responses(
    (status = 200, description = "The figures.", body = String, content_type = "text/plain"),
))]
async fn metrics_(State(app): State<Shared>, User(user): User) -> Result<Response, Problem> {
    if app.metrics_access == MetricsAccess::Users || user == UserId::local() {
        return Ok(app.rendered_figures().await);
    }
    Err(Problem::forbidden(
        "the figures are for the user of the machine; whoever runs the service can open them to all users (serve.metrics), or \
         give them an address of their own (serve.metrics_bind)",
    ))
}

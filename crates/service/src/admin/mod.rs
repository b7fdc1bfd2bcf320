//! Operator routes `/v1/admin`: users, tokens, cost, budgets, errors, pending confirmations, MCP
//! servers.
//!
//! They show counts, outcomes, codes and times. Texts of users, models and tools are shown only if
//! `serve.operator_sees_words` is set.

mod access; // the extractor for operators
mod overview; // the state of the service
mod people; // users, and sums over turns
mod span; // periods in days
mod turns; // turns of all users, and pending confirmations

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::Shared;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(overview::overview))
        .routes(routes!(people::users))
        .routes(routes!(people::totals))
        .routes(routes!(turns::turns))
        .routes(routes!(turns::turn))
        .routes(routes!(turns::questions))
}

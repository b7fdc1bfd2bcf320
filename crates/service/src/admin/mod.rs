//! `/v1/admin`: how the service is, for whoever runs it: people, tokens, money, budgets, errors,
//! questions that wait, servers.
//!
//! Counts, outcomes, codes and times are shown, and not what people, models and tools said, unless
//! `serve.operator_sees_words` is set.

mod access; // who may look
mod overview; // all of it at a glance
mod people; // everybody
mod span; // since when
mod turns; // turns of everybody, and questions that wait

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

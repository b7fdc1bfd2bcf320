//! The OpenAPI document of all routes, and a page that shows it.

mod complete; // what all routes have in common

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;

use crate::session::own_address;
use crate::state::Shared;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Adjutant",
                description = "An agent that acts only through tools: calls are checked, confirmed where needed, recorded and explained. \
                               Errors are problem documents (RFC 9457) with a stable `code` and a `request_id`.",
                contact(name = "The operator of this service"),
                license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
            ),
            tags(
                (name = "chat", description = "Messages to the agent, runs, and pending calls."),
                (name = "threads", description = "Conversations and their messages."),
                (name = "tasks", description = "The task list, and tools without a model."),
                (name = "memory", description = "Facts and notes of the caller."),
                (name = "decisions", description = "The decision log."),
                (name = "openai", description = "APIs compatible with OpenAI's clients. Errors have the format of that API."),
                (name = "session", description = "Authentication, tokens, and limits of the caller."),
                (name = "operations", description = "For operators: metrics and health."),
                (name = "administration", description = "For operators: users, cost, errors, pending confirmations. Without texts of users."),
    )
)]
struct Description;

/// Returns the document without routes.
pub(crate) fn beginning() -> Document {
    Description::openapi()
}

/// Routes of the document, `/openapi.json`, and of the page that shows it, `/docs`.
pub(crate) fn routes(description: &Document) -> Router<Shared> {
    // Once, because it is the same for all clients but for the address.
    let document = complete::complete(description);
    Router::new()
        .route(
            "/openapi.json",
            get(async move |headers: HeaderMap| {
                // The address depends on the host that the client used.
                let document = complete::served_at(&document, &own_address(&headers));
                file("application/json", document.to_string())
            }),
        )
        .route(
            "/docs",
            get(async || file("text/html; charset=utf-8", include_str!("docs.html"))),
        )
        .route(
            "/docs/docs.css",
            get(async || file("text/css; charset=utf-8", include_str!("docs.css"))),
        )
        .route(
            "/docs/docs.js",
            get(async || file("text/javascript; charset=utf-8", include_str!("docs.js"))),
        )
}

fn file(kind: &'static str, text: impl Into<String>) -> Response {
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")];
    (headers, text.into()).into_response()
}

//! The description of every address, and a page to read it.

mod complete; // what holds for every address

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
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
        description = "An agent that touches the world only through tools: checked, confirmed, written down, explained. \
                       Errors are problem documents (RFC 9457) with a `code` that does not change and a `request_id`.",
        contact(name = "Whoever runs this service"),
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    tags(
        (name = "chat", description = "Talking to the agent."),
        (name = "threads", description = "Conversations, and what was said in them."),
        (name = "tasks", description = "The tasks, and the tools without a model."),
        (name = "memory", description = "What is remembered of whoever asks."),
        (name = "decisions", description = "What was decided, and why."),
        (name = "openai", description = "The agent in the words of OpenAI's interface, for clients that speak it. Errors have its form."),
        (name = "session", description = "Who asks."),
        (name = "operations", description = "For whoever runs the service: figures, and whether it works."),
        (name = "administration", description = "For whoever runs the service: people, money, errors, what waits. Without what anybody said."),
    )
)]
struct Description;

/// What there is to say before any address.
pub(crate) fn beginning() -> Document {
    Description::openapi()
}

/// `/openapi.json`, and `/docs` with what it needs.
pub(crate) fn routes(description: &Document) -> Router<Shared> {
    let document = complete::complete(description);
    Router::new()
        .route(
            "/openapi.json",
            get(async move |headers: HeaderMap| {
                file(
                    "application/json",
                    complete::served_at(&document, &own_address(&headers)).to_string(),
                )
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
    let kind = HeaderValue::from_static(kind);
    (
        [
            (CONTENT_TYPE, kind),
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ],
        text.into(),
    )
        .into_response()
}

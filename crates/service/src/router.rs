//! All routes of the service, and the middleware in front of them.

use std::any::Any;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa_axum::router::OpenApiRouter;

use crate::extract::header_text;
use crate::problem::{BODY_MAX, Problem};
use crate::state::Shared;
use crate::{
    access, admin, branches, chat, decisions, feedback, guard, health, mcp, me, metrics_route,
    observe, openai, openapi, origins, page, pending, problem_response, runs, session, settings,
    sign_in, slow_body, stream_access, tasks, threads, tools, usage, user,
};

/// A body that declares itself too large is read up to this size, and for this long, before the
/// response is sent.
const DISCARDED_MAX: usize = 16 * BODY_MAX;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// Content Security Policy of the web pages: they load from and connect to the service only.
const PAGES: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; manifest-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Permissions Policy of the web pages: everything is off except writing to the clipboard, for the
/// copy button. Only names that all current browsers know are listed: others cause a warning in the
/// console of each page.
const PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), clipboard-read=(), clipboard-write=(self), display-capture=(), encrypted-media=(), \
     fullscreen=(), gamepad=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), microphone=(), midi=(), payment=(), \
     picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()";

/// Headers of every response that has no other value for them.
const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, PAGES),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    // Windows and pages of other origins get no access.
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (HeaderName::from_static("permissions-policy"), PERMISSIONS),
    (CACHE_CONTROL, "no-store"),
];

/// Builds the router. Each module declares its routes with their OpenAPI description.
pub(crate) fn router(state: Shared) -> Router {
    let mut router = OpenApiRouter::with_openapi(openapi::beginning())
        .merge(chat::routes())
        .merge(runs::routes())
        .merge(openai::routes())
        .merge(me::routes())
        .merge(usage::routes())
        .merge(mcp::routes())
        .merge(pending::routes())
        .merge(threads::routes())
        .merge(branches::routes())
        .merge(feedback::routes())
        .merge(tasks::routes())
        .merge(tools::routes())
        .merge(decisions::routes())
        .merge(memory())
        .merge(session::routes())
        .merge(settings::routes())
        .merge(sign_in::routes())
        .merge(access::routes())
        .merge(health::routes());
    if state.administration.get().is_some() {
        router = router.merge(admin::routes());
    }
    if state.has_metrics() {
        router = router.merge(metrics_route::routes());
    }
    let (router, description) = router.split_for_parts();
    let mut router = router.merge(openapi::routes(&description));
    if state.page {
        router = router.merge(page::routes());
    }
    guarded(router, &state).with_state(state)
}

/// Returns the routes of memory and conversation search, if compiled with the feature `memory`.
fn memory() -> OpenApiRouter<Shared> {
    #[cfg(feature = "memory")]
    return crate::memory::routes()
        .merge(crate::notes::routes())
        .merge(crate::search::routes());
    #[cfg(not(feature = "memory"))]
    OpenApiRouter::new()
}

/// Wraps the router in its middleware, from the innermost to the outermost layer.
fn guarded(router: Router<Shared>, state: &Shared) -> Router<Shared> {
    let router = router
        .fallback(async |uri: Uri| openai::unknown_address(uri.path()))
        .method_not_allowed_fallback(method_not_allowed)
        // The innermost layers only see requests that have passed the guard.
        .layer(from_fn_with_state(state.clone(), session::sign_in_by_link))
        .layer(from_fn_with_state(
            state.clone(),
            stream_access::end_when_revoked,
        ))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn(refuse_too_large))
        .layer(from_fn_with_state(state.clone(), slow_body::in_time))
        .layer(from_fn_with_state(state.clone(), guard::check))
        // Inside of `complete`, which adds the request id to the response of a panic too.
        .layer(CatchPanicLayer::custom(panic_response))
        .layer(from_fn_with_state(
            state.clone(),
            problem_response::complete,
        ))
        // Skips small bodies, and event streams, whose events would wait in the compressor.
        .layer(CompressionLayer::new());
    // Inside of CORS and observation only, so that refusals have these headers too.
    let mut router = HEADERS
        .into_iter()
        .fold(router, |router, (name, value)| {
            let value = HeaderValue::from_static(value);
            router.layer(SetResponseHeaderLayer::if_not_present(name, value))
        })
        .layer(from_fn(user::add_rate_headers));
    // Outside of everything that may refuse a request, so that pages can read the refusal.
    if !state.origins.is_empty() {
        router = router.layer(origins::layer(&state.origins));
    }
    router.layer(from_fn_with_state(state.clone(), observe::observe))
}

/// Logs the message of a handler's panic and returns a 500. The location is known to the program's
/// panic hook only.
fn panic_response(panic: Box<dyn Any + Send>) -> Response {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    tracing::error!(error = message, "a handler panicked");
    Problem::internal().into_response()
}

/// Middleware that refuses bodies whose `Content-Length` is too large. Part of the body is read and
/// discarded: a client whose connection is closed while it sends never reads the response.
async fn refuse_too_large(request: Request, next: Next) -> Response {
    let length = header_text(request.headers(), CONTENT_LENGTH);
    match length.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length > BODY_MAX => {
            let mut body = request.into_body().into_data_stream();
            let discard = async {
                let mut read = 0;
                while let Some(Ok(chunk)) = body.next().await
                    && read < DISCARDED_MAX
                {
                    read += chunk.len();
                }
            };
            // The response is the same if the time was too short for all of it.
            let _ = tokio::time::timeout(DISCARD_TIMEOUT, discard).await;
            Problem::too_large().into_response()
        }
        _ => next.run(request).await,
    }
}

async fn method_not_allowed(method: Method) -> Response {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "invalid_request",
        "Method not allowed",
        format!("this address does not accept {method}"),
    )
    .into_response()
}

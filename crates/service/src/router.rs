//! Every address of the service, and what stands in front of all of them.

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

use crate::problem::{BODY_MAX, Problem};
use crate::state::Shared;
use crate::{
    access, admin, branches, chat, decisions, feedback, figures, guard, health, mcp, me, named,
    observe, openai, openapi, origins, page, pending, runs, session, sign_in, slow_body, tasks,
    threads, tools, usage, user, watched,
};

/// So much of one that is too large is read before the answer, and for so long.
const DROPPED_MAX: usize = 16 * BODY_MAX;
const DROPPED_FOR: Duration = Duration::from_secs(5);

/// What the service's pages may do: load and ask what is its own, nothing else.
const PAGES: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; manifest-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// Windows and pages of other origins have nothing to do with ours.
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// What a browser could give a page: ours wants none of it, and copies text only when somebody
/// presses a button. Only what every browser of today knows is named: one that does not know a name
/// complains of it in the console of each page.
const NOTHING: HeaderValue = HeaderValue::from_static(
    "accelerometer=(), autoplay=(), camera=(), clipboard-read=(), clipboard-write=(self), display-capture=(), encrypted-media=(), \
     fullscreen=(), gamepad=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), microphone=(), midi=(), payment=(), \
     picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()",
);

/// Every address. Each module that has some says which, with what they take and answer.
pub(crate) fn router(state: Shared) -> Router {
    let (router, description) = OpenApiRouter::with_openapi(openapi::beginning())
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
        .merge(sign_in::routes())
        .merge(access::routes())
        .merge(health::routes())
        .merge(if state.administration.get().is_some() {
            admin::routes()
        } else {
            OpenApiRouter::new()
        })
        .merge(if state.has_metrics() {
            figures::routes()
        } else {
            OpenApiRouter::new()
        })
        .split_for_parts();
    let router = router.merge(openapi::routes(&description));
    let router = if state.page {
        router.merge(page::routes())
    } else {
        router
    };
    guarded(router, &state).with_state(state)
}

/// The addresses of the memory and of the search in what was said, where the service is built with
/// them.
fn memory() -> OpenApiRouter<Shared> {
    #[cfg(feature = "memory")]
    return crate::memory::routes()
        .merge(crate::notes::routes())
        .merge(crate::search::routes());
    #[cfg(not(feature = "memory"))]
    OpenApiRouter::new()
}

/// What stands in front of every address, the innermost first.
fn guarded(router: Router<Shared>, state: &Shared) -> Router<Shared> {
    let header = SetResponseHeaderLayer::if_not_present;
    let router = router
        .fallback(async |uri: Uri| openai::unknown_address(uri.path()))
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(state.clone(), session::by_link))
        .layer(from_fn_with_state(state.clone(), watched::while_allowed))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn(not_too_large))
        .layer(from_fn_with_state(state.clone(), slow_body::in_time))
        .layer(from_fn_with_state(state.clone(), guard::check))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(state.clone(), named::name_request))
        // Leaves alone what is small, and streams of events, which would wait in its buffer.
        .layer(CompressionLayer::new())
        .layer(header(CONTENT_SECURITY_POLICY, PAGES))
        .layer(header(
            X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .layer(header(
            REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ))
        .layer(header(
            HeaderName::from_static("cross-origin-opener-policy"),
            SAME_ORIGIN,
        ))
        .layer(header(
            HeaderName::from_static("cross-origin-resource-policy"),
            SAME_ORIGIN,
        ))
        .layer(header(
            HeaderName::from_static("permissions-policy"),
            NOTHING,
        ))
        .layer(header(CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .layer(from_fn(user::tell_rate));
    // Around all that may refuse a request, so that pages can read why.
    let router = if state.origins.is_empty() {
        router
    } else {
        router.layer(origins::layer(&state.origins))
    };
    router.layer(from_fn_with_state(state.clone(), observe::observe))
}

/// A handler broke down. Whoever runs the service is told what it said; where it was is known to
/// the program's panic hook only.
fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no words");
    tracing::error!(error = words, "a handler panicked");
    Problem::internal().into_response()
}

/// What says of itself that it is too large is refused. Some of it is read and dropped, for a
/// while: a client that finds its connection closed while it sends never looks at the answer.
async fn not_too_large(request: Request, next: Next) -> Response {
    let length = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok());
    match length.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length > BODY_MAX => {
            let mut body = request.into_body().into_data_stream();
            let drop_some = async {
                let mut read = 0;
                while let Some(Ok(chunk)) = body.next().await
                    && read < DROPPED_MAX
                {
                    read += chunk.len();
                }
            };
            // The answer is the same, whether it was all or not.
            let _ = tokio::time::timeout(DROPPED_FOR, drop_some).await;
            Problem::too_large().into_response()
        }
        _ => next.run(request).await,
    }
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

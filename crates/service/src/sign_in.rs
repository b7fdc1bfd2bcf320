//! Signing in at an OpenID provider: there, and back again.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{Auth, Caller, Oidc, Returned, SignInFailed};
use crate::problem::Problem;
use crate::session;
use crate::state::{App, Shared};

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(begin))
        .routes(routes!(finish))
}

/// Begins to sign in at the provider: leads the browser there.
///
/// A cookie, which holds for ten minutes, recognises the browser when it comes back. This is for
/// people: a program shows a token.
#[utoipa::path(get, path = "/signin", tag = "session", operation_id = "begin_sign_in", security(()), responses(
    (status = 303, description = "The provider's address, or the page if that fails, which says why."),
    (status = 404, description = "People do not sign in at a provider here.", body = Problem, content_type = "application/problem+json"),
))]
async fn begin(State(app): State<Shared>, headers: HeaderMap) -> Result<Response, Problem> {
    let oidc = provider(&app)?;
    let (url, begun) = match oidc.begin(&redirect(&headers)).await {
        Ok(begun) => begun,
        Err(failed) => return Ok(not_signed_in(failed, &headers)),
    };
    let url = HeaderValue::from_str(url.as_str()).map_err(|_| Problem::internal())?;
    let headers = [
        (LOCATION, url),
        (SET_COOKIE, session::begun_cookie(&begun, &headers)),
    ];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// Ends signing in: the provider leads the browser here, with a code that is exchanged for who it
/// is.
///
/// Only the browser that began can end it, once. A program never asks for this address.
#[utoipa::path(get, path = "/signin/callback", tag = "session", operation_id = "finish_sign_in", security(()), params(
    ("code" = Option<String>, Query, description = "What is exchanged."),
    ("state" = Option<String>, Query, description = "What the sign-in was begun with."),
    ("error" = Option<String>, Query, description = "Why there is no code."),
), responses(
    (status = 303, description = "The page, with the cookie of a session; or without one, and the page says why."),
    (status = 401, description = "Nobody was signed in, for a client that is no browser.", body = Problem,
        content_type = "application/problem+json"),
    (status = 404, description = "People do not sign in at a provider here.", body = Problem, content_type = "application/problem+json"),
))]
async fn finish(
    State(app): State<Shared>,
    headers: HeaderMap,
    returned: Result<Query<Returned>, QueryRejection>,
) -> Result<Response, Problem> {
    let oidc = provider(&app)?;
    let returned = returned.map(|Query(returned)| returned).unwrap_or_default();
    let (begun, back) = (session::begun(&headers), redirect(&headers));
    let (user, role) = match oidc.finish(begun, returned, &back, &app.access.roles).await {
        Ok(who) => who,
        Err(failed) => return Ok(not_signed_in(failed, &headers)),
    };
    let cookie = session::opened(&app, &Caller::new(user, role), None, &headers).await?;
    Ok(session::to_page(
        "/",
        [cookie, session::no_begun_cookie(&headers)],
    ))
}

fn provider(app: &App) -> Result<&Oidc, Problem> {
    match &app.auth {
        Auth::Oidc(oidc) => Ok(oidc),
        Auth::Token(_) | Auth::Jwt(_) | Auth::Proxy(_) | Auth::None => {
            Err(Problem::unknown("address"))
        }
    }
}

/// Returns where the provider leads people back to, unless the settings say so.
fn redirect(headers: &HeaderMap) -> String {
    format!("{}/signin/callback", session::address(headers))
}

/// A browser is led to the page, which says in its person's language what to do; what exactly was
/// wrong is for whoever runs the service.
fn not_signed_in(failed: SignInFailed, headers: &HeaderMap) -> Response {
    let (place, problem) = match failed {
        SignInFailed::Denied(said) => {
            tracing::warn!("somebody was not signed in: the provider said {said}");
            (
                "/?signin=denied",
                Problem::unauthorized("the provider did not let you in"),
            )
        }
        SignInFailed::Stale => (
            "/?signin=stale",
            Problem::unauthorized(
                "the sign-in was not begun in this browser, or too long ago: begin again",
            ),
        ),
        SignInFailed::Provider(reason) => {
            tracing::error!("somebody was not signed in: the provider cannot be used: {reason}");
            ("/?signin=provider", Problem::no_provider())
        }
        SignInFailed::Refused(mut problem) => {
            let why = problem
                .take_note()
                .map_or_else(|| problem.detail().to_owned(), str::to_owned);
            tracing::warn!("somebody was not signed in: {why}");
            ("/?signin=refused", problem)
        }
    };
    if session::is_person(headers) {
        return session::to_page(place, [session::no_begun_cookie(headers)]);
    }
    problem.into_response()
}

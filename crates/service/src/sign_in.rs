//! Routes of the sign-in at an OpenID Connect provider.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{Auth, AuthorizationResponse, Caller, Oidc, SignInFailed};
use crate::problem::Problem;
use crate::session;
use crate::state::{App, Shared};

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(begin))
        .routes(routes!(finish))
}

/// Starts a sign-in: redirects the browser to the OpenID Connect provider.
///
/// A cookie, valid for ten minutes, recognises the browser when it is redirected back. For browsers
/// only; programs send a token.
#[utoipa::path(get, path = "/signin", tag = "session", operation_id = "begin_sign_in", security(()), responses(
    (status = 303, description = "Redirect to the provider; or, if that fails, to the page, which shows the reason."),
    (status = 404, description = "This service has no OpenID Connect provider."),
))]
async fn begin(State(app): State<Shared>, headers: HeaderMap) -> Result<Response, Problem> {
    let oidc = provider(&app)?;
    let (url, pending) = match oidc.begin(&redirect(&headers)).await {
        Ok(started) => started,
        Err(failed) => return Ok(not_signed_in(failed, &headers)),
    };
    let url =
        HeaderValue::from_str(url.as_str()).map_err(|error| Problem::internal_error(&error))?;
    let headers = [
        (LOCATION, url),
        (SET_COOKIE, session::pending_cookie(&pending, &headers)),
    ];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// Finishes a sign-in: the provider redirects the browser here, with a code that is exchanged for
/// the user's identity.
///
/// Only the browser that started the sign-in can finish it, once. Programs never call this address.
#[utoipa::path(get, path = "/signin/callback", tag = "session", operation_id = "finish_sign_in", security(()), params(
    ("code" = Option<String>, Query, description = "Authorization code, which is exchanged for the ID token."),
    ("state" = Option<String>, Query, description = "Value that recognises the sign-in."),
    ("error" = Option<String>, Query, description = "Error code of the provider, if there is no authorization code."),
    ), responses(
    (status = 303, description = "Redirect to the page, with a session cookie; or without one, and the page shows the reason."),
    (status = 401, description = "The sign-in failed, and the client is no browser."),
    (status = 404, description = "This service has no OpenID Connect provider."),
))]
async fn finish(
    State(app): State<Shared>,
    headers: HeaderMap,
    returned: Result<Query<AuthorizationResponse>, QueryRejection>,
) -> Result<Response, Problem> {
    let oidc = provider(&app)?;
    // An unreadable query is a failed sign-in like any other, which the page explains.
    let returned = returned.map(|Query(returned)| returned).unwrap_or_default();
    let (pending, back) = (session::pending_sign_in(&headers), redirect(&headers));
    let (user, role) = match oidc
        .finish(pending, returned, &back, &app.access.roles)
        .await
    {
        Ok(signed_in) => signed_in,
        Err(failed) => return Ok(not_signed_in(failed, &headers)),
    };
    let cookie = session::create_session(&app, &Caller::new(user, role), None, &headers).await?;
    // Always to the page: a target from the request would make this an open redirect.
    Ok(session::redirect_to_page(
        "/",
        [cookie, session::clear_pending_cookie(&headers)],
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

/// Returns the redirect URI to use if none is configured.
fn redirect(headers: &HeaderMap) -> String {
    format!("{}/signin/callback", session::address(headers))
}

/// Answers a failed sign-in. A browser is redirected to the page, which explains the failure in the
/// user's language; details go to the log.
fn not_signed_in(failed: SignInFailed, headers: &HeaderMap) -> Response {
    let (place, problem) = match failed {
        SignInFailed::Denied(message) => {
            // The provider's message is for the operator only: a link could contain a forged one.
            tracing::warn!("somebody was not signed in: the provider said {message}");
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
    if session::wants_html(headers) {
        return session::redirect_to_page(place, [session::clear_pending_cookie(headers)]);
    }
    problem.into_response()
}

//! The browser's way: a token is exchanged once for a cookie that no script can read and no other site can use.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL, HOST, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::guard::Page;
use crate::object::Object;
use crate::problem::Problem;
use crate::state::Shared;

/// What its name begins with.
const COOKIE: &str = "adjutant";

/// How long a browser keeps it, in days. What it stands for may be revoked or expire before.
const DAYS: u64 = 30;

/// What is exchanged.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"token": "adj_…"}))]
struct Exchange {
    /// A token that opens the service.
    token: String,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(create, remove))
}

/// Exchanges a token for a cookie, so that the page need not keep it.
///
/// The cookie is for browsers and for the service's own page; programs send the token.
#[utoipa::path(post, path = "/v1/session", operation_id = "create_session", tag = "session", request_body = Exchange, security(()), responses(
    (status = 204, description = "The cookie is set (HttpOnly, SameSite=Strict, and Secure behind https).",
        headers(("set-cookie" = String))),
    (status = 401, description = "The token opens nothing.", body = Problem, content_type = "application/problem+json"),
))]
async fn create(
    State(app): State<Shared>,
    headers: HeaderMap,
    body: Result<Json<Object<Exchange>>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(Object(Exchange { token })) = body?;
    let token = token.trim();
    app.auth.user_of(token).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie(token, &headers))]).into_response())
}

/// Forgets the cookie.
///
/// Whoever has the token itself can still use it.
#[utoipa::path(delete, path = "/v1/session", operation_id = "delete_session", tag = "session", security(()), responses(
    (status = 204, description = "The cookie is gone.", headers(("set-cookie" = String))),
))]
async fn remove(headers: HeaderMap) -> Response {
    (StatusCode::NO_CONTENT, [(SET_COOKIE, no_cookie(&headers))]).into_response()
}

/// `GET /?token=…`, the link that is printed: sets the cookie and goes to the page, so that the token is not in the
/// address any more.
pub(crate) async fn by_link(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let Some(token) = token_of(request.method(), request.uri()) else { return next.run(request).await };
    let headers = request.headers();
    // Another site must not sign its visitors in as somebody else.
    if matches!(text(headers, "sec-fetch-site"), Some("cross-site" | "same-site")) {
        return Problem::forbidden("other sites may not sign anybody in").into_response();
    }
    let is_person = text(headers, ACCEPT.as_str()).is_some_and(|types| types.contains("text/html"));
    let cookie = match app.auth.user_of(&token).await {
        Ok(_) => cookie(&token, headers),
        // The page says what to do without a token.
        Err(_) if is_person => no_cookie(headers),
        Err(problem) => return problem.into_response(),
    };
    let headers = [
        (SET_COOKIE, cookie),
        (LOCATION, HeaderValue::from_static("/")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// The secret in the cookie. What changes something has to come from a page of ours: the browser sends the cookie by
/// itself.
pub(crate) fn secret(parts: &Parts) -> Result<String, Problem> {
    let jar = CookieJar::from_headers(&parts.headers);
    let cookie = jar.get(&name(&parts.headers)).ok_or_else(|| Problem::unauthorized("there is no token"))?;
    if parts.extensions.get() == Some(&Page::Other) {
        return Err(Problem::forbidden("with the cookie, only the service's own page may ask; send a token"));
    }
    // That an Origin is ours was seen to by the guard.
    let ours = parts.headers.contains_key(ORIGIN)
        || text(&parts.headers, "sec-fetch-site").is_some_and(|site| site == "same-origin");
    if !parts.method.is_safe() && !ours {
        return Err(Problem::forbidden("with the cookie, only the service's own page may change anything"));
    }
    Ok(cookie.value().to_owned())
}

fn token_of(method: &Method, uri: &Uri) -> Option<String> {
    if method != Method::GET || uri.path() != "/" {
        return None;
    }
    let pairs = reqwest::Url::parse("http://localhost/").ok().map(|mut url| {
        url.set_query(uri.query());
        url
    })?;
    let token = pairs.query_pairs().find(|(name, _)| name == "token");
    token.map(|(_, token)| token.trim().to_owned())
}

/// What the cookie is called. Browsers do not tell the ports of a host apart, so the port that the browser asks is in the
/// name: two services of one machine do not sign each other's people out, and all replicas behind one address have the same.
fn name(headers: &HeaderMap) -> String {
    let port = text(headers, HOST.as_str()).and_then(|host| host.rsplit_once(':')).map(|(_, port)| port);
    match port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(port) => format!("{COOKIE}-{port}"),
        None => COOKIE.to_owned(),
    }
}

fn cookie(secret: &str, headers: &HeaderMap) -> HeaderValue {
    let age = format!("{}", DAYS * 24 * 60 * 60);
    written(secret, &age, headers)
}

fn no_cookie(headers: &HeaderMap) -> HeaderValue {
    written("", "0", headers)
}

fn written(value: &str, max_age: &str, headers: &HeaderMap) -> HeaderValue {
    let cookie = Cookie::build((name(headers), value))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Strict)
        .secure(is_https(headers))
        .build();
    let text = format!("{}; Max-Age={max_age}", cookie.encoded());
    // Encoded, it has no character that a header could not hold.
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Whether the browser speaks https to whoever is in front of us. Said by the client itself, it only concerns its own
/// cookie.
fn is_https(headers: &HeaderMap) -> bool {
    is_forwarded_https(headers)
        || text(headers, ORIGIN.as_str()).is_some_and(|origin| origin.starts_with("https://"))
}

/// Returns the address that a client asks the service by. The guard has seen to it that its host is ours.
pub(crate) fn own_address(headers: &HeaderMap) -> String {
    let scheme = if is_forwarded_https(headers) { "https" } else { "http" };
    format!("{scheme}://{}", text(headers, HOST.as_str()).unwrap_or("localhost"))
}

fn is_forwarded_https(headers: &HeaderMap) -> bool {
    text(headers, "x-forwarded-proto").is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

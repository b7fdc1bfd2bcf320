//! The browser's way: a token is exchanged once for a cookie that no script can read and no other
//! site can use.

use adjutant_core::port::{Role, TokenGrant, TokenKind, TokenRecord};
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, HOST, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE, USER_AGENT,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{AppendHeaders, IntoResponse as _, Response};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{Auth, Begun, Caller, Shown};
use crate::guard::Page;
use crate::object::Object;
use crate::problem::Problem;
use crate::state::Shared;
use crate::token::new_token;

/// The path at which signing in at a provider begins.
pub(crate) const SIGN_IN: &str = "/signin";

/// What its name begins with.
const COOKIE: &str = "adjutant";

/// The name of the cookie that keeps a begun sign-in, before the port.
const BEGUN: &str = "adjutant-signin";

/// Seconds that somebody may take to sign in elsewhere.
const BEGUN_SECONDS: u64 = 600;

/// Characters of what a browser calls itself that are kept as the name of its session.
const BROWSER_MAX: usize = 200;

/// What is exchanged.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"token": "adj_…"}))]
struct Exchange {
    /// A token that opens the service.
    token: String,
}

/// The way people sign in here.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"auth": "oidc", "provider": "id.example.com", "sign_in": "/signin"}))]
struct Way {
    /// The method of authentication: `token`, `jwt`, `oidc`, `proxy` or `none`.
    auth: &'static str,
    /// The host of the provider that people sign in at.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    provider: Option<String>,
    /// The address here at which that begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    sign_in: Option<&'static str>,
}

/// The sessions to end. Default: the one of the cookie.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Which {
    /// All of this user's, in every browser, and not this one alone.
    #[serde(default)]
    everywhere: bool,
}

/// The address for signing out at the provider too.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"provider_sign_out": "https://id.example.com/end?client_id=adjutant"}))]
struct SignedOut {
    /// The provider's address for it; the session here has ended already.
    provider_sign_out: String,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(way, create, remove))
}

/// Says how people sign in, for a page that nobody is signed in to.
///
/// Anybody may ask.
#[utoipa::path(get, path = "/v1/session", tag = "session", operation_id = "ways_to_sign_in", security(()), responses(
    (status = 200, description = "How people sign in.", body = Way),
))]
async fn way(State(app): State<Shared>) -> Json<Way> {
    let (provider, sign_in) = match &app.auth {
        Auth::Oidc(oidc) => (Some(oidc.host()), Some(SIGN_IN)),
        Auth::Token(_) | Auth::Jwt(_) | Auth::Proxy(_) | Auth::None => (None, None),
    };
    Json(Way {
        auth: app.auth.name(),
        provider,
        sign_in,
    })
}

/// Exchanges a token for the cookie of a session, so that the page need not keep it.
///
/// The session ends when it was not used for a while, with the token, and when somebody signs out.
/// The cookie is for browsers and for the service's own page; programs send the token.
#[utoipa::path(post, path = "/v1/session", tag = "session", operation_id = "sign_in", request_body = Exchange, security(()), responses(
    (status = 204, description = "The cookie is set (HttpOnly, SameSite=Strict, and Secure behind https).",
        headers(("set-cookie" = String))),
    (status = 401, description = "The token opens nothing.", body = Problem, content_type = "application/problem+json"),
    (status = 403, description = "The token reads figures and nothing else.", body = Problem, content_type = "application/problem+json"),
))]
async fn create(
    State(app): State<Shared>,
    headers: HeaderMap,
    body: Result<Json<Object<Exchange>>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(Object(Exchange { token })) = body?;
    let cookie = exchanged(&app, token.trim(), &headers).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}

/// Ends the session of the cookie, or all of this user's.
///
/// Tokens stay: see `/v1/tokens`. Where people sign in at a provider, the answer may say where they
/// can sign out there.
#[utoipa::path(delete, path = "/v1/session", tag = "session", operation_id = "sign_out", params(Which), security(()), responses(
    (status = 200, description = "The session has ended, and the provider has a place to sign out too.", body = SignedOut),
    (status = 204, description = "The session has ended, and the cookie is gone.", headers(("set-cookie" = String))),
    (status = 403, description = "The cookie was sent, and not by the service's own page.", body = Problem,
        content_type = "application/problem+json"),
    (status = 401, description = "All sessions were to end, and nobody is signed in.", body = Problem,
        content_type = "application/problem+json"),
))]
async fn remove(
    State(app): State<Shared>,
    which: Result<Query<Which>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(Which { everywhere }) = which?;
    let held = secret_in(&headers);
    if held.is_some() && !is_from_page(&headers) {
        return Err(not_from_page());
    }
    let caller = match &held {
        Some(secret) => app.caller(secret).await,
        None => Err(Problem::unauthorized("nobody is signed in")),
    };
    if let (Ok(caller), Some(tokens)) = (&caller, app.auth.tokens()) {
        let store = |error| Problem::store(&error);
        if everywhere {
            tokens
                .revoke_tokens_of(&caller.user, Some(TokenKind::Session))
                .await
                .map_err(store)?;
        } else if let Some(Shown { record, .. }) = &caller.token
            && record.grant.kind == TokenKind::Session
        {
            tokens.revoke_token(&record.id).await.map_err(store)?;
        }
    }
    if everywhere {
        caller?;
    }
    let gone = (SET_COOKIE, no_cookie(&headers));
    let there = match &app.auth {
        Auth::Oidc(oidc) if held.is_some() => {
            oidc.sign_out(&format!("{}/", address(&headers))).await
        }
        _ => None,
    };
    Ok(match there {
        Some(url) => (
            [gone],
            Json(SignedOut {
                provider_sign_out: url.into(),
            }),
        )
            .into_response(),
        None => (StatusCode::NO_CONTENT, [gone]).into_response(),
    })
}

/// `GET /?token=…`, the link that is printed: sets the cookie and goes to the page, so that the
/// token is not in the address any more.
pub(crate) async fn by_link(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let Some(token) = token_of(request.method(), request.uri()) else {
        return next.run(request).await;
    };
    let headers = request.headers();
    // Another site must not sign its visitors in as somebody else.
    if matches!(
        text(headers, "sec-fetch-site"),
        Some("cross-site" | "same-site")
    ) {
        return Problem::forbidden("other sites may not sign anybody in").into_response();
    }
    let cookie = match exchanged(&app, &token, headers).await {
        Ok(cookie) => cookie,
        // The page says what to do without a token.
        Err(_) if is_person(headers) => no_cookie(headers),
        Err(problem) => return problem.into_response(),
    };
    to_page("/", [cookie])
}

/// Returns an answer that leads to the page, and sets these cookies.
pub(crate) fn to_page(
    place: &'static str,
    cookies: impl IntoIterator<Item = HeaderValue>,
) -> Response {
    let headers = [
        (LOCATION, HeaderValue::from_static(place)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    let cookies = AppendHeaders(cookies.into_iter().map(|cookie| (SET_COOKIE, cookie)));
    (StatusCode::SEE_OTHER, headers, cookies).into_response()
}

/// Returns whether a browser asks for a page.
pub(crate) fn is_person(headers: &HeaderMap) -> bool {
    text(headers, ACCEPT.as_str()).is_some_and(|types| types.contains("text/html"))
}

/// Returns the cookie for a token: that of a new session, or of the token itself where somebody
/// else issues and checks it.
async fn exchanged(app: &Shared, token: &str, headers: &HeaderMap) -> Result<HeaderValue, Problem> {
    let caller = app.caller(token).await?;
    if !caller.role.includes(Role::User) {
        return Err(Problem::forbidden(
            "this token reads the figures (/metrics) and nothing else",
        ));
    }
    match &caller.token {
        Some(shown) => opened(app, &caller, Some(&shown.record), headers).await,
        None => Ok(cookie(token, app, headers)),
    }
}

/// Begins a session of somebody who was let in, and returns its cookie. It ends with the token it
/// was begun with.
pub(crate) async fn opened(
    app: &Shared,
    caller: &Caller,
    with: Option<&TokenRecord>,
    headers: &HeaderMap,
) -> Result<HeaderValue, Problem> {
    let Some(tokens) = app.auth.tokens() else {
        return Err(Problem::internal());
    };
    let (now, rules) = (app.agent.now(), &app.access);
    let after = |time| now.saturating_add(time).unwrap_or(Timestamp::MAX);
    let last = with.and_then(|token| token.grant.ends_at.or(token.grant.expires_at));
    let ends_at = last.map_or(after(rules.session_max), |last| {
        last.min(after(rules.session_max))
    });
    let browser = text(headers, USER_AGENT.as_str()).unwrap_or_default();
    let grant = TokenGrant {
        user: caller.user.clone(),
        name: browser.chars().take(BROWSER_MAX).collect(),
        role: caller.role,
        kind: TokenKind::Session,
        expires_at: Some(ends_at.min(after(rules.session_idle))),
        ends_at: Some(ends_at),
        parent: with.map(|token| token.id.clone()),
    };
    let made = new_token().map_err(|_| Problem::internal())?;
    tokens
        .create_token(&grant, &made.digest)
        .await
        .map_err(|error| Problem::store(&error))?;
    Ok(cookie(&made.secret, app, headers))
}

/// Returns the cookie that keeps a sign-in until the browser comes back from the provider. It comes
/// back from another site, so it cannot be as strict as the one of a session.
pub(crate) fn begun_cookie(begun: &Begun, headers: &HeaderMap) -> HeaderValue {
    set(
        (begun_name(headers), &begun.written()),
        ("/signin", SameSite::Lax, BEGUN_SECONDS),
        headers,
    )
}

/// Returns the cookie that forgets it.
pub(crate) fn no_begun_cookie(headers: &HeaderMap) -> HeaderValue {
    set(
        (begun_name(headers), ""),
        ("/signin", SameSite::Lax, 0),
        headers,
    )
}

/// Returns the sign-in that was begun in this browser.
pub(crate) fn begun(headers: &HeaderMap) -> Option<Begun> {
    Begun::read(
        CookieJar::from_headers(headers)
            .get(&begun_name(headers))?
            .value(),
    )
}

/// Returns the address that the browser asks by, without a path.
pub(crate) fn address(headers: &HeaderMap) -> String {
    let scheme = if is_https(headers) { "https" } else { "http" };
    format!(
        "{scheme}://{}",
        text(headers, HOST.as_str()).unwrap_or_default()
    )
}

/// The secret in the cookie. What changes something has to come from a page of ours: the browser
/// sends the cookie by itself.
pub(crate) fn secret(parts: &Parts) -> Result<String, Problem> {
    let secret =
        secret_in(&parts.headers).ok_or_else(|| Problem::unauthorized("there is no token"))?;
    if parts.extensions.get() == Some(&Page::Other) {
        return Err(Problem::forbidden(
            "with the cookie, only the service's own page may ask; send a token",
        ));
    }
    if !parts.method.is_safe() && !is_from_page(&parts.headers) {
        return Err(not_from_page());
    }
    Ok(secret)
}

/// Returns whether a page of ours asks. That an Origin is ours was seen to by the guard.
fn is_from_page(headers: &HeaderMap) -> bool {
    headers.contains_key(ORIGIN)
        || text(headers, "sec-fetch-site").is_some_and(|site| site == "same-origin")
}

fn not_from_page() -> Problem {
    Problem::forbidden("with the cookie, only the service's own page may change anything")
}

fn secret_in(headers: &HeaderMap) -> Option<String> {
    Some(
        CookieJar::from_headers(headers)
            .get(&name(headers))?
            .value()
            .to_owned(),
    )
}

fn token_of(method: &Method, uri: &Uri) -> Option<String> {
    if method != Method::GET || uri.path() != "/" {
        return None;
    }
    let pairs = reqwest::Url::parse("http://localhost/")
        .ok()
        .map(|mut url| {
            url.set_query(uri.query());
            url
        })?;
    let token = pairs.query_pairs().find(|(name, _)| name == "token");
    token.map(|(_, token)| token.trim().to_owned())
}

/// What the cookie is called. Browsers do not tell the ports of a host apart, so the port that the
/// browser asks is in the name: two services of one machine do not sign each other's people out,
/// and all replicas behind one address have the same.
fn name(headers: &HeaderMap) -> String {
    with_port(COOKIE, headers)
}

fn begun_name(headers: &HeaderMap) -> String {
    with_port(BEGUN, headers)
}

fn with_port(name: &str, headers: &HeaderMap) -> String {
    let port = text(headers, HOST.as_str())
        .and_then(|host| host.rsplit_once(':'))
        .map(|(_, port)| port);
    match port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(port) => format!("{name}-{port}"),
        None => name.to_owned(),
    }
}

/// The browser keeps it as long as it may hold at most; what it stands for may end before.
fn cookie(secret: &str, app: &Shared, headers: &HeaderMap) -> HeaderValue {
    set(
        (name(headers), secret),
        ("/", SameSite::Strict, app.access.session_max.as_secs()),
        headers,
    )
}

fn no_cookie(headers: &HeaderMap) -> HeaderValue {
    set((name(headers), ""), ("/", SameSite::Strict, 0), headers)
}

fn set(
    (name, value): (String, &str),
    (path, same_site, seconds): (&'static str, SameSite, u64),
    headers: &HeaderMap,
) -> HeaderValue {
    let cookie = Cookie::build((name, value))
        .path(path)
        .http_only(true)
        .same_site(same_site)
        .secure(is_https(headers))
        .build();
    let text = format!("{}; Max-Age={seconds}", cookie.encoded());
    // Encoded, it has no character that a header could not hold.
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Whether the browser speaks https to whoever is in front of us. Said by the client itself, it
/// only concerns its own cookie.
fn is_https(headers: &HeaderMap) -> bool {
    is_forwarded_https(headers)
        || text(headers, ORIGIN.as_str()).is_some_and(|origin| origin.starts_with("https://"))
}

/// Returns the address that a client asks the service by. The guard has seen to it that its host is
/// ours.
pub(crate) fn own_address(headers: &HeaderMap) -> String {
    let scheme = if is_forwarded_https(headers) {
        "https"
    } else {
        "http"
    };
    format!(
        "{scheme}://{}",
        text(headers, HOST.as_str()).unwrap_or("localhost")
    )
}

fn is_forwarded_https(headers: &HeaderMap) -> bool {
    text(headers, "x-forwarded-proto")
        .is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

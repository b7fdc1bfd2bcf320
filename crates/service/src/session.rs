//! Browser sessions: a token is exchanged for a cookie that scripts cannot read and other sites
//! cannot use.

use adjutant_core::port::{Role, TokenGrant, TokenKind, TokenRecord};
use axum::Json;
use axum::extract::{Request, State};
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
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{Auth, Caller, PendingSignIn, Presented};
use crate::extract::{JsonBody, QueryParams, header_text};
use crate::guard::Page;
use crate::problem::{METRICS_ONLY, Problem};
use crate::state::Shared;
use crate::token::new_token;

/// Path at which a sign-in at the provider starts.
pub(crate) const SIGN_IN: &str = "/signin";

/// Name of the session cookie, before the port.
const COOKIE: &str = "adjutant";

/// Name of the cookie of a sign-in in progress, before the port.
const PENDING_COOKIE: &str = "adjutant-signin";

/// Longest duration of a sign-in at the provider, in seconds.
const PENDING_SECONDS: u64 = 600;

/// Characters of the `User-Agent` that are kept as the session's name.
const BROWSER_MAX: usize = 200;

/// A token to be exchanged for a session cookie.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"token": "adj_…"}))]
struct Exchange {
    /// A valid token for this service.
    token: String,
}

/// The method by which users sign in.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"service": "Adjutant", "auth": "oidc", "provider": "id.example.com", "sign_in": "/signin"}))]
struct SignInMethod {
    /// Name of the service, for people.
    service: String,
    /// Whom to ask for access: a mail address, the address of a page, or a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    contact: Option<String>,
    /// Method of authentication: `token`, `jwt`, `oidc`, `proxy` or `none`.
    auth: &'static str,
    /// Host of the OpenID Connect provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    provider: Option<String>,
    /// Path of this service at which the sign-in starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    sign_in: Option<&'static str>,
}

/// The sessions to end. Default: the one of the cookie.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SignOutQuery {
    /// True to end all sessions of the user, in every browser.
    #[serde(default)]
    everywhere: bool,
}

/// The provider's address for signing out there too.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"provider_sign_out": "https://id.example.com/end?client_id=adjutant"}))]
struct SignedOut {
    /// Address to go to; the session here has already ended.
    provider_sign_out: String,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(method, create, remove))
}

/// Returns the method by which users sign in.
///
/// For pages without a session. Needs no authentication.
#[utoipa::path(get, path = "/v1/session", tag = "session", operation_id = "ways_to_sign_in", security(()), responses(
        (status = 200, description = "The method and, with OpenID Connect, where to start.", body = SignInMethod),
    ))]
async fn method(State(app): State<Shared>) -> Json<SignInMethod> {
    let (provider, sign_in) = match &app.auth {
        Auth::Oidc(oidc) => (Some(oidc.host()), Some(SIGN_IN)),
        Auth::Token(_) | Auth::Jwt(_) | Auth::Proxy(_) | Auth::None => (None, None),
    };
    Json(SignInMethod {
        service: app.name.clone(),
        contact: app.contact.clone(),
        auth: app.auth.name(),
        provider,
        sign_in,
    })
}

/// Exchanges a token for a session cookie, so that the page need not store the token.
///
/// The session expires when it was not used for a while, with the token, and at sign-out. The
/// cookie is for the service's own page; programs send the token.
#[utoipa::path(post, path = "/v1/session", tag = "session", operation_id = "sign_in", request_body = Exchange, security(()), responses(
    (status = 204, description = "The cookie is set (HttpOnly, SameSite=Strict, and Secure behind https).",
        headers(("set-cookie" = String))),
    (status = 401, description = "The token is not valid."),
    (status = 403, description = "The token may only read metrics."),
))]
async fn create(
    State(app): State<Shared>,
    headers: HeaderMap,
    JsonBody(Exchange { token }): JsonBody<Exchange>,
) -> Result<Response, Problem> {
    let cookie = exchange(&app, token.trim(), &headers).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}

/// Ends the session of the cookie, or all sessions of the user.
///
/// Tokens stay valid: see `/v1/tokens`. With OpenID Connect, the response may have the address for
/// signing out at the provider.
#[utoipa::path(delete, path = "/v1/session", tag = "session", operation_id = "sign_out", params(SignOutQuery), security(()), responses(
    (status = 200, description = "The session has ended; the provider has an address for signing out too.", body = SignedOut),
    (status = 204, description = "The session has ended, and the cookie is cleared.", headers(("set-cookie" = String))),
    (status = 403, description = "The cookie was not sent by the service's own page."),
    (status = 401, description = "All sessions should end, but there is no valid session."),
))]
async fn remove(
    State(app): State<Shared>,
    QueryParams(SignOutQuery { everywhere }): QueryParams<SignOutQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let held = secret_in(&headers);
    if held.is_some() && !is_from_page(&headers) {
        return Err(not_from_page());
    }
    let caller = match &held {
        Some(secret) => app.caller(secret).await,
        None => Err(Problem::unauthorized("there is no session")),
    };
    if let (Ok(caller), Some(tokens)) = (&caller, app.auth.tokens()) {
        if everywhere {
            tokens
                .revoke_tokens_of(&caller.user, Some(TokenKind::Session))
                .await?;
        } else if let Some(Presented { record, .. }) = &caller.token
            && record.grant.kind == TokenKind::Session
        {
            tokens.revoke_token(&record.id).await?;
        }
    }
    // Checked at the end: an invalid cookie is cleared all the same, and only fails a request that
    // should end other sessions.
    if everywhere {
        caller?;
    }
    let cleared = (SET_COOKIE, clear_cookie(&headers));
    let provider = match &app.auth {
        Auth::Oidc(oidc) if held.is_some() => {
            oidc.sign_out(&format!("{}/", address(&headers))).await
        }
        _ => None,
    };
    Ok(match provider.map(String::from) {
        Some(provider_sign_out) => {
            ([cleared], Json(SignedOut { provider_sign_out })).into_response()
        }
        None => (StatusCode::NO_CONTENT, [cleared]).into_response(),
    })
}

/// Middleware for `GET /?token=…`, the link that `adjutant serve` prints: exchanges the token for a
/// cookie and redirects, so that the token does not stay in the address bar.
pub(crate) async fn sign_in_by_link(
    State(app): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    let Some(token) = token_of(request.method(), request.uri()) else {
        return next.run(request).await;
    };
    let headers = request.headers();
    // Another site must not sign its visitors in as a user of its choice (login CSRF).
    if matches!(
        header_text(headers, "sec-fetch-site"),
        Some("cross-site" | "same-site")
    ) {
        return Problem::forbidden("other sites cannot sign a user in").into_response();
    }
    let cookie = match exchange(&app, &token, headers).await {
        Ok(cookie) => cookie,
        // The page itself explains how to get a token.
        Err(_) if wants_html(headers) => clear_cookie(headers),
        Err(problem) => return problem.into_response(),
    };
    redirect_to_page("/", [cookie])
}

/// Returns a redirect to a page of the service that sets these cookies.
pub(crate) fn redirect_to_page(
    place: &'static str,
    cookies: impl IntoIterator<Item = HeaderValue>,
) -> Response {
    let headers = [
        (LOCATION, place),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    let cookies = AppendHeaders(cookies.into_iter().map(|cookie| (SET_COOKIE, cookie)));
    (StatusCode::SEE_OTHER, headers, cookies).into_response()
}

/// Returns true if the client is a browser that loads a page.
pub(crate) fn wants_html(headers: &HeaderMap) -> bool {
    header_text(headers, ACCEPT).is_some_and(|types| types.contains("text/html"))
}

/// Returns the cookie for a token: that of a new session, or the token itself if an external issuer
/// signed it, because then there is no store for sessions.
async fn exchange(app: &Shared, token: &str, headers: &HeaderMap) -> Result<HeaderValue, Problem> {
    let caller = app.caller(token).await?;
    if !caller.role.includes(Role::User) {
        return Err(Problem::forbidden(METRICS_ONLY));
    }
    match &caller.token {
        Some(presented) => create_session(app, &caller, Some(&presented.record), headers).await,
        None => Ok(cookie(token, app, headers)),
    }
}

/// Creates a session for an authenticated caller and returns its cookie. The session expires with
/// the token `with`, if it is created with one.
pub(crate) async fn create_session(
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
    // A session must not outlive the token it was created with.
    let last = with.and_then(|token| token.grant.ends_at.or(token.grant.expires_at));
    let ends_at = last
        .into_iter()
        .fold(after(rules.session_max), Timestamp::min);
    let browser = header_text(headers, USER_AGENT).unwrap_or_default();
    let grant = TokenGrant {
        user: caller.user.clone(),
        name: browser.chars().take(BROWSER_MAX).collect(),
        role: caller.role,
        // A session that a token began may do no more than the token.
        scopes: caller.scopes,
        kind: TokenKind::Session,
        expires_at: Some(ends_at.min(after(rules.session_idle))),
        ends_at: Some(ends_at),
        // Revoking the token ends its sessions too.
        parent: with.map(|token| token.id.clone()),
    };
    let made = new_token().map_err(|error| Problem::internal_error(&error))?;
    tokens.create_token(&grant, &made.digest).await?;
    Ok(cookie(&made.secret, app, headers))
}

/// Returns the cookie of a sign-in in progress. `SameSite=Lax`, because the browser comes back from
/// the provider's site; a strict cookie would not be sent then.
pub(crate) fn pending_cookie(pending: &PendingSignIn, headers: &HeaderMap) -> HeaderValue {
    set_pending(&pending.to_cookie(), PENDING_SECONDS, headers)
}

/// Returns the cookie that clears a sign-in in progress.
pub(crate) fn clear_pending_cookie(headers: &HeaderMap) -> HeaderValue {
    set_pending("", 0, headers)
}

fn set_pending(value: &str, seconds: u64, headers: &HeaderMap) -> HeaderValue {
    let name = with_port(PENDING_COOKIE, headers);
    let cookie = Cookie::build((name, value))
        .path(SIGN_IN)
        .same_site(SameSite::Lax)
        .build();
    to_header(cookie, seconds, headers)
}

/// Returns the sign-in in progress of this browser.
pub(crate) fn pending_sign_in(headers: &HeaderMap) -> Option<PendingSignIn> {
    let name = with_port(PENDING_COOKIE, headers);
    PendingSignIn::parse(CookieJar::from_headers(headers).get(&name)?.value())
}

/// Returns the origin that the browser uses: scheme and host.
pub(crate) fn address(headers: &HeaderMap) -> String {
    origin(is_https(headers), headers, "")
}

/// Returns the origin that a client uses. The guard has checked the host.
pub(crate) fn own_address(headers: &HeaderMap) -> String {
    origin(is_forwarded_https(headers), headers, "localhost")
}

fn origin(is_https: bool, headers: &HeaderMap, default_host: &str) -> String {
    let scheme = if is_https { "https" } else { "http" };
    let host = header_text(headers, HOST).unwrap_or(default_host);
    format!("{scheme}://{host}")
}

/// Returns the secret in the session cookie. Browsers send the cookie by themselves, so requests
/// that change something must come from the service's own page.
pub(crate) fn secret(parts: &Parts) -> Result<String, Problem> {
    let secret =
        secret_in(&parts.headers).ok_or_else(|| Problem::unauthorized("there is no token"))?;
    // For reading too: pages of accepted origins may read responses, but only with a token.
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

/// Returns true if the service's own page sent the request. The guard has checked that an `Origin`,
/// if there is one, is accepted.
fn is_from_page(headers: &HeaderMap) -> bool {
    headers.contains_key(ORIGIN) || header_text(headers, "sec-fetch-site") == Some("same-origin")
}

fn not_from_page() -> Problem {
    Problem::forbidden("with the cookie, only the service's own page may change anything")
}

fn secret_in(headers: &HeaderMap) -> Option<String> {
    let name = with_port(COOKIE, headers);
    let cookies = CookieJar::from_headers(headers);
    Some(cookies.get(&name)?.value().to_owned())
}

/// Returns the token in the query of `GET /`.
fn token_of(method: &Method, uri: &Uri) -> Option<String> {
    if method != Method::GET || uri.path() != "/" {
        return None;
    }
    let (_, token) =
        form_urlencoded::parse(uri.query()?.as_bytes()).find(|(name, _)| name == "token")?;
    Some(token.trim().to_owned())
}

/// Adds the port to a cookie's name. Cookies are not separated by port, so without it two services
/// on one host would overwrite each other's; replicas behind one address have the same port.
fn with_port(name: &str, headers: &HeaderMap) -> String {
    let port = header_text(headers, HOST).and_then(|host| Some(host.rsplit_once(':')?.1));
    match port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(port) => format!("{name}-{port}"),
        None => name.to_owned(),
    }
}

/// Returns the session cookie. The browser keeps it for the longest lifetime of a session; the
/// session itself may end earlier.
fn cookie(secret: &str, app: &Shared, headers: &HeaderMap) -> HeaderValue {
    set_session(secret, app.access.session_max.as_secs(), headers)
}

fn clear_cookie(headers: &HeaderMap) -> HeaderValue {
    set_session("", 0, headers)
}

fn set_session(value: &str, seconds: u64, headers: &HeaderMap) -> HeaderValue {
    let cookie = Cookie::build((with_port(COOKIE, headers), value))
        .path("/")
        .same_site(SameSite::Strict)
        .build();
    to_header(cookie, seconds, headers)
}

fn to_header(mut cookie: Cookie<'_>, seconds: u64, headers: &HeaderMap) -> HeaderValue {
    cookie.set_http_only(true);
    cookie.set_secure(is_https(headers));
    let text = format!("{}; Max-Age={seconds}", cookie.encoded());
    // The encoded value has only characters that are allowed in headers.
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Returns true if the browser uses https, possibly to a proxy in front. A client could forge this,
/// but it concerns only the client's own cookie.
fn is_https(headers: &HeaderMap) -> bool {
    is_forwarded_https(headers)
        || header_text(headers, ORIGIN).is_some_and(|origin| origin.starts_with("https://"))
}

fn is_forwarded_https(headers: &HeaderMap) -> bool {
    header_text(headers, "x-forwarded-proto")
        .is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
}

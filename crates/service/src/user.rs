//! Extractors for the caller of a request. They authenticate, check the role and the scope that the
//! route needs, and count the request against the user's rate limit.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use adjutant_core::UserId;
use adjutant_core::port::{Role, TokenScope};
use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use tracing::Span;

use crate::admission::Rate;
use crate::auth::{Auth, Caller};
use crate::extract::header_text;
use crate::metrics::MetricsAccess;
use crate::problem::{METRICS_ONLY, Problem};
use crate::session;
use crate::state::{App, Shared};

/// Routes that take a `POST` and change nothing.
const READING_POSTS: [&str; 1] = ["/v1/pending/{interrupt_id}/preview"];

/// Beginning of the routes whose changes need [`TokenScope::Answer`] too. A model is told the facts
/// in every conversation, so only the person writes them without being asked.
const FACTS: &str = "/v1/memory";

/// The authenticated user a request runs for; requires [`Role::User`].
pub(crate) struct User(pub(crate) UserId);

/// The authenticated user together with the token or session that was presented, and what it may be
/// used for. Routes that begin turns or answer pending calls take their context from it.
pub(crate) struct SignedIn(pub(crate) Caller);

/// An authenticated operator of the service; requires [`Role::Operator`].
pub(crate) struct Operator(pub(crate) UserId);

/// A caller that may read the metrics.
pub(crate) struct MetricsReader;

/// Caller and rate of a request, filled in by the first extractor. The observing middleware puts an
/// empty one into every request's extensions and reads it afterwards.
#[derive(Clone, Default)]
pub(crate) struct RequestCaller(Arc<Identified>);

#[derive(Default)]
struct Identified {
    caller: OnceLock<Caller>,
    rate: OnceLock<Rate>,
}

impl RequestCaller {
    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.0.caller.get()
    }

    /// Returns what is left of the user's rate limit after this request.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.0.rate.get().copied()
    }
}

/// Middleware that adds the rate limit headers to the response of an authenticated request.
pub(crate) async fn add_rate_headers(request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<RequestCaller>().cloned();
    let mut response = next.run(request).await;
    if let Some(rate) = caller.and_then(|caller| caller.rate()) {
        rate.write_headers(response.headers_mut());
    }
    response
}

impl FromRequestParts<Shared> for User {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let caller = caller(parts, state).await?;
        require_role(&caller, Role::User)?;
        Ok(Self(caller.user))
    }
}

impl FromRequestParts<Shared> for SignedIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let caller = caller(parts, state).await?;
        require_role(&caller, Role::User)?;
        Ok(Self(caller))
    }
}

impl FromRequestParts<Shared> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let caller = caller(parts, state).await?;
        require_role(&caller, Role::Operator)?;
        Ok(Self(caller.user))
    }
}

impl FromRequestParts<Shared> for MetricsReader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let caller = caller(parts, state).await?;
        if state.metrics_access == MetricsAccess::Users || caller.role.includes(Role::Metrics) {
            return Ok(Self);
        }
        Err(Problem::forbidden(
            "the metrics are for operators and for tokens of the role metrics; an operator can open them to all users (serve.metrics), \
             or serve them at a separate address (serve.metrics_bind)",
        ))
    }
}

/// Checks that a caller has all rights of a role.
fn require_role(caller: &Caller, role: Role) -> Result<(), Problem> {
    if caller.role.includes(role) {
        return Ok(());
    }
    Err(Problem::forbidden(match caller.role {
        Role::Metrics => METRICS_ONLY,
        Role::User | Role::Operator => "that is for operators of this service",
    }))
}

/// Authenticates a caller of [`Role::User`] with the scope that the request needs, without counting
/// the request.
///
/// # Errors
/// A problem 401 or 403.
pub(crate) async fn authenticate(parts: &Parts, state: &Shared) -> Result<Caller, Problem> {
    let caller = identify(state, parts).await?;
    require_role(&caller, Role::User)?;
    if let Some(identified) = parts.extensions.get::<RequestCaller>() {
        // Not set before: this is called once, in the place of an extractor.
        let _ = identified.0.caller.set(caller.clone());
        Span::current().record("user", caller.user.as_str());
    }
    with_scope(caller, parts)
}

/// Counts a request against the user's rate limit.
///
/// # Errors
/// A problem 429 if the limit is exceeded.
pub(crate) fn count(parts: &Parts, state: &Shared, user: &UserId) -> Result<(), Problem> {
    let (rate, counted) = state.limits.count_request(user);
    // Also if the rate is exceeded: the headers of the refusal need it.
    if let Some(identified) = parts.extensions.get::<RequestCaller>() {
        let _ = identified.0.rate.set(rate);
    }
    counted
}

/// Authenticates the caller, and checks that they have the scope that the request needs.
async fn caller(parts: &Parts, state: &Shared) -> Result<Caller, Problem> {
    with_scope(counted_caller(parts, state).await?, parts)
}

/// Returns the caller if they have the scopes that the request needs.
fn with_scope(caller: Caller, parts: &Parts) -> Result<Caller, Problem> {
    let mut scopes = scopes_of(parts).iter();
    match scopes.find(|scope| !caller.scopes.contains(**scope)) {
        None => Ok(caller),
        Some(missing) => Err(Problem::scope_missing(*missing)),
    }
}

/// Returns the scopes that a request needs. Of turns and calls, only the runtime knows if they need
/// [`TokenScope::Answer`].
fn scopes_of(parts: &Parts) -> &'static [TokenScope] {
    let route = parts.extensions.get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str);
    if parts.method.is_safe() || READING_POSTS.contains(&route) {
        &[TokenScope::Read]
    } else if route.starts_with(FACTS) {
        &[TokenScope::Write, TokenScope::Answer]
    } else {
        &[TokenScope::Write]
    }
}

/// Authenticates the caller and counts the request against their rate limit, both once per request
/// however many extractors ask.
async fn counted_caller(parts: &Parts, state: &Shared) -> Result<Caller, Problem> {
    let identified = parts.extensions.get::<RequestCaller>().cloned();
    if let Some(caller) = identified.as_ref().and_then(RequestCaller::caller) {
        return Ok(caller.clone());
    }
    let caller = identify(state, parts).await?;
    let (rate, counted) = state.limits.count_request(&caller.user);
    // Also if the rate is exceeded: the log line and the headers of the refusal need both.
    if let Some(identified) = identified {
        // Already set only if two extractors of one request raced; both found the same caller.
        let _ = identified.0.caller.set(caller.clone());
        let _ = identified.0.rate.set(rate);
        // For the log lines of the rest of the request.
        Span::current().record("user", caller.user.as_str());
    }
    counted.map(|()| caller)
}

async fn identify(app: &App, parts: &Parts) -> Result<Caller, Problem> {
    match &app.auth {
        Auth::None => Ok(Caller::new(UserId::local(), Role::Operator)),
        Auth::Proxy(proxy) => {
            let user = proxy.user(peer(parts), &parts.headers)?;
            let role = app.access.roles.for_proxy_user(&user, &parts.headers)?;
            Ok(Caller::new(user, role))
        }
        Auth::Token(_) | Auth::Jwt(_) | Auth::Oidc(_) => {
            // A header wins over the cookie, which browsers add by themselves.
            let secret = match bearer(parts)? {
                Some(secret) => secret.to_owned(),
                None => session::secret(parts)?,
            };
            let caller = app.caller(&secret).await?;
            app.note_use(&caller);
            Ok(caller)
        }
    }
}

/// Returns the secret in the `Authorization` header, if there is one.
fn bearer(parts: &Parts) -> Result<Option<&str>, Problem> {
    let mut headers = parts.headers.get_all(AUTHORIZATION).iter();
    if headers.next().is_none() {
        return Ok(None);
    }
    // A proxy in front may have checked either of them.
    if headers.next().is_some() {
        return Err(Problem::malformed(
            "the request has more than one header Authorization",
        ));
    }
    let header = header_text(&parts.headers, AUTHORIZATION);
    match header.and_then(|header| header.split_once(' ')) {
        Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(secret.trim())),
        _ => Err(Problem::unauthorized(
            "the header Authorization is not Bearer TOKEN",
        )),
    }
}

fn peer(parts: &Parts) -> Option<IpAddr> {
    parts
        .extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map(|peer| peer.0.ip())
}

//! The user a request is from, and the role that its route needs: extracting it is what lets a
//! request in.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use adjutant_core::UserId;
use adjutant_core::port::Role;
use axum::extract::{ConnectInfo, FromRequestParts, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use tracing::Span;

use crate::auth::{Auth, Caller};
use crate::limits::Rate;
use crate::metrics::MetricsAccess;
use crate::problem::Problem;
use crate::session;
use crate::state::{App, Shared};

/// The user a request runs for: a person with things of their own. Extracting it is what lets a
/// request in, and counts it against the user's rate.
pub(crate) struct User(pub(crate) UserId);

/// A user, with what they have shown to be let in.
pub(crate) struct SignedIn(pub(crate) Caller);

/// Whoever sees to the service for everybody.
pub(crate) struct Operator(pub(crate) UserId);

/// Whoever may read the figures.
pub(crate) struct MetricsReader;

/// Who asked, once that is known: put into every request by whoever logs it.
#[derive(Clone, Default)]
pub(crate) struct Asker(Arc<Known>);

#[derive(Default)]
struct Known {
    caller: OnceLock<Caller>,
    rate: OnceLock<Rate>,
}

impl Asker {
    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.0.caller.get()
    }

    /// Returns what is left of their requests, once this one was counted.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.0.rate.get().copied()
    }
}

/// Puts what is left of the user's requests into the answer, whatever it is.
pub(crate) async fn tell_rate(request: Request, next: Next) -> Response {
    let asker = request.extensions().get::<Asker>().cloned();
    let mut response = next.run(request).await;
    if let Some(rate) = asker.and_then(|asker| asker.rate()) {
        rate.tell(response.headers_mut());
    }
    response
}

impl FromRequestParts<Shared> for User {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let caller = caller(parts, state).await?;
        needs(&caller, Role::User)?;
        Ok(Self(caller.user))
    }
}

impl FromRequestParts<Shared> for SignedIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let caller = caller(parts, state).await?;
        needs(&caller, Role::User)?;
        Ok(Self(caller))
    }
}

impl FromRequestParts<Shared> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let caller = caller(parts, state).await?;
        needs(&caller, Role::Operator)?;
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
            "the figures are for operators and for tokens of the role metrics; whoever runs the service can open them to all users \
             (serve.metrics), or give them an address of their own (serve.metrics_bind)",
        ))
    }
}

/// Refuses whoever has not all rights of a role.
fn needs(caller: &Caller, role: Role) -> Result<(), Problem> {
    if caller.role.includes(role) {
        return Ok(());
    }
    Err(Problem::forbidden(match caller.role {
        Role::Metrics => "this token reads the figures (/metrics) and nothing else",
        Role::User | Role::Operator => "that is for operators of this service",
    }))
}

/// Returns who asks, and counts the request against their rate once.
async fn caller(parts: &Parts, state: &Shared) -> Result<Caller, Problem> {
    let asker = parts.extensions.get::<Asker>().cloned();
    if let Some(caller) = asker.as_ref().and_then(Asker::caller) {
        return Ok(caller.clone());
    }
    let caller = identify(state, parts).await?;
    let (rate, counted) = state.limits.request(&caller.user);
    if let Some(asker) = asker {
        // A race has one and the same winner: both have read the same request.
        let _ = asker.0.caller.set(caller.clone());
        let _ = asker.0.rate.set(rate);
        Span::current().record("user", caller.user.as_str());
    }
    counted.map(|()| caller)
}

async fn identify(app: &App, parts: &Parts) -> Result<Caller, Problem> {
    match &app.auth {
        Auth::None => Ok(Caller::new(UserId::local(), Role::Operator)),
        Auth::Proxy(proxy) => {
            let user = proxy.user(peer(parts), &parts.headers)?;
            let role = app.access.roles.of_proxy(&user, &parts.headers)?;
            Ok(Caller::new(user, role))
        }
        Auth::Token(_) | Auth::Jwt(_) | Auth::Oidc(_) => {
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

/// What the header says, if there is one.
fn bearer(parts: &Parts) -> Result<Option<&str>, Problem> {
    let Some(header) = parts.headers.get(AUTHORIZATION) else {
        return Ok(None);
    };
    match header
        .to_str()
        .ok()
        .and_then(|header| header.split_once(' '))
    {
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

//! The user a request runs for: extracting it is what lets a request in.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use adjutant_core::UserId;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use tracing::Span;

use crate::auth::Auth;
use crate::problem::Problem;
use crate::session;
use crate::state::{App, Shared};

/// The user a request runs for. Extracting it is what lets a request in, and counts it against the user's rate.
pub(crate) struct User(pub(crate) UserId);

/// Who asked, once that is known: put into every request by whoever logs it.
#[derive(Clone, Default)]
pub(crate) struct Asker(Arc<OnceLock<UserId>>);

impl Asker {
    pub(crate) fn known(&self) -> Option<&UserId> {
        self.0.get()
    }
}

impl FromRequestParts<Shared> for User {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let asker = parts.extensions.get::<Asker>().cloned();
        if let Some(user) = asker.as_ref().and_then(Asker::known) {
            return Ok(Self(user.clone()));
        }
        let user = identify(state, parts).await?;
        if let Some(asker) = asker {
            // A race has one and the same winner: both have read the same request.
            let _ = asker.0.set(user.clone());
            Span::current().record("user", user.as_str());
        }
        state.limits.request(&user)?;
        Ok(Self(user))
    }
}

async fn identify(app: &App, parts: &Parts) -> Result<UserId, Problem> {
    match &app.auth {
        Auth::None => Ok(UserId::local()),
        Auth::Proxy(proxy) => proxy.user(peer(parts), &parts.headers),
        Auth::Token(_) | Auth::Jwt(_) => {
            let secret = match bearer(parts)? {
                Some(secret) => secret.to_owned(),
                None => session::secret(parts)?,
            };
            app.auth.user_of(&secret).await
        }
    }
}

/// What the header says, if there is one.
fn bearer(parts: &Parts) -> Result<Option<&str>, Problem> {
    let Some(header) = parts.headers.get(AUTHORIZATION) else { return Ok(None) };
    match header.to_str().ok().and_then(|header| header.split_once(' ')) {
        Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(secret.trim())),
        _ => Err(Problem::unauthorized("the header Authorization is not Bearer TOKEN")),
    }
}

fn peer(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip())
}

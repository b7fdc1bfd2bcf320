//! Who asks: from a token, a signed token, or a proxy that knows; never from what is asked.

mod crypto; // signatures
mod jwks; // the issuer's keys
mod jwt; // signed tokens
mod proxy; // somebody in front of us knows
pub(crate) mod session; // the browser's cookie

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use adjutant_core::UserId;
use adjutant_core::port::TokenStore;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

pub use jwks::KeysError;
pub use jwt::{InvalidJwt, Jwt};
pub use proxy::{InvalidProxy, TrustedProxy, networks};

use crate::problem::Problem;
use crate::serve::{App, Shared};
use crate::token::digest;

/// A user's name from outside may have this many bytes.
const USER_ID_MAX: usize = 255;

/// What whoever runs the service is told of a name that is not taken.
const LOCAL_REFUSED: &str = "a proxy or an issuer named the user \"local\", who is whoever works on this machine: refused. Give \
                             that account another name there";

/// How a client says who it is.
#[derive(Clone)]
pub enum Auth {
    /// `Authorization: Bearer TOKEN`, with a token of ours; or the cookie that a token was exchanged for.
    Token(Arc<dyn TokenStore>),
    /// The same with a JSON Web Token of somebody else's.
    Jwt(Arc<Jwt>),
    /// By a proxy in front of us.
    Proxy(TrustedProxy),
    /// Not at all: everybody is the one user of this machine. Only on a loopback address.
    None,
}

impl Auth {
    /// The word of configuration and API.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Token(_) => "token",
            Self::Jwt(_) => "jwt",
            Self::Proxy(_) => "proxy",
            Self::None => "none",
        }
    }

    /// Whom a secret stands for.
    async fn user_of(&self, secret: &str) -> Result<UserId, Problem> {
        match self {
            Self::Token(tokens) => match tokens.user_of(&digest(secret)).await {
                Ok(Some(user)) => Ok(user),
                Ok(None) => Err(Problem::unauthorized("the token is unknown or was revoked")),
                Err(error) => Err(Problem::store(&error)),
            },
            Self::Jwt(jwt) => jwt.user(secret).await,
            Self::Proxy(_) | Self::None => {
                Err(Problem::invalid("this service does not know its users by tokens"))
            }
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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

/// Returns the user whom somebody else named, byte for byte: two names that differ in anything are two users. The user of
/// this machine is nobody's to name but its own tokens'.
fn user_id(name: &str) -> Result<UserId, Problem> {
    if name.len() > USER_ID_MAX || name.chars().any(char::is_control) {
        return Err(Problem::unauthorized("the user's name is too long or no text"));
    }
    let user = UserId::new(name).map_err(|_| Problem::unauthorized("the user's name is empty"))?;
    if user == UserId::local() {
        let detail = "no proxy and no issuer may name the user of the machine itself";
        return Err(Problem::unauthorized(detail).noting(LOCAL_REFUSED));
    }
    Ok(user)
}

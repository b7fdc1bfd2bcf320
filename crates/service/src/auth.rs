//! Who asks: from the token, and nowhere else.

use std::fmt;
use std::sync::Arc;

use adjutant_core::UserId;
use adjutant_core::port::TokenStore;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use crate::problem::Problem;
use crate::serve::Shared;
use crate::token::digest;

/// How a client says who it is.
#[derive(Clone)]
pub enum Auth {
    /// `Authorization: Bearer TOKEN`.
    Token(Arc<dyn TokenStore>),
    /// Not at all: everybody is the one user of this machine. Only on a loopback address.
    None,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "Token",
            Self::None => "None",
        })
    }
}

/// The user a request runs for.
pub(crate) struct User(pub(crate) UserId);

impl FromRequestParts<Shared> for User {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let Auth::Token(tokens) = &state.auth else { return Ok(Self(UserId::local())) };
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (scheme, secret) = header.unwrap_or_default().split_once(' ').unwrap_or_default();
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Problem::unauthorized("there is no token"));
        }
        match tokens.user_of(&digest(secret.trim())).await {
            Ok(Some(user)) => Ok(Self(user)),
            Ok(None) => Err(Problem::unauthorized("the token is unknown or was revoked")),
            Err(error) => Err(Problem::store(&error)),
        }
    }
}

//! Who can say who asks: tokens, signed tokens, or a proxy that knows; never what is asked.

mod crypto; // signatures
mod jwks; // the issuer's keys
mod jwt; // signed tokens
mod name; // whom somebody else named
mod proxy; // somebody in front of us knows

use std::fmt;
use std::sync::Arc;

use adjutant_core::UserId;
use adjutant_core::port::TokenStore;

pub use jwks::KeysError;
pub use jwt::{InvalidJwt, Jwt};
pub use proxy::{InvalidProxy, TrustedProxy, networks};

use crate::problem::Problem;
use crate::token::digest;

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
    pub(crate) async fn user_of(&self, secret: &str) -> Result<UserId, Problem> {
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

//! Authentication: by tokens, signed tokens, a provider that people sign in at, or a trusted proxy;
//! never by the content of a request.

mod crypto; // signatures
mod http; // asking an issuer
mod jwks; // the issuer's keys
mod jwt; // signed tokens
mod name; // whom somebody else named
mod oidc; // people sign in at a provider
mod proxy; // somebody in front of us knows
mod rules; // what those who sign in may do, and for how long

use std::fmt;
use std::sync::Arc;

use adjutant_core::UserId;
use adjutant_core::port::{Role, TokenRecord, TokenRefused, TokenStore};
use jiff::Timestamp;

pub use jwks::KeysError;
pub use jwt::{InvalidJwt, Jwt};
pub(crate) use oidc::{Begun, Returned, SignInFailed};
pub use oidc::{InvalidOidc, Oidc, OidcConfig};
pub use proxy::{InvalidProxy, TrustedProxy, networks};
pub use rules::{AccessRules, RoleRules};

use crate::problem::Problem;
use crate::token::{OURS, digest};

/// How a client says who it is.
#[derive(Clone)]
pub enum Auth {
    /// `Authorization: Bearer TOKEN`, with a token of ours; or the cookie of a session that a token
    /// was exchanged for.
    Token(Arc<dyn TokenStore>),
    /// The same with a JSON Web Token of somebody else's.
    Jwt(Arc<Jwt>),
    /// People sign in at an OpenID provider, which begins a session; programs have tokens of ours,
    /// or of the provider's.
    Oidc(Arc<Oidc>),
    /// By a proxy in front of us.
    Proxy(TrustedProxy),
    /// Not at all: everybody is the one user of this machine. Only on a loopback address.
    None,
}

/// An authenticated caller, and their role.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) user: UserId,
    pub(crate) role: Role,
    /// The token of ours they have shown.
    pub(crate) token: Option<Shown>,
    /// Expiry of the token they have shown, if somebody else signed it.
    pub(crate) until: Option<Timestamp>,
}

/// A token of ours that was shown, and holds.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) record: TokenRecord,
    /// Of its secret.
    pub(crate) digest: [u8; 32],
}

impl Caller {
    pub(crate) fn new(user: UserId, role: Role) -> Self {
        Self {
            user,
            role,
            token: None,
            until: None,
        }
    }
}

impl Auth {
    /// The word of configuration and API.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Token(_) => "token",
            Self::Jwt(_) => "jwt",
            Self::Oidc(_) => "oidc",
            Self::Proxy(_) => "proxy",
            Self::None => "none",
        }
    }

    /// Returns where tokens and sessions of ours are, if users are known by them.
    pub(crate) fn tokens(&self) -> Option<&Arc<dyn TokenStore>> {
        match self {
            Self::Token(tokens) => Some(tokens),
            Self::Oidc(oidc) => Some(oidc.tokens()),
            Self::Jwt(_) | Self::Proxy(_) | Self::None => None,
        }
    }

    /// Returns whom a secret stands for.
    pub(crate) async fn caller(
        &self,
        secret: &str,
        now: Timestamp,
        roles: &RoleRules,
    ) -> Result<Caller, Problem> {
        match self {
            Self::Token(tokens) => by_token(tokens, secret, now).await,
            Self::Jwt(jwt) => by_jwt(jwt, secret, None, roles).await,
            Self::Oidc(oidc) if secret.starts_with(OURS) => {
                by_token(oidc.tokens(), secret, now).await
            }
            Self::Oidc(oidc) => {
                let jwt = oidc.access_tokens().await?;
                by_jwt(&jwt, secret, oidc.user_claim(), roles).await
            }
            Self::Proxy(_) | Self::None => Err(Problem::invalid(
                "this service does not know its users by tokens",
            )),
        }
    }
}

async fn by_token(
    tokens: &Arc<dyn TokenStore>,
    secret: &str,
    now: Timestamp,
) -> Result<Caller, Problem> {
    let digest = digest(secret);
    let found = tokens
        .find_token(&digest)
        .await
        .map_err(|error| Problem::store(&error))?;
    let found = found.ok_or_else(|| Problem::unauthorized("the token is unknown"))?;
    match found.refused(now) {
        None => {}
        Some(TokenRefused::Revoked) => return Err(Problem::unauthorized("the token was revoked")),
        Some(TokenRefused::Expired) => return Err(Problem::unauthorized("the token has expired")),
    }
    let user = found.grant.user.clone();
    // The person of this machine has every right on it, whatever their token was made for but
    // figures.
    let role = match found.grant.role {
        Role::User if user == UserId::local() => Role::Operator,
        role => role,
    };
    Ok(Caller {
        token: Some(Shown {
            record: found,
            digest,
        }),
        ..Caller::new(user, role)
    })
}

async fn by_jwt(
    jwt: &Jwt,
    secret: &str,
    user_claim: Option<&str>,
    roles: &RoleRules,
) -> Result<Caller, Problem> {
    let claims = jwt.claims(secret).await?;
    let user = name::user_of(&claims, user_claim)?;
    let said = roles
        .claim
        .as_deref()
        .map(|claim| claims.texts(claim))
        .unwrap_or_default();
    Ok(Caller {
        until: claims.expires_at(),
        ..Caller::new(user.clone(), roles.role(&user, &said))
    })
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

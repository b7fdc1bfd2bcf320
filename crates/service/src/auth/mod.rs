//! Authentication of callers: by tokens of this service, JSON Web Tokens, OpenID Connect, or a
//! trusted proxy; never by the content of a request.

mod crypto; // signature verification
mod http; // requests to an issuer
mod jwks; // the issuer's keys
mod jwt; // JSON Web Tokens
mod name; // user names from outside
mod oidc; // OpenID Connect
mod proxy; // trusted reverse proxies
mod rules; // roles and lifetimes

use std::fmt;
use std::sync::Arc;

use adjutant_core::port::{Role, TokenRecord, TokenRefused, TokenScope, TokenScopes, TokenStore};
use adjutant_core::{InputId, UserId};
use adjutant_runtime::RunContext;
use jiff::Timestamp;

pub use jwks::KeysError;
pub use jwt::{InvalidJwt, Jwt};
pub(crate) use oidc::{AuthorizationResponse, PendingSignIn, SignInFailed};
pub use oidc::{InvalidOidc, Oidc, OidcConfig};
pub use proxy::{InvalidProxy, TrustedProxy, networks};
pub use rules::{AccessRules, RoleRules};

use crate::problem::Problem;
use crate::token::{SECRET_PREFIX, digest};

/// Method by which callers are authenticated.
///
/// # Examples
///
/// ```
/// use adjutant_service::{Auth, TrustedProxy};
///
/// let proxy = TrustedProxy::new("X-Forwarded-User", &["10.0.0.0/24".to_owned()])?;
/// let auth = Auth::Proxy(proxy);
/// assert_eq!(auth.name(), "proxy");
/// # Ok::<(), adjutant_service::InvalidProxy>(())
/// ```
#[derive(Clone)]
pub enum Auth {
    /// A token of this service in `Authorization: Bearer TOKEN`, or the cookie of a session that it
    /// was exchanged for.
    Token(Arc<dyn TokenStore>),
    /// A JSON Web Token of an external issuer, in the same header or exchanged for a cookie.
    Jwt(Arc<Jwt>),
    /// Users sign in at an OpenID Connect provider, which starts a session. Programs use tokens of
    /// this service, or access tokens of the provider.
    Oidc(Arc<Oidc>),
    /// A reverse proxy authenticates users and names them in a header.
    Proxy(TrustedProxy),
    /// No authentication: every request is from the local user. Allowed on loopback addresses only.
    None,
}

/// An authenticated caller with their role.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) user: UserId,
    pub(crate) role: Role,
    /// Scopes of the request.
    pub(crate) scopes: TokenScopes,
    /// The token or session of this service that was presented.
    pub(crate) token: Option<Presented>,
    /// Expiry of the JSON Web Token that was presented.
    pub(crate) until: Option<Timestamp>,
}

/// A valid token or session of this service that a request presented.
#[derive(Debug, Clone)]
pub(crate) struct Presented {
    pub(crate) record: TokenRecord,
    /// SHA-256 of its secret.
    pub(crate) digest: [u8; 32],
}

impl Caller {
    pub(crate) fn new(user: UserId, role: Role) -> Self {
        Self {
            user,
            role,
            scopes: TokenScopes::ALL,
            token: None,
            until: None,
        }
    }

    /// Returns true if the caller may answer pending calls in place of the person.
    pub(crate) fn may_answer(&self) -> bool {
        self.scopes.contains(TokenScope::Answer)
    }

    /// Returns the context of a new conversation of the caller.
    pub(crate) fn run_context(&self) -> RunContext {
        RunContext {
            may_answer: self.may_answer(),
            ..RunContext::new(self.user.clone())
        }
    }

    /// Returns the context of one call without a model, as [`RunContext::for_call`].
    pub(crate) fn call_context(&self, name: Option<&InputId>) -> RunContext {
        RunContext {
            may_answer: self.may_answer(),
            ..RunContext::for_call(self.user.clone(), name)
        }
    }
}

impl Auth {
    /// Returns the method's name in settings and in the API.
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

    /// Returns the store of tokens and sessions, unless another party authenticates every request.
    pub(crate) fn tokens(&self) -> Option<&Arc<dyn TokenStore>> {
        match self {
            Self::Token(tokens) => Some(tokens),
            Self::Oidc(oidc) => Some(oidc.tokens()),
            Self::Jwt(_) | Self::Proxy(_) | Self::None => None,
        }
    }

    /// Returns the caller that a secret authenticates.
    pub(crate) async fn caller(
        &self,
        secret: &str,
        now: Timestamp,
        roles: &RoleRules,
    ) -> Result<Caller, Problem> {
        match self {
            Self::Token(tokens) => by_token(tokens, secret, now).await,
            Self::Jwt(jwt) => by_jwt(jwt, secret, None, roles).await,
            // Tokens of this service and of the provider come in the same header.
            Self::Oidc(oidc) if secret.starts_with(SECRET_PREFIX) => {
                by_token(oidc.tokens(), secret, now).await
            }
            Self::Oidc(oidc) => {
                let jwt = oidc.access_tokens().await?;
                by_jwt(&jwt, secret, oidc.user_claim(), roles).await
            }
            Self::Proxy(_) | Self::None => Err(Problem::invalid(
                "this service does not authenticate users by tokens",
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
    let found = tokens.find_token(&digest).await?;
    let found = found.ok_or_else(|| Problem::unauthorized("the token is unknown"))?;
    match found.refused(now) {
        None => {}
        Some(TokenRefused::Revoked) => return Err(Problem::unauthorized("the token was revoked")),
        Some(TokenRefused::Expired) => return Err(Problem::unauthorized("the token has expired")),
    }
    let user = found.grant.user.clone();
    // The user of this machine owns everything on it, so any token of theirs is an operator's,
    // except those that were created for reading metrics only.
    let role = match found.grant.role {
        Role::User if user == UserId::local() => Role::Operator,
        role => role,
    };
    Ok(Caller {
        scopes: found.grant.scopes,
        token: Some(Presented {
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
    let named = claims.roles(roles);
    Ok(Caller {
        scopes: claims.scopes(),
        // A stream that is open at the expiry is ended then.
        until: claims.expires_at(),
        ..Caller::new(user.clone(), roles.role(&user, &named))
    })
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

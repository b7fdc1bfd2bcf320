use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::BoxFuture;
use crate::id::UserId;
use crate::names::impl_names;
use crate::port::StoreError;

/// The rights of a user in a service, beyond access to their own data. [`Role::ALL`] begins with the
/// fewest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Reads metrics (`/metrics`), and nothing else.
    Metrics,
    /// Uses the assistant, with tasks and conversations of their own.
    User,
    /// Uses the assistant and operates the service for all users.
    Operator,
}

impl Role {
    /// Returns true if this role has every right of `other`.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        // Roles are no hierarchy: a user may not read metrics.
        self == Self::Operator || self == other
    }
}

impl_names!(Role, NoSuchRole { Metrics = "metrics", User = "user", Operator = "operator" });

/// The error for a name that is not a role's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role; there are operator, user and metrics")]
pub struct NoSuchRole(pub String);

/// One of the things that a token may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenScope {
    /// Requests that change nothing.
    Read,
    /// Requests that change something: messages, calls of tools, settings, deletions.
    Write,
    /// Answers to pending calls, in place of the person who was asked. They are sent with requests
    /// that need [`TokenScope::Write`] too.
    Answer,
}

impl_names!(TokenScope, NoSuchScope { Read = "read", Write = "write", Answer = "answer" });

/// The error for a name that is not a scope's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no scope; there are read, write and answer")]
pub struct NoSuchScope(pub String);

/// The scopes of a token.
///
/// # Examples
///
/// ```
/// use adjutant_core::port::{TokenScope, TokenScopes};
///
/// let scopes: TokenScopes = "read write".parse()?;
/// assert!(scopes.contains(TokenScope::Write) && !scopes.contains(TokenScope::Answer));
/// assert!(TokenScopes::ALL.includes(scopes));
/// assert_eq!(scopes.to_string(), "read write");
/// # Ok::<(), adjutant_core::port::NoSuchScope>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenScopes(u8);

impl TokenScopes {
    /// The scopes of a token that its user has for themselves.
    pub const ALL: Self =
        Self(bit(TokenScope::Read) | bit(TokenScope::Write) | bit(TokenScope::Answer));

    /// Returns true if `scope` is one of these.
    #[must_use]
    pub fn contains(self, scope: TokenScope) -> bool {
        self.0 & bit(scope) != 0
    }

    /// Returns true if these are at least the `others`.
    #[must_use]
    pub fn includes(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns true if a token can be used with these: there is one, and [`TokenScope::Answer`] only beside
    /// [`TokenScope::Write`].
    #[must_use]
    pub fn are_usable(self) -> bool {
        self.0 != 0 && (self.contains(TokenScope::Write) || !self.contains(TokenScope::Answer))
    }

    /// Returns the scopes, in the order of [`TokenScope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = TokenScope> {
        let all = TokenScope::ALL.iter().copied();
        all.filter(move |scope| self.contains(*scope))
    }
}

const fn bit(scope: TokenScope) -> u8 {
    1 << scope as u8
}

impl FromIterator<TokenScope> for TokenScopes {
    fn from_iter<I: IntoIterator<Item = TokenScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |all, scope| all | bit(scope)))
    }
}

impl fmt::Display for TokenScopes {
    /// Writes the names of the scopes, separated by spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(TokenScope::as_str).collect();
        f.write_str(&names.join(" "))
    }
}

impl FromStr for TokenScopes {
    type Err = NoSuchScope;

    /// Parses names of scopes, separated by white space.
    fn from_str(text: &str) -> Result<Self, NoSuchScope> {
        text.split_whitespace().map(str::parse).collect()
    }
}

/// The kind of a token, by where its secret is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A program keeps the secret and sends it with each request.
    Token,
    /// A signed-in browser has the secret in its cookie.
    Session,
}

impl TokenKind {
    /// Returns the kind's name in the API and in stores.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Session => "session",
        }
    }
}

/// The properties of a new token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenGrant {
    /// User that requests with the token act as.
    pub user: UserId,
    /// Label that the owner chose.
    pub name: String,
    /// Role of requests with the token.
    pub role: Role,
    /// Scopes of requests with the token.
    pub scopes: TokenScopes,
    /// A program's token or a browser's session.
    pub kind: TokenKind,
    /// Time from which the token is refused. `None`: never.
    pub expires_at: Option<Timestamp>,
    /// Latest time to which use may extend `expires_at`. `None`: use does not extend it.
    pub ends_at: Option<Timestamp>,
    /// Id of the token it was created with: revoking that one revokes this one.
    pub parent: Option<String>,
}

impl TokenGrant {
    /// Returns the properties of a user's token with every scope and without expiry.
    #[must_use]
    pub fn token(user: UserId, name: impl Into<String>) -> Self {
        Self {
            user,
            name: name.into(),
            role: Role::User,
            scopes: TokenScopes::ALL,
            kind: TokenKind::Token,
            expires_at: None,
            ends_at: None,
            parent: None,
        }
    }
}

/// A stored token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Public identifier, which is no secret.
    pub id: String,
    /// Properties from its creation, except that `expires_at` is the current one.
    pub grant: TokenGrant,
    /// Time at which the token was created.
    pub created_at: Timestamp,
    /// Time of the last use, accurate to a minute. `None`: never used.
    pub used_at: Option<Timestamp>,
    /// Time from which it is refused, if it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// The reason a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRefused {
    /// The token was revoked by its owner or an operator.
    Revoked,
    /// The token's time of expiry has passed.
    Expired,
}

impl TokenRecord {
    /// Returns the reason for which the token is refused at `now`, or `None` if it is valid.
    #[must_use]
    pub fn refused(&self, now: Timestamp) -> Option<TokenRefused> {
        // A revoked token stays revoked, also after its expiry.
        if self.revoked_at.is_some() {
            return Some(TokenRefused::Revoked);
        }
        self.grant
            .expires_at
            .filter(|expiry| *expiry <= now)
            .map(|_| TokenRefused::Expired)
    }
}

/// Access tokens of a service, found by the SHA-256 of their secret.
pub trait TokenStore: Send + Sync + 'static {
    /// Stores a new token and deletes expired sessions of its user.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn create_token<'a>(
        &'a self,
        grant: &'a TokenGrant,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<TokenRecord, StoreError>>;

    /// Finds a token by the digest of its secret, also if it is refused now: see
    /// [`TokenRecord::refused`].
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn find_token<'a>(
        &'a self,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, StoreError>>;

    /// Records the use of a token and its new time of expiry. Has no effect if the token was
    /// revoked or a later use is recorded.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn token_used<'a>(
        &'a self,
        id: &'a str,
        at: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns all tokens, or those of one user, oldest first, including revoked ones.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn tokens<'a>(
        &'a self,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<TokenRecord>, StoreError>>;

    /// Revokes a token and the tokens that were created with it. Returns `false` if there is no
    /// valid token of that id.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn revoke_token<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Revokes the tokens of a user, of one kind or all. Returns the number of tokens that were
    /// valid before.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn revoke_tokens_of<'a>(
        &'a self,
        user: &'a UserId,
        kind: Option<TokenKind>,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;
}

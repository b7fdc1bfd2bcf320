use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::BoxFuture;
use crate::id::UserId;
use crate::port::StoreError;

/// The rights of somebody in a service, beside what is their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Reads the figures (`/metrics`), and nothing else.
    Metrics,
    /// Has an assistant, tasks and conversations of their own.
    User,
    /// The same, and sees to the service for everybody.
    Operator,
}

impl Role {
    /// All of them, the one with the fewest rights first.
    pub const ALL: [Self; 3] = [Self::Metrics, Self::User, Self::Operator];

    /// Returns the word of configuration and API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::User => "user",
            Self::Operator => "operator",
        }
    }

    /// Returns whether whoever has this role has every right of the other.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        self == Self::Operator || self == other
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The word is none of a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role; there are operator, user and metrics")]
pub struct NoSuchRole(pub String);

impl FromStr for Role {
    type Err = NoSuchRole;

    fn from_str(word: &str) -> Result<Self, NoSuchRole> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == word);
        found.ok_or_else(|| NoSuchRole(word.to_owned()))
    }
}

/// The kind of a token, by whoever keeps its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// Programs send it with each request.
    Token,
    /// A browser that was signed in has it in its cookie.
    Session,
}

impl TokenKind {
    /// Returns the word of API and store.
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
    /// Whom it stands for.
    pub user: UserId,
    /// What its owner calls it.
    pub name: String,
    /// The rights that it gives.
    pub role: Role,
    /// Its kind: a program's token or a browser's session.
    pub kind: TokenKind,
    /// From when on it is refused. `None`: it does not expire.
    pub expires_at: Option<Timestamp>,
    /// The last moment that `expires_at` may be moved to. `None`: it is never moved.
    pub ends_at: Option<Timestamp>,
    /// The id of the token it was made with: once that one is revoked, so is this.
    pub parent: Option<String>,
}

impl TokenGrant {
    /// A user's token that does not expire.
    #[must_use]
    pub fn token(user: UserId, name: impl Into<String>) -> Self {
        Self {
            user,
            name: name.into(),
            role: Role::User,
            kind: TokenKind::Token,
            expires_at: None,
            ends_at: None,
            parent: None,
        }
    }
}

/// A token as it is kept: not its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Names it; no secret.
    pub id: String,
    /// The properties it was made with. `expires_at` is the current one.
    pub grant: TokenGrant,
    /// When it was made.
    pub created_at: Timestamp,
    /// Time of its last use, to within a minute. `None`: never.
    pub used_at: Option<Timestamp>,
    /// From when on it is refused.
    pub revoked_at: Option<Timestamp>,
}

/// The reason a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRefused {
    /// Somebody revoked it.
    Revoked,
    /// Its time is over.
    Expired,
}

impl TokenRecord {
    /// Returns why it is refused at this time. `None`: it is not.
    #[must_use]
    pub fn refused(&self, now: Timestamp) -> Option<TokenRefused> {
        if self.revoked_at.is_some() {
            return Some(TokenRefused::Revoked);
        }
        self.grant
            .expires_at
            .filter(|expiry| *expiry <= now)
            .map(|_| TokenRefused::Expired)
    }
}

/// Who may ask over a network: tokens by the SHA-256 of their secret.
pub trait TokenStore: Send + Sync + 'static {
    /// Keeps a new token. The sessions of its user that have expired are forgotten.
    ///
    /// # Errors
    /// [`StoreError`].
    fn create_token<'a>(
        &'a self,
        grant: &'a TokenGrant,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<TokenRecord, StoreError>>;

    /// The token of this secret, also one that is refused by now: see [`TokenRecord::refused`].
    /// `None`: there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    fn find_token<'a>(
        &'a self,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, StoreError>>;

    /// Notes that a token was used, and from when on it is refused now. Nothing happens if it was
    /// revoked, or if a later use is known.
    ///
    /// # Errors
    /// [`StoreError`].
    fn token_used<'a>(
        &'a self,
        id: &'a str,
        at: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// All tokens, or those of one user, oldest first; the revoked ones too.
    ///
    /// # Errors
    /// [`StoreError`].
    fn tokens<'a>(
        &'a self,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<TokenRecord>, StoreError>>;

    /// Refuses a token from now on, and those that were made with it. `false`: there is none of
    /// that id that was not revoked before.
    ///
    /// # Errors
    /// [`StoreError`].
    fn revoke_token<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Refuses the tokens of a user from now on: those of one kind, or all. Returns how many were
    /// not refused before.
    ///
    /// # Errors
    /// [`StoreError`].
    fn revoke_tokens_of<'a>(
        &'a self,
        user: &'a UserId,
        kind: Option<TokenKind>,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;
}

use jiff::Timestamp;

use crate::BoxFuture;
use crate::id::UserId;
use crate::port::StoreError;

/// A token as it is kept: not its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Names it; no secret.
    pub id: String,
    /// Whom it stands for.
    pub user: UserId,
    /// What its owner calls it.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused.
    pub revoked_at: Option<Timestamp>,
}

/// Who may ask over a network: tokens by the SHA-256 of their secret.
pub trait TokenStore: Send + Sync + 'static {
    /// Keeps a new token.
    ///
    /// # Errors
    /// [`StoreError`].
    fn create_token<'a>(
        &'a self,
        user: &'a UserId,
        name: &'a str,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<TokenRecord, StoreError>>;

    /// Whom a token stands for. `None`: there is none, or it was revoked.
    ///
    /// # Errors
    /// [`StoreError`].
    fn user_of<'a>(&'a self, digest: &'a [u8; 32]) -> BoxFuture<'a, Result<Option<UserId>, StoreError>>;

    /// All tokens, or those of one user, oldest first; the revoked ones too.
    ///
    /// # Errors
    /// [`StoreError`].
    fn tokens<'a>(&'a self, user: Option<&'a UserId>) -> BoxFuture<'a, Result<Vec<TokenRecord>, StoreError>>;

    /// Refuses a token from now on. `false`: there is none of that id that was not revoked before.
    ///
    /// # Errors
    /// [`StoreError`].
    fn revoke_token<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;
}

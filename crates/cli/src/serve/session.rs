use std::sync::Arc;

use adjutant_core::port::{StoreError, TokenRecord, TokenStore};
use adjutant_core::{BoxFuture, UserId};

/// The stored tokens, and one more that is in memory only: it ends with the process, however that ends.
pub(super) struct Session {
    /// Of the secret.
    pub(super) digest: [u8; 32],
    /// Whom it stands for.
    pub(super) user: UserId,
    pub(super) tokens: Arc<dyn TokenStore>,
}

impl TokenStore for Session {
    fn create_token<'a>(
        &'a self,
        user: &'a UserId,
        name: &'a str,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<TokenRecord, StoreError>> {
        self.tokens.create_token(user, name, digest)
    }

    fn user_of<'a>(&'a self, digest: &'a [u8; 32]) -> BoxFuture<'a, Result<Option<UserId>, StoreError>> {
        // What is compared are digests of what was sent: how long it takes says nothing about the secret.
        if *digest == self.digest {
            return Box::pin(async { Ok(Some(self.user.clone())) });
        }
        self.tokens.user_of(digest)
    }

    fn tokens<'a>(&'a self, user: Option<&'a UserId>) -> BoxFuture<'a, Result<Vec<TokenRecord>, StoreError>> {
        self.tokens.tokens(user)
    }

    fn revoke_token<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.tokens.revoke_token(id)
    }
}

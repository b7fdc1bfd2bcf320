use std::sync::Arc;

use adjutant_core::port::{Role, StoreError, TokenGrant, TokenKind, TokenRecord, TokenStore};
use adjutant_core::{BoxFuture, UserId};
use jiff::Timestamp;

/// The id of this process's token, which is not stored.
const ID: &str = "this-process";

/// The token store with an additional token of the local user. That token is in memory only and
/// ends with the process, even if it is killed.
pub(super) struct ProcessTokenStore {
    /// Digest of the secret.
    digest: [u8; 32],
    record: TokenRecord,
    tokens: Arc<dyn TokenStore>,
}

impl ProcessTokenStore {
    pub(super) fn new(
        digest: [u8; 32],
        tokens: Arc<dyn TokenStore>,
        created_at: Timestamp,
    ) -> Self {
        let grant = TokenGrant {
            role: Role::Operator,
            ..TokenGrant::token(UserId::local(), "adjutant serve")
        };
        let record = TokenRecord {
            id: ID.to_owned(),
            grant,
            created_at,
            used_at: None,
            revoked_at: None,
        };
        Self {
            digest,
            record,
            tokens,
        }
    }
}

impl TokenStore for ProcessTokenStore {
    fn create_token<'a>(
        &'a self,
        grant: &'a TokenGrant,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<TokenRecord, StoreError>> {
        self.tokens.create_token(grant, digest)
    }

    fn find_token<'a>(
        &'a self,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, StoreError>> {
        // Digests are compared, so the time taken reveals nothing about the secret.
        if *digest == self.digest {
            return Box::pin(async { Ok(Some(self.record.clone())) });
        }
        self.tokens.find_token(digest)
    }

    fn token_used<'a>(
        &'a self,
        id: &'a str,
        at: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        // It is in no table, so its use is not recorded.
        if id == ID {
            return Box::pin(async { Ok(()) });
        }
        self.tokens.token_used(id, at, expires_at)
    }

    fn tokens<'a>(
        &'a self,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<TokenRecord>, StoreError>> {
        self.tokens.tokens(user)
    }

    fn revoke_token<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.tokens.revoke_token(id)
    }

    fn revoke_tokens_of<'a>(
        &'a self,
        user: &'a UserId,
        kind: Option<TokenKind>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.tokens.revoke_tokens_of(user, kind)
    }
}

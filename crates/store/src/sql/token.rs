//! Access tokens, found by the digest of their secret.

use adjutant_core::port::{StoreError, TokenGrant, TokenKind, TokenRecord, TokenStore};
use adjutant_core::{BoxFuture, UserId};
use jiff::Timestamp;

use super::{Backend, Connection, Failure, Row, SqlStore, decode_all, values};
use crate::digest::hex;
use crate::record;

/// Selects the columns that [`token`] reads, but not the digest of the secret.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, user_id, name, role, scopes, kind, created_at, expires_at, ends_at, used_at, revoked_at, parent
             FROM adjutant_token ",
            $rest
        )
    };
}

impl<B: Backend> TokenStore for SqlStore<B> {
    fn create_token<'a>(
        &'a self,
        grant: &'a TokenGrant,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<TokenRecord, StoreError>> {
        self.explained(async move {
            let digest = hex(digest);
            // The digest does not reveal the secret, and its first characters distinguish tokens.
            let id = digest[..12].to_owned();
            let data = (id, digest, grant.clone());
            self.backend
                .write(data, |tx, (id, digest, grant)| {
                    Box::pin(create(tx, id, digest, grant))
                })
                .await
        })
    }

    fn find_token<'a>(
        &'a self,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, StoreError>> {
        self.explained(async move {
            let found = self
                .backend
                .fetch_optional(select!("WHERE digest = $1"), values![&hex(digest)])
                .await?;
            Ok(found.map(token).transpose()?)
        })
    }

    fn token_used<'a>(
        &'a self,
        id: &'a str,
        at: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let data = (
            id.to_owned(),
            record::format_time(at),
            expires_at.map(record::format_time),
        );
        self.write(data, |tx, (id, at, expires_at)| {
            Box::pin(used(tx, id, at, expires_at))
        })
    }

    fn tokens<'a>(
        &'a self,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<TokenRecord>, StoreError>> {
        self.explained(async move {
            let rows = self
                .backend
                .fetch_all(
                    select!(
                        "WHERE (CAST($1 AS TEXT) IS NULL OR user_id = $1) ORDER BY created_at, id"
                    ),
                    values![user.map(UserId::as_str)],
                )
                .await?;
            Ok(decode_all(rows, token)?)
        })
    }

    fn revoke_token<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.write(id.to_owned(), |tx, id| Box::pin(revoke(tx, id)))
    }

    fn revoke_tokens_of<'a>(
        &'a self,
        user: &'a UserId,
        kind: Option<TokenKind>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let data = (user.clone(), kind.map(|kind| kind.as_str().to_owned()));
        self.write(data, |tx, (user, kind)| {
            Box::pin(revoke_all(tx, user, kind))
        })
    }
}

async fn create<C: Connection>(
    tx: &mut C,
    id: &str,
    digest: &str,
    grant: &TokenGrant,
) -> Result<TokenRecord, Failure> {
    let created_at = tx.now().await?;
    let now = record::format_time(created_at);
    tx.execute(
        // Nothing else removes sessions that have ended by themselves.
        "DELETE FROM adjutant_token WHERE user_id = $1 AND kind = 'session' AND expires_at <= $2",
        values![grant.user.as_str(), &now],
    )
    .await?;
    let (expires_at, ends_at) = (
        grant.expires_at.map(record::format_time),
        grant.ends_at.map(record::format_time),
    );
    tx.execute(
        "INSERT INTO adjutant_token (id, digest, user_id, name, role, scopes, kind, created_at, expires_at, ends_at, parent)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        values![
            id,
            digest,
            grant.user.as_str(),
            &grant.name,
            grant.role.as_str(),
            &grant.scopes.to_string(),
            grant.kind.as_str(),
            &now,
            expires_at.as_deref(),
            ends_at.as_deref(),
            grant.parent.as_deref()
        ],
    )
    .await?;
    let (id, grant) = (id.to_owned(), grant.clone());
    Ok(TokenRecord {
        id,
        grant,
        created_at,
        used_at: None,
        revoked_at: None,
    })
}

async fn used<C: Connection>(
    tx: &mut C,
    id: &str,
    at: &str,
    expires_at: &Option<String>,
) -> Result<(), Failure> {
    tx.execute(
        // Uses of several processes may be noted out of order.
        "UPDATE adjutant_token SET used_at = $1, expires_at = $2
         WHERE id = $3 AND revoked_at IS NULL AND (used_at IS NULL OR used_at < $1)",
        values![at, expires_at.as_deref(), id],
    )
    .await?;
    Ok(())
}

async fn revoke<C: Connection>(tx: &mut C, id: &str) -> Result<bool, Failure> {
    let now = tx.now().await?;
    let revoked = tx
        .execute(
            "UPDATE adjutant_token SET revoked_at = $1 WHERE revoked_at IS NULL AND id IN (
               WITH RECURSIVE made (id) AS (
                 SELECT id FROM adjutant_token WHERE id = $2 AND revoked_at IS NULL
                 UNION SELECT t.id FROM adjutant_token AS t JOIN made ON t.parent = made.id)
               SELECT id FROM made)",
            values![&record::format_time(now), id],
        )
        .await?;
    Ok(revoked > 0)
}

/// Revokes the tokens of a user, of one kind or all.
pub(super) async fn revoke_all<C: Connection>(
    tx: &mut C,
    user: &UserId,
    kind: &Option<String>,
) -> Result<u64, Failure> {
    let now = tx.now().await?;
    tx.execute(
        "UPDATE adjutant_token SET revoked_at = $1
         WHERE user_id = $2 AND revoked_at IS NULL AND (CAST($3 AS TEXT) IS NULL OR kind = $3)",
        values![&record::format_time(now), user.as_str(), kind.as_deref()],
    )
    .await
}

fn token(mut row: Row) -> Result<TokenRecord, StoreError> {
    let id: String = row.get("id")?;
    let what = format!("token {id}");
    let kind = match row.get::<String>("kind")?.as_str() {
        "token" => TokenKind::Token,
        "session" => TokenKind::Session,
        other => {
            return Err(record::unreadable(
                &what,
                format!("{other:?} is no kind of token"),
            ));
        }
    };
    let grant = TokenGrant {
        user: record::convert(row.get::<String>("user_id")?, &what)?,
        name: row.get("name")?,
        role: row.parse("role", &what)?,
        scopes: row.parse("scopes", &what)?,
        kind,
        expires_at: row.parse_optional("expires_at", &what)?,
        ends_at: row.parse_optional("ends_at", &what)?,
        parent: row.get("parent")?,
    };
    Ok(TokenRecord {
        id,
        grant,
        created_at: row.parse("created_at", &what)?,
        used_at: row.parse_optional("used_at", &what)?,
        revoked_at: row.parse_optional("revoked_at", &what)?,
    })
}

//! Tokens, by the digest of their secret.

use adjutant_core::port::{Role, StoreError, TokenGrant, TokenKind, TokenRecord, TokenStore};
use adjutant_core::{BoxFuture, UserId};
use jiff::Timestamp;

use super::{Backend, Columns, Connection, Failure, SqlStore, values};
use crate::digest::hex;
use crate::row;

/// Every column of a record, as [`token`] reads them. What stands behind it is the rest of the
/// statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, user_id, name, role, kind, created_at, expires_at, ends_at, used_at, revoked_at, parent
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
        self.run(async move {
            let digest = hex(digest);
            // The digest tells nothing about the secret, and its beginning tells tokens apart.
            let id = digest[..12].to_owned();
            let data = (id, digest, grant.clone());
            self.0
                .write(data, |rows, (id, digest, grant)| {
                    Box::pin(create(rows, id, digest, grant))
                })
                .await
        })
    }

    fn find_token<'a>(
        &'a self,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, StoreError>> {
        self.run(async move {
            let found = self
                .0
                .fetch_first(select!("WHERE digest = $1"), values![&hex(digest)])
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
        self.run(async move {
            let data = (
                id.to_owned(),
                row::time_text(at),
                expires_at.map(row::time_text),
            );
            self.0
                .write(data, |rows, (id, at, expires_at)| {
                    Box::pin(used(rows, id, at, expires_at))
                })
                .await
        })
    }

    fn tokens<'a>(
        &'a self,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<TokenRecord>, StoreError>> {
        self.run(async move {
            let rows = self
                .0
                .fetch(
                    select!(
                        "WHERE (CAST($1 AS TEXT) IS NULL OR user_id = $1) ORDER BY created_at, id"
                    ),
                    values![user.map(UserId::as_str)],
                )
                .await?;
            Ok(rows.into_iter().map(token).collect::<Result<_, _>>()?)
        })
    }

    fn revoke_token<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.run(async move {
            self.0
                .write(id.to_owned(), |rows, id| Box::pin(revoke(rows, id)))
                .await
        })
    }

    fn revoke_tokens_of<'a>(
        &'a self,
        user: &'a UserId,
        kind: Option<TokenKind>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.run(async move {
            let data = (user.clone(), kind.map(|kind| kind.as_str().to_owned()));
            self.0
                .write(data, |rows, (user, kind)| {
                    Box::pin(revoke_all(rows, user, kind))
                })
                .await
        })
    }
}

async fn create<C: Connection>(
    rows: &mut C,
    id: &str,
    digest: &str,
    grant: &TokenGrant,
) -> Result<TokenRecord, Failure> {
    let created_at = rows.now().await?;
    let now = row::time_text(created_at);
    rows.execute(
        "DELETE FROM adjutant_token WHERE user_id = $1 AND kind = 'session' AND expires_at <= $2",
        values![grant.user.as_str(), &now],
    )
    .await?;
    let (expires_at, ends_at) = (
        grant.expires_at.map(row::time_text),
        grant.ends_at.map(row::time_text),
    );
    rows.execute(
        "INSERT INTO adjutant_token (id, digest, user_id, name, role, kind, created_at, expires_at, ends_at, parent)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        values![
            id,
            digest,
            grant.user.as_str(),
            &grant.name,
            grant.role.as_str(),
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
    rows: &mut C,
    id: &str,
    at: &str,
    expires_at: &Option<String>,
) -> Result<(), Failure> {
    rows.execute(
        "UPDATE adjutant_token SET used_at = $1, expires_at = $2
         WHERE id = $3 AND revoked_at IS NULL AND (used_at IS NULL OR used_at < $1)",
        values![at, expires_at.as_deref(), id],
    )
    .await?;
    Ok(())
}

async fn revoke<C: Connection>(rows: &mut C, id: &str) -> Result<bool, Failure> {
    let now = rows.now().await?;
    let revoked = rows
        .execute(
            "UPDATE adjutant_token SET revoked_at = $1 WHERE revoked_at IS NULL AND id IN (
               WITH RECURSIVE made (id) AS (
                 SELECT id FROM adjutant_token WHERE id = $2 AND revoked_at IS NULL
                 UNION SELECT t.id FROM adjutant_token AS t JOIN made ON t.parent = made.id)
               SELECT id FROM made)",
            values![&row::time_text(now), id],
        )
        .await?;
    Ok(revoked > 0)
}

async fn revoke_all<C: Connection>(
    rows: &mut C,
    user: &UserId,
    kind: &Option<String>,
) -> Result<u64, Failure> {
    let now = rows.now().await?;
    rows.execute(
        "UPDATE adjutant_token SET revoked_at = $1
         WHERE user_id = $2 AND revoked_at IS NULL AND (CAST($3 AS TEXT) IS NULL OR kind = $3)",
        values![&row::time_text(now), user.as_str(), kind.as_deref()],
    )
    .await
}

fn token(mut columns: Columns) -> Result<TokenRecord, StoreError> {
    let id = columns.text()?;
    let what = format!("token {id}");
    let time = |text: String| -> Result<Timestamp, StoreError> { row::read_time(&text, &what) };
    let user = UserId::new(columns.text()?).map_err(|error| row::unreadable(&what, error))?;
    let name = columns.text()?;
    let role: Role = columns
        .text()?
        .parse()
        .map_err(|error| row::unreadable(&what, error))?;
    let kind = match columns.text()?.as_str() {
        "token" => TokenKind::Token,
        "session" => TokenKind::Session,
        other => {
            return Err(row::unreadable(
                &what,
                format!("{other:?} is no kind of token"),
            ));
        }
    };
    let created_at = time(columns.text()?)?;
    let expires_at = columns.maybe_text()?.map(time).transpose()?;
    let ends_at = columns.maybe_text()?.map(time).transpose()?;
    let used_at = columns.maybe_text()?.map(time).transpose()?;
    let revoked_at = columns.maybe_text()?.map(time).transpose()?;
    let parent = columns.maybe_text()?;
    let grant = TokenGrant {
        user,
        name,
        role,
        kind,
        expires_at,
        ends_at,
        parent,
    };
    Ok(TokenRecord {
        id,
        grant,
        created_at,
        used_at,
        revoked_at,
    })
}

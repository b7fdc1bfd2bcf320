//! Tokens, by the digest of their secret.

use adjutant_core::port::{StoreError, TokenRecord, TokenStore};
use adjutant_core::{BoxFuture, UserId};
use jiff::Timestamp;

use super::{Backend, Columns, Connection, Failure, SqlStore, values};
use crate::digest::hex;
use crate::row;

impl<B: Backend> TokenStore for SqlStore<B> {
    fn create_token<'a>(
        &'a self,
        user: &'a UserId,
        name: &'a str,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<TokenRecord, StoreError>> {
        self.run(async move {
            let digest = hex(digest);
            // The digest tells nothing about the secret, and its beginning tells tokens apart.
            let id = digest[..12].to_owned();
            let data = (id, digest, user.clone(), name.to_owned());
            self.0
                .write(data, |rows, (id, digest, user, name)| Box::pin(create(rows, id, digest, user, name)))
                .await
        })
    }

    fn user_of<'a>(&'a self, digest: &'a [u8; 32]) -> BoxFuture<'a, Result<Option<UserId>, StoreError>> {
        self.run(async move {
            let found = self
                .0
                .fetch_first(
                    "SELECT user_id FROM adjutant_token WHERE digest = $1 AND revoked_at IS NULL",
                    values![&hex(digest)],
                )
                .await?;
            let Some(mut columns) = found else { return Ok(None) };
            let user = UserId::new(columns.text()?);
            Ok(Some(user.map_err(|error| row::unreadable("the user of a token", error))?))
        })
    }

    fn tokens<'a>(&'a self, user: Option<&'a UserId>) -> BoxFuture<'a, Result<Vec<TokenRecord>, StoreError>> {
        self.run(async move {
            let rows = self
                .0
                .fetch(
                    "SELECT id, user_id, name, created_at, revoked_at FROM adjutant_token
                     WHERE (CAST($1 AS TEXT) IS NULL OR user_id = $1) ORDER BY created_at, id",
                    values![user.map(UserId::as_str)],
                )
                .await?;
            let mut tokens = Vec::with_capacity(rows.len());
            for columns in rows {
                tokens.push(token(columns)?);
            }
            Ok(tokens)
        })
    }

    fn revoke_token<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.run(async move { self.0.write(id.to_owned(), |rows, id| Box::pin(revoke(rows, id))).await })
    }
}

async fn create<C: Connection>(
    rows: &mut C,
    id: &str,
    digest: &str,
    user: &UserId,
    name: &str,
) -> Result<TokenRecord, Failure> {
    let created_at = rows.now().await?;
    rows.execute(
        "INSERT INTO adjutant_token (id, digest, user_id, name, created_at) VALUES ($1, $2, $3, $4, $5)",
        values![id, digest, user.as_str(), name, &row::time_text(created_at)],
    )
    .await?;
    let (id, user, name) = (id.to_owned(), user.clone(), name.to_owned());
    Ok(TokenRecord { id, user, name, created_at, revoked_at: None })
}

async fn revoke<C: Connection>(rows: &mut C, id: &str) -> Result<bool, Failure> {
    let now = rows.now().await?;
    let revoked = rows
        .execute(
            "UPDATE adjutant_token SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL",
            values![&row::time_text(now), id],
        )
        .await?;
    Ok(revoked > 0)
}

fn token(mut columns: Columns) -> Result<TokenRecord, StoreError> {
    let id = columns.text()?;
    let what = format!("token {id}");
    let time = |text: String| -> Result<Timestamp, StoreError> { row::read_time(&text, &what) };
    Ok(TokenRecord {
        user: UserId::new(columns.text()?).map_err(|error| row::unreadable(&what, error))?,
        name: columns.text()?,
        created_at: time(columns.text()?)?,
        revoked_at: columns.maybe_text()?.map(time).transpose()?,
        id,
    })
}

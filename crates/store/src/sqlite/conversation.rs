//! The list of conversations.

use adjutant_core::port::{ConversationStore, ConversationSummary, StoreError};
use adjutant_core::{BoxFuture, ConversationKey, UserId};

use super::Store;
use crate::row;

impl ConversationStore for Store {
    fn list<'a>(
        &'a self,
        user: &'a UserId,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<ConversationSummary>, StoreError>> {
        self.run(async move {
            let rows: Vec<(String, String, String, String)> = sqlx::query_as(
                "SELECT id, title, created_at, updated_at FROM conversation
                 WHERE user_id = ? ORDER BY updated_at DESC, key DESC LIMIT ?",
            )
            .bind(user.as_str())
            .bind(i64::from(limit))
            .fetch_all(&mut *self.read().await?)
            .await?;
            let mut summaries = Vec::with_capacity(rows.len());
            for (id, title, created_at, updated_at) in rows {
                summaries.push(row::summary(&id, title, &created_at, &updated_at)?);
            }
            Ok(summaries)
        })
    }

    fn rename<'a>(
        &'a self,
        key: &'a ConversationKey,
        title: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.run(async move {
            let mut rows = self.write().await?;
            let renamed = sqlx::query("UPDATE conversation SET title = ? WHERE user_id = ? AND id = ?")
                .bind(title)
                .bind(key.user.as_str())
                .bind(key.conversation.to_string())
                .execute(&mut *rows)
                .await?;
            rows.commit().await?;
            Ok(renamed.rows_affected() > 0)
        })
    }

    fn delete<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.run(async move {
            let mut rows = self.write().await?;
            // Events, inbox and logs go with it: every reference says ON DELETE CASCADE.
            let deleted = sqlx::query("DELETE FROM conversation WHERE user_id = ? AND id = ?")
                .bind(key.user.as_str())
                .bind(key.conversation.to_string())
                .execute(&mut *rows)
                .await?;
            rows.commit().await?;
            Ok(deleted.rows_affected() > 0)
        })
    }
}

//! The list of conversations.

use adjutant_core::port::{ConversationStore, ConversationSummary, StoreError};
use adjutant_core::{BoxFuture, ConversationKey, UserId};

use super::{Backend, Connection as _, SqlStore, values};
use crate::row;

impl<B: Backend> ConversationStore for SqlStore<B> {
    fn list<'a>(
        &'a self,
        user: &'a UserId,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<ConversationSummary>, StoreError>> {
        self.run(async move {
            let rows = self
                .0
                .read()
                .await?
                .fetch(
                    "SELECT id, title, created_at, updated_at FROM conversation
                     WHERE user_id = $1 ORDER BY updated_at DESC, key DESC LIMIT $2",
                    values![user.as_str(), i64::from(limit)],
                )
                .await?;
            let mut summaries = Vec::with_capacity(rows.len());
            for mut row in rows {
                let (id, title) = (row.text()?, row.text()?);
                summaries.push(row::summary(&id, title, &row.text()?, &row.text()?)?);
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
            let mut rows = self.0.write().await?;
            let renamed = rows
                .execute(
                    "UPDATE conversation SET title = $1 WHERE user_id = $2 AND id = $3",
                    values![title, key.user.as_str(), &key.conversation.to_string()],
                )
                .await?;
            rows.commit().await?;
            Ok(renamed > 0)
        })
    }

    fn delete<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.run(async move {
            let mut rows = self.0.write().await?;
            // Events, inbox and logs go with it: every reference says ON DELETE CASCADE.
            let deleted = rows
                .execute(
                    "DELETE FROM conversation WHERE user_id = $1 AND id = $2",
                    values![key.user.as_str(), &key.conversation.to_string()],
                )
                .await?;
            rows.commit().await?;
            Ok(deleted > 0)
        })
    }
}

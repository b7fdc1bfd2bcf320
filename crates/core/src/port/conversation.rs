use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::BoxFuture;
use crate::id::{ConversationId, ConversationKey, UserId};
use crate::port::StoreError;

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationSummary {
    /// Its id.
    pub id: ConversationId,
    /// Its name: the first words said in it, until somebody renames it.
    pub title: String,
    /// When its first input was accepted.
    pub created_at: Timestamp,
    /// When its last input was accepted.
    pub updated_at: Timestamp,
}

/// The list of conversations. What is said in them is in the journal.
pub trait ConversationStore: Send + Sync + 'static {
    /// The user's conversations, the one with the newest input first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn list<'a>(
        &'a self,
        user: &'a UserId,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<ConversationSummary>, StoreError>>;

    /// Gives it another name. `false`: the user has no such conversation.
    ///
    /// # Errors
    /// [`StoreError`].
    fn rename<'a>(
        &'a self,
        key: &'a ConversationKey,
        title: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Deletes it with its events and logs. `false`: the user has no such conversation.
    ///
    /// # Errors
    /// [`StoreError`].
    fn delete<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<bool, StoreError>>;
}

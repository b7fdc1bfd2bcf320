use crate::BoxFuture;
use crate::id::IdempotencyKey;
use crate::memory::{MemoryChange, MemoryScope};
use crate::port::StoreError;

/// The history of changes to a memory. Losing it loses explanations and undo, never a fact.
pub trait MemoryLedger: Send + Sync + 'static {
    /// Records a change. A change with a known id replaces the earlier one and keeps its position.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; then nothing was written.
    fn put<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: &'a MemoryChange,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the newest change that was made under an idempotency key.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn by_key<'a>(
        &'a self,
        scope: &'a MemoryScope,
        key: &'a IdempotencyKey,
    ) -> BoxFuture<'a, Result<Option<MemoryChange>, StoreError>>;

    /// Returns the changes of facts whose text was `text` before or after, oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn about<'a>(
        &'a self,
        scope: &'a MemoryScope,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Vec<MemoryChange>, StoreError>>;

    /// Returns the last `limit` changes, newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn newest<'a>(
        &'a self,
        scope: &'a MemoryScope,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<MemoryChange>, StoreError>>;
}

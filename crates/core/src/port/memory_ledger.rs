use crate::BoxFuture;
use crate::id::IdempotencyKey;
use crate::memory::{MemoryChange, MemoryScope};
use crate::port::StoreError;

/// Where the history of a memory is kept. Losing it loses why a fact is there and the way back,
/// never a fact.
pub trait MemoryLedger: Send + Sync + 'static {
    /// Writes a change; one with the same id is replaced and keeps its place in the order.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was written.
    fn put<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: &'a MemoryChange,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The newest change that was made under this key.
    ///
    /// # Errors
    /// [`StoreError`].
    fn by_key<'a>(
        &'a self,
        scope: &'a MemoryScope,
        key: &'a IdempotencyKey,
    ) -> BoxFuture<'a, Result<Option<MemoryChange>, StoreError>>;

    /// The changes of facts that read `text` before or after, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn about<'a>(
        &'a self,
        scope: &'a MemoryScope,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Vec<MemoryChange>, StoreError>>;

    /// The last `limit` changes, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn newest<'a>(
        &'a self,
        scope: &'a MemoryScope,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<MemoryChange>, StoreError>>;
}

use crate::BoxFuture;
use crate::id::UserId;
use crate::memory::{MemoryChange, MemoryScope, StoredFact};
use crate::port::StoreError;

/// Facts about users whose memory is not a file, with the history of their changes.
///
/// The rules of memory are not applied here: changes are planned over facts that were read, and
/// carried out only if those are still the current ones.
pub trait FactStore: Send + Sync + 'static {
    /// Returns the current and the withdrawn facts about a user, with one statement.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn facts<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<FactsFound, StoreError>>;

    /// Applies a change and its history entry in one transaction if the current facts are those
    /// that it was planned on. Otherwise changes nothing and returns `false`.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; then nothing was changed, unless the connection was lost during the commit.
    fn change_facts<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: FactsChange<'a>,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// The facts about a user, current and withdrawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactsFound {
    /// Current facts, oldest first. No two have the same text.
    pub facts: Vec<StoredFact>,
    /// Texts that were forgotten or replaced, newest first, at most 1,000. A text may be current
    /// again.
    pub withdrawn: Vec<String>,
}

/// A planned change of one fact.
#[derive(Debug, Clone, Copy)]
pub struct FactsChange<'a> {
    /// Facts that the change was planned on.
    pub known: &'a [StoredFact],
    /// Text of the fact to remove.
    pub removed: Option<&'a str>,
    /// Fact to add, in the position of the removed one if there is one.
    pub put: Option<&'a StoredFact>,
    /// Entry for the history of changes.
    pub record: &'a MemoryChange,
}

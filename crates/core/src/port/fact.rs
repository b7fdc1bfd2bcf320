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

    /// Returns the facts about a user that were written after a revision, with one statement. `None`:
    /// all facts.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn facts_since<'a>(
        &'a self,
        user: &'a UserId,
        revision: Option<i64>,
    ) -> BoxFuture<'a, Result<FactsUpdate, StoreError>>;

    /// Applies a change and its history entry in one transaction if the facts still have the
    /// revision that it was planned on. Otherwise changes nothing and returns `false`. Its cost does
    /// not depend on the number of facts.
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

/// The facts about a user that were written after a revision. A fact that was removed is not among
/// them: it shows in [`count`](Self::count) alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactsUpdate {
    /// The current revision of all facts: it is different after each change of one of them, and 0
    /// if there was none.
    pub revision: i64,
    /// Number of all current facts.
    pub count: usize,
    /// The facts that were written, in no order. Each has the number of its row, which stays the
    /// same if the fact is replaced, and by which facts of one time of creation are ordered.
    pub facts: Vec<(i64, StoredFact)>,
}

/// A planned change of one fact.
#[derive(Debug, Clone, Copy)]
pub struct FactsChange<'a> {
    /// Revision of the facts that the change was planned on.
    pub revision: i64,
    /// Text of the fact to remove.
    pub removed: Option<&'a str>,
    /// Fact to add, in the position of the removed one if there is one.
    pub put: Option<&'a StoredFact>,
    /// Entry for the history of changes.
    pub record: &'a MemoryChange,
}

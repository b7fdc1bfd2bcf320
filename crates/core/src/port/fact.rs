use crate::BoxFuture;
use crate::id::UserId;
use crate::memory::{MemoryChange, MemoryScope, StoredFact};
use crate::port::StoreError;

/// The facts about users that have no file for them, with the history of their changes.
///
/// Which changes are right is not decided here: they are planned over what was read, and carried
/// out only if it is still so.
pub trait FactStore: Send + Sync + 'static {
    /// Returns the facts about a user and those that were withdrawn, by one statement.
    ///
    /// # Errors
    /// [`StoreError`].
    fn facts<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<FactsFound, StoreError>>;

    /// Carries out a change together with its record, if the facts are still those that it was
    /// planned over; else changes nothing and returns `false`. Nobody else changes facts of the
    /// user in between.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was changed, unless the connection broke at the end.
    fn change_facts<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: FactsChange<'a>,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// The facts about a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactsFound {
    /// Oldest first, by their creation; no two have the same words.
    pub facts: Vec<StoredFact>,
    /// The words that were forgotten or replaced last, newest first, 1,000 at most. They may be
    /// among the facts again.
    pub withdrawn: Vec<String>,
}

/// A change of one fact.
#[derive(Debug, Clone, Copy)]
pub struct FactsChange<'a> {
    /// The facts it was planned over.
    pub known: &'a [StoredFact],
    /// The words of the fact that goes.
    pub removed: Option<&'a str>,
    /// The fact that comes; in the place of the one that goes, if one does.
    pub put: Option<&'a StoredFact>,
    /// The entry of the history.
    pub record: &'a MemoryChange,
}

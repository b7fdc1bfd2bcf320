//! The indexed facts of the users that changed theirs last.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::UserId;

use super::indexed_facts::IndexedFacts;

/// Bound of the texts that are kept, in bytes. Those of the user that changed theirs last are kept
/// however long they are.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The indexed facts of several users, up to a bound: those that were not used for longest are
/// dropped first, and read again when they are needed. Cheap to clone.
#[derive(Clone)]
pub(crate) struct IndexCache(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    bytes_max: usize,
    users: HashMap<UserId, (u64, IndexedFacts)>,
    /// The users in the order of their last use.
    used: BTreeMap<u64, UserId>,
    /// Number of uses.
    uses: u64,
    bytes: usize,
}

/// The indexed facts of a user, taken out of their cache, and back in it on drop.
pub(crate) struct CachedFacts {
    facts: IndexedFacts,
    user: UserId,
    cache: IndexCache,
}

impl Default for IndexCache {
    fn default() -> Self {
        Self::with_bound(BYTES_MAX)
    }
}

impl IndexCache {
    fn with_bound(bytes_max: usize) -> Self {
        Self(Arc::new(Mutex::new(Entries {
            bytes_max,
            ..Entries::default()
        })))
    }

    /// Takes the facts of a user out. Without an entry no facts are known.
    pub(crate) fn take(&self, user: &UserId) -> CachedFacts {
        let facts = self.with(|entries| entries.take(user));
        CachedFacts {
            facts: facts.unwrap_or_default(),
            user: user.clone(),
            cache: self.clone(),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Entries) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entries {
    fn take(&mut self, user: &UserId) -> Option<IndexedFacts> {
        let (use_number, facts) = self.users.remove(user)?;
        self.used.remove(&use_number);
        self.bytes = self.bytes.saturating_sub(facts.bytes());
        Some(facts)
    }

    fn put(&mut self, user: UserId, facts: IndexedFacts) {
        self.take(&user);
        self.uses += 1;
        self.bytes += facts.bytes();
        self.used.insert(self.uses, user.clone());
        self.users.insert(user, (self.uses, facts));
        while self.bytes > self.bytes_max && self.users.len() > 1 {
            let Some((_, oldest)) = self.used.pop_first() else {
                return;
            };
            self.take(&oldest);
        }
    }
}

impl Deref for CachedFacts {
    type Target = IndexedFacts;

    fn deref(&self) -> &IndexedFacts {
        &self.facts
    }
}

impl DerefMut for CachedFacts {
    fn deref_mut(&mut self) -> &mut IndexedFacts {
        &mut self.facts
    }
}

impl Drop for CachedFacts {
    fn drop(&mut self) {
        let facts = std::mem::take(&mut self.facts);
        if facts.revision().is_none() {
            return;
        }
        let user = self.user.clone();
        self.cache.with(|entries| entries.put(user, facts));
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::StoredFact;
    use adjutant_core::port::FactsUpdate;
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn the_facts_that_were_not_used_for_longest_are_dropped() {
        let cache = IndexCache::with_bound(6_000);
        let user = |number: usize| UserId::new(format!("user-{number}")).unwrap();
        let add = |number: usize| {
            let fact = StoredFact {
                text: "x".repeat(600),
                important: false,
                created_at: Timestamp::UNIX_EPOCH,
                updated_at: Timestamp::UNIX_EPOCH,
                source: None,
            };
            let update = FactsUpdate {
                revision: 1,
                count: 1,
                facts: vec![(1, fact)],
            };
            assert!(cache.take(&user(number)).update(update));
        };
        (1..=3).for_each(add);
        // Used once more, so that the second is the next to go.
        assert_eq!(cache.take(&user(1)).revision(), Some(1));
        add(4);
        let known = |number: usize| cache.with(|entries| entries.users.contains_key(&user(number)));
        assert_eq!([1, 2, 3, 4].map(known), [true, false, true, true]);
        assert!(cache.with(|entries| entries.bytes) <= 6_000);
        assert_eq!(cache.take(&user(2)).revision(), None);
    }
}

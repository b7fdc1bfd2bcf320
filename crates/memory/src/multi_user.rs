//! The memories of several users: some have a vault, the others have their facts in one database.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjutant_core::port::{ConversationIndex, FactStore, MemoryLedger};
use adjutant_core::{AgentName, MemoryScope, UserId};

use crate::backend::DatabaseFacts;
use crate::context::{Clock, MemoryContext};
use crate::key_fact::IndexCache;
use crate::user_memory::ConversationSource;
use crate::user_queue::UserQueues;
use crate::{Memory, MemoryError};

/// The facts of all users in one database. No user sees another user's facts. Cheap to clone.
#[derive(Clone)]
pub struct DatabaseMemory {
    store: Arc<dyn FactStore>,
    ledger: Arc<dyn MemoryLedger>,
    max_facts: usize,
    clock: Clock,
    conversations: Option<ConversationSource>,
    queues: UserQueues,
    indexes: IndexCache,
}

impl DatabaseMemory {
    /// Returns a memory over a store of facts and the ledger of their changes. `max_facts`: the
    /// bound for each user, see [`MemoryOptions::max_facts`](crate::MemoryOptions::max_facts).
    #[must_use]
    pub fn new(
        facts: Arc<dyn FactStore>,
        ledger: Arc<dyn MemoryLedger>,
        max_facts: usize,
        clock: Clock,
    ) -> Self {
        Self {
            store: facts,
            ledger,
            max_facts,
            clock,
            conversations: None,
            queues: UserQueues::default(),
            indexes: IndexCache::default(),
        }
    }

    /// Returns the same, in which [`Memory::recall`] also searches each user's past conversations
    /// with an agent.
    #[must_use]
    pub fn with_conversations(self, index: Arc<dyn ConversationIndex>, agent: AgentName) -> Self {
        Self {
            conversations: Some(ConversationSource { index, agent }),
            ..self
        }
    }

    /// Returns the memory of a user. Nothing is read yet.
    #[must_use]
    pub fn for_user(&self, user: &UserId) -> Memory {
        let context = MemoryContext {
            scope: MemoryScope::database(user.clone()),
            max_facts: self.max_facts,
            ledger: self.ledger.clone(),
            clock: self.clock.clone(),
        };
        let facts = DatabaseFacts {
            store: self.store.clone(),
            context,
            queues: self.queues.clone(),
            indexes: self.indexes.clone(),
        };
        Memory::in_database(facts, self.conversations.clone())
    }

    pub(crate) fn has_conversations(&self) -> bool {
        self.conversations.is_some()
    }
}

/// The memory of each user of a service. Cheap to clone.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use adjutant_core::UserId;
/// use adjutant_memory::{InMemoryLedger, Memories, Memory, MemoryOptions, Vault};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let anna = UserId::new("anna")?;
/// let memory = Memory::new(
///     Vault::open(folder.path())?,
///     anna.clone(),
///     MemoryOptions::default(),
///     Arc::new(InMemoryLedger::new()),
///     Arc::new(jiff::Zoned::now),
/// )?;
/// let memories = Memories::default().with(memory);
/// assert!(memories.for_user(&anna).is_some());
/// assert!(memories.for_user(&UserId::new("bert")?).is_none());
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Memories {
    /// `None`: the user has no memory, even if `others` is set.
    by_user: Arc<BTreeMap<UserId, Option<Memory>>>,
    others: Option<DatabaseMemory>,
}

impl Memories {
    /// Returns memories with that of one user alone.
    #[must_use]
    pub fn single(memory: Memory) -> Self {
        Self::default().with(memory)
    }

    /// Returns the same with one more memory, for its owner.
    #[must_use]
    pub fn with(mut self, memory: Memory) -> Self {
        Arc::make_mut(&mut self.by_user).insert(memory.owner().clone(), Some(memory));
        self
    }

    /// Returns the same without a memory for a user: their vault cannot be reached, and a second
    /// memory in the database would hold other facts than theirs.
    #[must_use]
    pub fn without(mut self, user: UserId) -> Self {
        Arc::make_mut(&mut self.by_user).insert(user, None);
        self
    }

    /// Returns the same with a memory in a database for every user who has none of their own.
    #[must_use]
    pub fn with_others(self, others: DatabaseMemory) -> Self {
        Self {
            others: Some(others),
            ..self
        }
    }

    /// Returns the memory of a user, if they have one.
    #[must_use]
    pub fn for_user(&self, user: &UserId) -> Option<Memory> {
        match self.by_user.get(user) {
            Some(memory) => memory.clone(),
            None => Some(self.others.as_ref()?.for_user(user)),
        }
    }

    /// # Errors
    /// [`MemoryError::NotYours`] if the user has no memory.
    pub(crate) fn require(&self, user: &UserId) -> Result<Memory, MemoryError> {
        self.for_user(user).ok_or(MemoryError::NotYours)
    }

    /// Returns true if a user's vault cannot be reached: see [`Memories::without`].
    #[must_use]
    pub fn is_out_of_reach(&self, user: &UserId) -> bool {
        matches!(self.by_user.get(user), Some(None))
    }

    /// Returns true if no user has a memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_user.values().all(Option::is_none) && self.others.is_none()
    }
}

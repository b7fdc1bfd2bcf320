//! The memories of several users: some have a vault, the others have their facts in one database.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjutant_core::port::{FactStore, MemoryLedger, PastConversations};
use adjutant_core::{AgentName, MemoryScope, UserId};

use crate::Memory;
use crate::memory::{Clock, Common};

/// The facts of all users of a database, each user's for themselves. Cheap to clone.
#[derive(Clone)]
pub struct DatabaseMemory {
    facts: Arc<dyn FactStore>,
    ledger: Arc<dyn MemoryLedger>,
    max_facts: usize,
    clock: Clock,
    past: Option<(Arc<dyn PastConversations>, AgentName)>,
}

impl DatabaseMemory {
    /// Over a store of facts, with the history of their changes. `max_facts`: how many there may be
    /// of one user, see [`MemoryOptions::max_facts`](crate::MemoryOptions::max_facts).
    #[must_use]
    pub fn new(
        facts: Arc<dyn FactStore>,
        ledger: Arc<dyn MemoryLedger>,
        max_facts: usize,
        clock: Clock,
    ) -> Self {
        Self {
            facts,
            ledger,
            max_facts,
            clock,
            past: None,
        }
    }

    /// Returns the same, in which each user's past conversations with an agent are looked for too.
    #[must_use]
    pub fn with_conversations(self, past: Arc<dyn PastConversations>, agent: AgentName) -> Self {
        Self {
            past: Some((past, agent)),
            ..self
        }
    }

    /// Returns the memory of a user. Nothing is read.
    #[must_use]
    pub fn of(&self, user: &UserId) -> Memory {
        let common = Common {
            scope: MemoryScope::database(user.clone()),
            max_facts: self.max_facts,
            ledger: self.ledger.clone(),
            clock: self.clock.clone(),
        };
        Memory::in_database(self.facts.clone(), common, self.past.clone())
    }

    pub(crate) fn has_conversations(&self) -> bool {
        self.past.is_some()
    }
}

/// Whose memory is where. Cheap to clone.
#[derive(Clone, Default)]
pub struct Memories {
    /// `None`: this user has no memory, whatever others have.
    own: Arc<BTreeMap<UserId, Option<Memory>>>,
    others: Option<DatabaseMemory>,
}

impl Memories {
    /// Returns the memory of one user; nobody else has any.
    #[must_use]
    pub fn of_one(memory: Memory) -> Self {
        Self::default().with(memory)
    }

    /// Returns the same, in which the owner of a memory has that one.
    #[must_use]
    pub fn with(mut self, memory: Memory) -> Self {
        Arc::make_mut(&mut self.own).insert(memory.owner().clone(), Some(memory));
        self
    }

    /// Returns the same, in which a user has no memory: theirs is elsewhere and cannot be reached,
    /// and they get no second one.
    #[must_use]
    pub fn without(mut self, user: UserId) -> Self {
        Arc::make_mut(&mut self.own).insert(user, None);
        self
    }

    /// Returns the same, in which everybody who has none of their own has one in a database.
    #[must_use]
    pub fn with_others(self, others: DatabaseMemory) -> Self {
        Self {
            others: Some(others),
            ..self
        }
    }

    /// Returns the memory of a user, if they have one.
    #[must_use]
    pub fn of(&self, user: &UserId) -> Option<Memory> {
        match self.own.get(user) {
            Some(own) => own.clone(),
            None => Some(self.others.as_ref()?.of(user)),
        }
    }

    /// Returns true if a user's memory is elsewhere and cannot be reached: see
    /// [`Memories::without`].
    #[must_use]
    pub fn is_out_of_reach(&self, user: &UserId) -> bool {
        matches!(self.own.get(user), Some(None))
    }

    /// Returns true if nobody has a memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.own.values().all(Option::is_none) && self.others.is_none()
    }
}

//! The memory of one user, in a vault or in a database, and its parts.

use std::path::Path;
use std::sync::Arc;

use adjutant_core::port::{ConversationIndex, MemoryLedger};
use adjutant_core::{AgentName, ConversationId, MemoryScope, UserId};

use crate::VaultError;
use crate::backend::{Backend, DatabaseFacts};
use crate::context::{Clock, MemoryContext, MemoryOptions};
use crate::key_fact::KeyFactStore;
use crate::notes::Notes;
use crate::vault::{NotePath, Vault};
use crate::vault_memory::VaultMemory;

/// The memory of one user: facts, notes and tasks in a vault, or facts in a database. Cheap to
/// clone; files and rows are read again at every operation.
///
/// A memory in a vault is made by [`Memory::new`], one in a database by
/// [`DatabaseMemory::for_user`](crate::DatabaseMemory::for_user).
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use adjutant_core::UserId;
/// use adjutant_memory::{Cause, InMemoryLedger, Memory, MemoryOptions, Vault};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let memory = Memory::new(
///     Vault::open(folder.path())?,
///     UserId::local(),
///     MemoryOptions::default(),
///     Arc::new(InMemoryLedger::new()),
///     Arc::new(jiff::Zoned::now),
/// )?;
/// memory.facts().add("Josh has a cat", false, &Cause::person()).await?;
/// assert_eq!(memory.undo().await?.message, "Undone: “Josh has a cat” is forgotten.");
/// assert!(memory.facts().list().await?.is_empty());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Memory {
    backend: Backend,
    conversations: Option<ConversationSource>,
}

/// The index of past conversations, and the agent that held them.
#[derive(Clone)]
pub(crate) struct ConversationSource {
    pub(crate) index: Arc<dyn ConversationIndex>,
    pub(crate) agent: AgentName,
}

impl Memory {
    /// Returns the memory of `owner` in a vault. No file is read or written yet.
    ///
    /// # Errors
    /// [`VaultError::Name`] if [`MemoryOptions::path`] cannot be a note of the vault.
    pub fn new(
        vault: Vault,
        owner: UserId,
        options: MemoryOptions,
        ledger: Arc<dyn MemoryLedger>,
        clock: Clock,
    ) -> Result<Self, VaultError> {
        // The setting may be the whole path of a file in the vault.
        let inside = Path::new(&options.path)
            .strip_prefix(vault.root())
            .ok()
            .and_then(Path::to_str);
        let facts_path = NotePath::parse(inside.unwrap_or(&options.path))?;
        let context = MemoryContext {
            scope: MemoryScope {
                user: owner,
                // Two vaults of one user have two histories.
                vault: vault.root().to_string_lossy().into_owned(),
            },
            max_facts: options.max_facts,
            ledger,
            clock,
        };
        let vault_memory = VaultMemory::new(vault, facts_path, options, context);
        Ok(Self {
            backend: Backend::Vault(Arc::new(vault_memory)),
            conversations: None,
        })
    }

    pub(crate) fn in_database(
        facts: DatabaseFacts,
        conversations: Option<ConversationSource>,
    ) -> Self {
        Self {
            backend: Backend::Database(Arc::new(facts)),
            conversations,
        }
    }

    /// Returns the same memory, whose [`recall`](Memory::recall) also searches the owner's past
    /// conversations with an agent.
    #[must_use]
    pub fn with_conversations(self, index: Arc<dyn ConversationIndex>, agent: AgentName) -> Self {
        Self {
            conversations: Some(ConversationSource { index, agent }),
            ..self
        }
    }

    /// Returns the store of the facts about the owner.
    #[must_use]
    pub fn facts(&self) -> KeyFactStore {
        KeyFactStore(self.backend.clone())
    }

    /// Returns the notes and daily notes. `None` without a vault.
    #[must_use]
    pub fn notes(&self) -> Option<Notes> {
        self.in_vault().cloned().map(Notes)
    }

    /// Returns the vault. `None` if the facts are in a database.
    #[must_use]
    pub fn vault(&self) -> Option<&Vault> {
        self.in_vault().map(|memory| &memory.vault)
    }

    /// Returns the user whose memory this is.
    #[must_use]
    pub fn owner(&self) -> &UserId {
        &self.context().scope.user
    }

    /// Sets the notes that are attached in a conversation, by their paths, in place of those
    /// before: a search from that conversation ranks them a little higher. Kept in this process for
    /// the last 64 conversations. Does nothing without a vault.
    pub fn attach(&self, conversation: ConversationId, notes: Vec<String>) {
        if let Some(memory) = self.in_vault() {
            memory.attach(conversation, notes);
        }
    }

    pub(crate) fn in_vault(&self) -> Option<&Arc<VaultMemory>> {
        match &self.backend {
            Backend::Vault(memory) => Some(memory),
            Backend::Database(_) => None,
        }
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    pub(crate) fn context(&self) -> &MemoryContext {
        self.backend.context()
    }

    pub(crate) fn conversations(&self) -> Option<&ConversationSource> {
        self.conversations.as_ref()
    }
}

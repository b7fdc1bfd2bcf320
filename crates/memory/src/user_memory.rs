//! The memory of one user, in a vault or in a database: its options, its parts, and the cause and
//! record of each change.

use std::path::Path;
use std::sync::Arc;

use adjutant_core::port::{ConversationIndex, FactStore, MemoryLedger};
use adjutant_core::{
    AgentName, ConversationId, IdempotencyKey, MemoryChange, MemoryEffect, MemoryScope,
    MemorySource, MemoryState, ToolContext, UserId,
};
use jiff::Zoned;
use uuid::Uuid;

use crate::daily::{Daily, Locale};
use crate::key_fact::KeyFactStore;
use crate::notes::Notes;
use crate::vault::{NotePath, Vault};
use crate::vault_memory::VaultMemory;
use crate::{MemoryError, VaultError};

/// A source of the current time in the user's time zone. The memory reads no clock itself.
pub type Clock = Arc<dyn Fn() -> Zoned + Send + Sync>;

/// Settings of a memory in a vault: where its files are, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryOptions {
    /// The file of the facts, relative to the vault, or as a whole path inside it. Default
    /// `memory/facts.md`. Setting `memory.path`.
    pub path: String,
    /// Number of facts that may be stored. Default 5,000. At the limit `remember` refuses; nothing
    /// is evicted. Setting `memory.max_facts`.
    pub max_facts: usize,
    /// The place of the daily notes. Default: as the vault's own settings say. Setting
    /// `vault.daily`.
    pub daily: Daily,
    /// Language of the names of months and days in their paths and templates. Default: the one that
    /// the existing daily notes are named in, else English. Setting `vault.locale`.
    pub locale: Option<Locale>,
    /// The heading of daily notes under which entries stand, without `#`. Default `Log`. A note
    /// that has it at any level gets entries there; another note gets it at level 2, at its end.
    pub heading: String,
    /// The folder of the notes of conversations, relative to the vault; empty is the vault itself.
    /// Default `conversations`. Setting `vault.conversations`.
    pub conversations: String,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            path: "memory/facts.md".to_owned(),
            max_facts: 5_000,
            daily: Daily::Auto,
            locale: None,
            heading: "Log".to_owned(),
            conversations: "conversations".to_owned(),
        }
    }
}

/// The provenance of a change: the tool call or the user that asks for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cause {
    /// The conversation, turn and call; none if the user makes the change outside a conversation.
    pub source: Option<MemorySource>,
    /// The same for every repeat of one call: a change with a key has one effect, however often it
    /// is asked for. `None`: each request is a change.
    pub key: Option<IdempotencyKey>,
}

impl Cause {
    /// Returns the cause of a change that the user makes by a command, outside a conversation.
    #[must_use]
    pub fn person() -> Self {
        Self::default()
    }

    /// Returns the cause of a change that a tool call makes.
    #[must_use]
    pub fn call(context: &ToolContext) -> Self {
        let source = MemorySource {
            conversation: context.conversation,
            turn: context.turn,
            call: context.call.clone(),
        };
        Self {
            source: Some(source),
            key: Some(context.key.clone()),
        }
    }
}

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
/// assert_eq!(memory.undo().await?.message, "Forgot “Josh has a cat” again.");
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

/// The storage of one user's facts.
#[derive(Clone)]
pub(crate) enum Backend {
    Vault(Arc<VaultMemory>),
    Database(Arc<DatabaseFacts>),
}

/// The owner, the bound, the ledger and the clock, which memories of both backends have.
#[derive(Clone)]
pub(crate) struct MemoryContext {
    pub(crate) scope: MemoryScope,
    pub(crate) max_facts: usize,
    pub(crate) ledger: Arc<dyn MemoryLedger>,
    pub(crate) clock: Clock,
}

/// A user's facts in a database.
#[derive(Clone)]
pub(crate) struct DatabaseFacts {
    pub(crate) store: Arc<dyn FactStore>,
    pub(crate) context: MemoryContext,
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

impl Backend {
    pub(crate) fn context(&self) -> &MemoryContext {
        match self {
            Self::Vault(memory) => &memory.context,
            Self::Database(database) => &database.context,
        }
    }
}

impl MemoryContext {
    /// Returns the change that an earlier attempt of the same call recorded, if there was one.
    pub(crate) async fn prior_change(
        &self,
        cause: &Cause,
    ) -> Result<Option<MemoryChange>, MemoryError> {
        match &cause.key {
            Some(key) => Ok(self.ledger.by_key(&self.scope, key).await?),
            None => Ok(None),
        }
    }

    /// Returns a change that is about to be made. `prior`: that of an earlier attempt of the same
    /// call, whose id and time it keeps.
    pub(crate) fn begin_change(
        &self,
        cause: &Cause,
        prior: Option<MemoryChange>,
        effect: MemoryEffect,
    ) -> MemoryChange {
        // With the id of the earlier attempt the ledger replaces its change instead of adding one.
        let (id, at) = match prior {
            Some(prior) => (prior.id, prior.at),
            None => (Uuid::now_v7(), (self.clock)().timestamp()),
        };
        MemoryChange {
            id,
            at,
            source: cause.source.clone(),
            key: cause.key.clone(),
            effect,
            state: MemoryState::Begun,
            patch: None,
        }
    }

    /// Returns the last changes, the newest first.
    pub(crate) async fn newest(&self, limit: usize) -> Result<Vec<MemoryChange>, MemoryError> {
        Ok(self.ledger.newest(&self.scope, limit).await?)
    }

    pub(crate) async fn record(&self, change: &MemoryChange) -> Result<(), MemoryError> {
        Ok(self.ledger.put(&self.scope, change).await?)
    }

    /// Records the end of a change. An error is ignored: the file itself shows whether the change
    /// was made, and the next attempt of the same call looks there.
    pub(crate) async fn settle(&self, change: Option<MemoryChange>, state: MemoryState) {
        if let Some(change) = change {
            let _ = self.record(&MemoryChange { state, ..change }).await;
        }
    }
}

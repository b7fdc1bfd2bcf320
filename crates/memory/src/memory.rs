//! The memory as a whole: facts, notes and the way back, over one vault of one owner, or over their
//! facts in a database.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::port::{FactStore, MemoryLedger, PastConversations};
use adjutant_core::{
    AgentName, ConversationId, IdempotencyKey, MemoryChange, MemoryEffect, MemoryScope,
    MemorySource, MemoryState, ToolContext, UserId,
};
use jiff::Zoned;
use uuid::Uuid;

use crate::daily::{Daily, Locale};
use crate::key_fact::{Kept, KeyFactStore};
use crate::notes::Notes;
use crate::patch;
use crate::vault::{NotePath, Stored, Vault, VaultLock};
use crate::{MemoryError, VaultError};

/// What time it is, and in which zone: the person's own. Handed in, never read here.
pub type Clock = Arc<dyn Fn() -> Zoned + Send + Sync>;

/// How often a change is planned again because another program wrote in between.
pub(crate) const ATTEMPTS_MAX: usize = 8;

/// Conversations of which it is known what is attached.
const ATTACHED_MAX: usize = 64;

/// Settings of a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Where the facts are, relative to the vault, or as a whole path inside it. Default
    /// `memory/facts.md`. Setting `memory.path`.
    pub path: String,
    /// The number of facts at most. Default 5,000. At the limit `remember` refuses; nothing is
    /// evicted. Setting `memory.max_facts`.
    pub max_facts: usize,
    /// Where daily notes are. Default: as the vault's own settings say. Setting `vault.daily`.
    pub daily: Daily,
    /// Language of the names in their paths and templates. Default: the one that the notes there
    /// are named in, else English. Setting `vault.locale`.
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

/// Because of what something is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cause {
    /// The conversation; none if the person does it without one.
    pub source: Option<MemorySource>,
    /// The same for every repeat of one call: then it has one effect.
    pub key: Option<IdempotencyKey>,
}

impl Cause {
    /// The person, by a command.
    #[must_use]
    pub fn person() -> Self {
        Self::default()
    }

    /// A tool call.
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

/// The memory of one person: in one vault, or their facts in a database. Cheap to clone; everything
/// is read fresh at every operation.
#[derive(Clone)]
pub struct Memory {
    place: Place,
    /// The index of past conversations, and the agent they were held with.
    past: Option<(Arc<dyn PastConversations>, AgentName)>,
}

/// A place of facts: a vault or a database.
#[derive(Clone)]
pub(crate) enum Place {
    Vault(Arc<Shared>),
    Database(Arc<InDatabase>),
}

/// The parts that memories of both kinds have.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) scope: MemoryScope,
    pub(crate) max_facts: usize,
    pub(crate) ledger: Arc<dyn MemoryLedger>,
    pub(crate) clock: Clock,
}

/// The parts that facts, notes and undo have in common in a vault.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) vault: Vault,
    pub(crate) facts: NotePath,
    pub(crate) options: MemoryOptions,
    pub(crate) common: Common,
    /// The facts as they were read last.
    pub(crate) kept: Arc<Kept>,
    /// The notes that are attached in conversations.
    attached: Arc<Mutex<Attached>>,
}

/// A user's facts in a database.
#[derive(Clone)]
pub(crate) struct InDatabase {
    pub(crate) facts: Arc<dyn FactStore>,
    pub(crate) common: Common,
}

/// The paths of the notes that are attached in each of the last conversations, the newest last.
type Attached = VecDeque<(ConversationId, Vec<String>)>;

/// What a plan wants to be written.
pub(crate) enum Planned<T> {
    /// Nothing: this is the answer already.
    Nothing(T),
    /// This text, with this effect.
    Write {
        text: String,
        effect: Box<MemoryEffect>,
        answer: T,
    },
}

impl Memory {
    /// Over a vault that belongs to `owner`. No file is touched.
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
        // The seed's `memoryPath` may be the whole path of a file in the vault.
        let inside = Path::new(&options.path)
            .strip_prefix(vault.root())
            .ok()
            .and_then(Path::to_str);
        let facts = NotePath::parse(inside.unwrap_or(&options.path))?;
        let scope = MemoryScope {
            user: owner,
            vault: vault.root().to_string_lossy().into_owned(),
        };
        let common = Common {
            scope,
            max_facts: options.max_facts,
            ledger,
            clock,
        };
        let (kept, attached) = (Arc::default(), Arc::default());
        let shared = Shared {
            vault,
            facts,
            options,
            common,
            kept,
            attached,
        };
        Ok(Self {
            place: Place::Vault(Arc::new(shared)),
            past: None,
        })
    }

    pub(crate) fn in_database(
        facts: Arc<dyn FactStore>,
        common: Common,
        past: Option<(Arc<dyn PastConversations>, AgentName)>,
    ) -> Self {
        Self {
            place: Place::Database(Arc::new(InDatabase { facts, common })),
            past,
        }
    }

    /// Returns the same memory, in which the owner's past conversations with an agent are looked
    /// for too.
    #[must_use]
    pub fn with_conversations(self, past: Arc<dyn PastConversations>, agent: AgentName) -> Self {
        Self {
            past: Some((past, agent)),
            ..self
        }
    }

    /// The facts.
    #[must_use]
    pub fn facts(&self) -> KeyFactStore {
        KeyFactStore(self.place.clone())
    }

    /// The notes and daily notes. `None` without a vault.
    #[must_use]
    pub fn notes(&self) -> Option<Notes> {
        self.in_vault().cloned().map(Notes)
    }

    /// The vault, if there is one.
    #[must_use]
    pub fn vault(&self) -> Option<&Vault> {
        self.in_vault().map(|shared| &shared.vault)
    }

    /// Whose it is.
    #[must_use]
    pub fn owner(&self) -> &UserId {
        &self.common().scope.user
    }

    /// Tells which notes are attached in a conversation, by their paths, in place of those that
    /// were told before: a search there ranks them a little higher. Kept for the last 64
    /// conversations, in this process.
    pub fn attach(&self, conversation: ConversationId, notes: Vec<String>) {
        let Some(shared) = self.in_vault() else {
            return;
        };
        let mut attached = shared
            .attached
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        attached.retain(|(known, _)| *known != conversation);
        if !notes.is_empty() {
            attached.push_back((conversation, notes));
        }
        if attached.len() > ATTACHED_MAX {
            attached.pop_front();
        }
    }

    pub(crate) fn in_vault(&self) -> Option<&Arc<Shared>> {
        match &self.place {
            Place::Vault(shared) => Some(shared),
            Place::Database(_) => None,
        }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn common(&self) -> &Common {
        self.place.common()
    }

    pub(crate) fn past(&self) -> Option<&(Arc<dyn PastConversations>, AgentName)> {
        self.past.as_ref()
    }
}

impl Place {
    pub(crate) fn common(&self) -> &Common {
        match self {
            Self::Vault(shared) => &shared.common,
            Self::Database(database) => &database.common,
        }
    }
}

impl Shared {
    /// Returns the paths of the notes that are attached in a conversation.
    pub(crate) fn attached(&self, conversation: ConversationId) -> Vec<String> {
        let attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        let known = attached.iter().find(|(known, _)| *known == conversation);
        known.map(|(_, notes)| notes.clone()).unwrap_or_default()
    }
}

impl Common {
    /// Returns what the call of this cause did before, if it did anything.
    pub(crate) async fn earlier(&self, cause: &Cause) -> Result<Option<MemoryChange>, MemoryError> {
        match &cause.key {
            Some(key) => Ok(self.ledger.by_key(&self.scope, key).await?),
            None => Ok(None),
        }
    }

    /// A change that has not begun.
    pub(crate) fn new_change(&self, cause: &Cause, effect: MemoryEffect) -> MemoryChange {
        MemoryChange {
            id: Uuid::now_v7(),
            at: (self.clock)().timestamp(),
            source: cause.source.clone(),
            key: cause.key.clone(),
            effect,
            state: MemoryState::Begun,
            patch: None,
        }
    }
}

/// Runs file work where waiting for a disk holds nobody up.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, VaultError> + Send + 'static,
) -> Result<T, MemoryError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(MemoryError::from),
        Err(_) => Err(MemoryError::BrokeOff),
    }
}

impl Shared {
    pub(crate) async fn lock(&self) -> Result<VaultLock, MemoryError> {
        let vault = self.vault.clone();
        blocking(move || vault.lock()).await
    }

    pub(crate) async fn read(&self, path: &NotePath) -> Result<Option<Stored>, MemoryError> {
        let (vault, path) = (self.vault.clone(), path.clone());
        blocking(move || vault.read_stored(&path)).await
    }

    /// Gives the lock back with the answer: the work needs it in another thread.
    pub(crate) async fn replace(
        &self,
        lock: VaultLock,
        path: &NotePath,
        before: Option<Stored>,
        after: String,
    ) -> Result<(VaultLock, bool), MemoryError> {
        let (vault, path) = (self.vault.clone(), path.clone());
        blocking(move || {
            let done = vault.replace(&lock, &path, before.as_ref(), &after)?;
            Ok((lock, done))
        })
        .await
    }

    /// Changes one file: locked, read, planned, written into the history, replaced, and planned
    /// again if another program wrote in between. `plan` gets the text, if the file exists.
    ///
    /// `known` is this call's change as an earlier attempt left it in the history.
    pub(crate) async fn change<T>(
        &self,
        path: &NotePath,
        cause: &Cause,
        known: Option<&MemoryChange>,
        mut plan: impl FnMut(Option<&str>) -> Result<Planned<T>, MemoryError>,
    ) -> Result<T, MemoryError> {
        let mut lock = self.lock().await?;
        let mut begun = known.cloned();
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.read(path).await?;
            let (text, effect, answer) = match plan(stored.as_ref().map(Stored::text))? {
                Planned::Nothing(answer) => {
                    self.finish(begun).await;
                    return Ok(answer);
                }
                Planned::Write {
                    text,
                    effect,
                    answer,
                } => (text, *effect, answer),
            };
            let patch = match (&effect, &stored) {
                (MemoryEffect::Fact { .. } | MemoryEffect::Task { .. }, Some(stored)) => {
                    Some(patch::between(stored.text(), &text))
                }
                _ => None,
            };
            let change = match begun.take() {
                Some(change) => MemoryChange {
                    effect,
                    state: MemoryState::Begun,
                    patch,
                    ..change
                },
                None => MemoryChange {
                    patch,
                    ..self.common.new_change(cause, effect)
                },
            };
            self.common.ledger.put(&self.common.scope, &change).await?;
            match self.replace(lock, path, stored, text).await {
                Ok((_, true)) => {
                    self.finish(Some(change)).await;
                    return Ok(answer);
                }
                Ok((held, false)) => {
                    lock = held;
                    begun = Some(change);
                }
                Err(error) => {
                    let change = MemoryChange {
                        state: MemoryState::Void,
                        ..change
                    };
                    let _ = self.common.ledger.put(&self.common.scope, &change).await;
                    return Err(error);
                }
            }
        }
        self.void(begun).await;
        Err(VaultError::Busy {
            name: path.to_string(),
        }
        .into())
    }

    /// The file says that it was done; if the history cannot be told, the file still does.
    pub(crate) async fn finish(&self, change: Option<MemoryChange>) {
        if let Some(change) = change {
            let change = MemoryChange {
                state: MemoryState::Done,
                ..change
            };
            let _ = self.common.ledger.put(&self.common.scope, &change).await;
        }
    }

    pub(crate) async fn void(&self, change: Option<MemoryChange>) {
        if let Some(change) = change {
            let change = MemoryChange {
                state: MemoryState::Void,
                ..change
            };
            let _ = self.common.ledger.put(&self.common.scope, &change).await;
        }
    }
}

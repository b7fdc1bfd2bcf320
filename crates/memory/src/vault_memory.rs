//! The memory of one user in a vault: the parts that facts, notes and tasks share, and the one way
//! in which all of them change a file.
//!
//! A change takes the vault's lock, reads the file, plans a new text, records the change in the
//! ledger as begun, replaces the file, and records the change as done. [`PriorAttempt`] is how a
//! call that is repeated after a crash finds out how far it got.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::{ConversationId, MemoryChange, MemoryEffect, MemoryState};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::{Cause, MemoryContext, MemoryOptions};
use crate::key_fact::FactCache;
use crate::patch;
use crate::vault::path::case_folded;
use crate::vault::{NotePath, Readers, StoredText, Vault, VaultLock};
use crate::{MemoryError, VaultError};

/// Number of times that a change is planned again because another program wrote to the file in
/// between.
pub(crate) const ATTEMPTS_MAX: usize = 8;

/// Number of conversations whose attached notes are remembered.
const ATTACHED_MAX: usize = 64;

/// The parts that facts, notes, tasks and undo have in common in a vault.
#[derive(Clone)]
pub(crate) struct VaultMemory {
    pub(crate) vault: Vault,
    /// The file of the facts.
    pub(crate) facts_path: NotePath,
    pub(crate) options: MemoryOptions,
    pub(crate) context: MemoryContext,
    pub(crate) fact_cache: Arc<FactCache>,
    attached: Arc<Mutex<AttachedNotes>>,
}

/// The paths of the notes that are attached in each of the last conversations, the newest last.
type AttachedNotes = VecDeque<(ConversationId, Vec<String>)>;

/// A new text for a file, or the answer if the file needs no change.
pub(crate) enum PlannedWrite<T> {
    /// Nothing is to be written: this is the answer already.
    Nothing(T),
    /// The text to write, its effect as the ledger records it, and the answer once it is written.
    Write {
        text: String,
        effect: Box<MemoryEffect>,
        answer: T,
    },
}

/// The state of a call that may be a repeat, as the ledger has it.
pub(crate) enum PriorAttempt<T> {
    /// The call was carried out and had this answer: a repeat has no second effect.
    Answered(T),
    /// The call is to be carried out. The change is that of an attempt that did not record its end;
    /// the file says whether it was carried out.
    Open(Option<Box<MemoryChange>>),
}

/// Runs blocking file work on a thread where waiting for a disk stops no other task.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, VaultError> + Send + 'static,
) -> Result<T, MemoryError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(MemoryError::from),
        Err(error) => Err(MemoryError::BrokeOff(Some(error))),
    }
}

impl MemoryContext {
    /// Returns what the ledger has of the call of this cause. `answer`: the recorded answer of a
    /// change, if it is of the caller's kind.
    pub(crate) async fn prior_attempt<T: DeserializeOwned>(
        &self,
        cause: &Cause,
        answer: fn(&MemoryEffect) -> Option<&Value>,
    ) -> Result<PriorAttempt<T>, MemoryError> {
        let Some(change) = self.prior_change(cause).await? else {
            return Ok(PriorAttempt::Open(None));
        };
        Ok(match (change.state, answer(&change.effect)) {
            (MemoryState::Done | MemoryState::Undone, Some(answer)) => {
                // An answer that a newer version wrote and this one cannot read is given again.
                serde_json::from_value(answer.clone())
                    .map_or(PriorAttempt::Open(None), PriorAttempt::Answered)
            }
            (MemoryState::Begun, Some(_)) => PriorAttempt::Open(Some(Box::new(change))),
            (MemoryState::Void, _) | (_, None) => PriorAttempt::Open(None),
        })
    }
}

impl VaultMemory {
    pub(crate) fn new(
        vault: Vault,
        facts_path: NotePath,
        options: MemoryOptions,
        context: MemoryContext,
    ) -> Self {
        Self {
            vault,
            facts_path,
            options,
            context,
            fact_cache: Arc::default(),
            attached: Arc::default(),
        }
    }

    /// Remembers the notes that are attached in a conversation, in place of those before.
    pub(crate) fn attach(&self, conversation: ConversationId, notes: Vec<String>) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        attached.retain(|(known, _)| *known != conversation);
        if !notes.is_empty() {
            attached.push_back((conversation, notes));
        }
        if attached.len() > ATTACHED_MAX {
            // The conversation whose notes were attached longest ago.
            attached.pop_front();
        }
    }

    /// Returns the paths of the notes that are attached in a conversation.
    pub(crate) fn attached(&self, conversation: ConversationId) -> Vec<String> {
        let attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        let known = attached.iter().find(|(known, _)| *known == conversation);
        known.map(|(_, notes)| notes.clone()).unwrap_or_default()
    }

    /// Refuses the file of the facts, which has a form that a note or a task would break.
    ///
    /// # Errors
    /// [`VaultError::Name`] with this reason.
    pub(crate) fn refuse_facts_file(
        &self,
        path: &NotePath,
        reason: &'static str,
    ) -> Result<(), VaultError> {
        let facts = &self.facts_path;
        let is_same_name = case_folded(path.as_str()) == case_folded(facts.as_str());
        // A symbolic link gives one file a second name.
        let is_same_file = || match (self.vault.locate(path), self.vault.locate(facts)) {
            (Ok(one), Ok(other)) => one.exists && other.exists && one.real == other.real,
            _ => false,
        };
        if is_same_name || is_same_file() {
            return Err(path.refused(reason));
        }
        Ok(())
    }

    pub(crate) async fn lock(&self) -> Result<VaultLock, MemoryError> {
        let vault = self.vault.clone();
        blocking(move || vault.lock()).await
    }

    pub(crate) async fn read(&self, path: &NotePath) -> Result<Option<StoredText>, MemoryError> {
        let (vault, path) = (self.vault.clone(), path.clone());
        blocking(move || vault.read_stored(&path)).await
    }

    /// Replaces a file, as [`Vault::replace`] does.
    pub(crate) async fn replace(
        &self,
        lock: &VaultLock,
        path: &NotePath,
        before: Option<StoredText>,
        after: String,
    ) -> Result<bool, MemoryError> {
        // If this future is dropped, the work goes on on its thread, and still has to hold the lock.
        let (vault, path, lock) = (self.vault.clone(), path.clone(), lock.clone());
        let readers = if path == self.facts_path {
            Readers::Owner
        } else {
            Readers::Usual
        };
        blocking(move || vault.replace(&lock, &path, before.as_ref(), &after, readers)).await
    }

    /// Changes one file: locks the vault, reads the file, plans, records the change, replaces the
    /// file, and plans again if another program wrote in between. `plan` gets the text, if the file
    /// exists. `unfinished`: this call's change as an earlier attempt left it in the ledger.
    ///
    /// The change is recorded before the file is touched: a crash in between leaves a change that
    /// was begun, and the file tells whether it was carried out.
    pub(crate) async fn change<T>(
        &self,
        path: &NotePath,
        cause: &Cause,
        unfinished: Option<&MemoryChange>,
        mut plan: impl FnMut(Option<&str>) -> Result<PlannedWrite<T>, MemoryError>,
    ) -> Result<T, MemoryError> {
        // Held over all attempts: only programs that do not know the lock can change the file
        // meanwhile.
        let lock = self.lock().await?;
        let mut begun = unfinished.cloned();
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.read(path).await?;
            let (text, effect, answer) = match plan(stored.as_ref().map(StoredText::as_str))? {
                PlannedWrite::Nothing(answer) => {
                    self.context.settle(begun, MemoryState::Done).await;
                    return Ok(answer);
                }
                PlannedWrite::Write {
                    text,
                    effect,
                    answer,
                } => (text, *effect, answer),
            };
            // A note is undone by its inserted text, which is in the effect.
            let patch = match (&effect, &stored) {
                (MemoryEffect::Fact { .. } | MemoryEffect::Task { .. }, Some(stored)) => {
                    Some(patch::diff(stored.as_str(), &text))
                }
                _ => None,
            };
            let change = MemoryChange {
                patch,
                ..self.context.begin_change(cause, begun.take(), effect)
            };
            self.context.record(&change).await?;
            match self.replace(&lock, path, stored, text).await {
                Ok(true) => {
                    self.context.settle(Some(change), MemoryState::Done).await;
                    return Ok(answer);
                }
                Ok(false) => begun = Some(change),
                Err(error) => {
                    // Nothing was written, so there is nothing that an undo could take back.
                    self.context.settle(Some(change), MemoryState::Void).await;
                    return Err(error);
                }
            }
        }
        self.context.settle(begun, MemoryState::Void).await;
        Err(busy(path))
    }

    /// Replaces the text of a file by what `work` makes of it, without recording a change: undo
    /// uses it. Returns false if `work` returns `None`. `removes_blank`: a file with nothing left is
    /// removed.
    pub(crate) async fn rewrite(
        &self,
        path: &NotePath,
        removes_blank: bool,
        work: impl Fn(Option<&str>) -> Result<Option<String>, VaultError>,
    ) -> Result<bool, MemoryError> {
        let lock = self.lock().await?;
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.read(path).await?;
            let Some(new) = work(stored.as_ref().map(StoredText::as_str))? else {
                return Ok(false);
            };
            let done = match stored {
                Some(stored) if removes_blank && new.trim().is_empty() => {
                    let (vault, path, lock) = (self.vault.clone(), path.clone(), lock.clone());
                    blocking(move || vault.remove(&lock, &path, &stored)).await?
                }
                stored => self.replace(&lock, path, stored, new).await?,
            };
            if done {
                return Ok(true);
            }
        }
        Err(busy(path))
    }
}

/// Returns the error of a file that another program changed at every attempt.
pub(crate) fn busy(path: &NotePath) -> MemoryError {
    VaultError::Busy {
        name: path.to_string(),
    }
    .into()
}

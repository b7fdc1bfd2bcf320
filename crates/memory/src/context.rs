//! The options, the owner, the clock and the ledger of a memory, and the cause and record of each
//! change.

use std::sync::Arc;

use adjutant_core::port::MemoryLedger;
use adjutant_core::{
    IdempotencyKey, MemoryChange, MemoryEffect, MemoryScope, MemorySource, MemoryState, ToolContext,
};
use jiff::Zoned;
use uuid::Uuid;

use crate::MemoryError;
use crate::daily::{Daily, Locale};

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

/// The owner, the bound, the ledger and the clock, which memories of both backends have.
#[derive(Clone)]
pub(crate) struct MemoryContext {
    pub(crate) scope: MemoryScope,
    pub(crate) max_facts: usize,
    pub(crate) ledger: Arc<dyn MemoryLedger>,
    pub(crate) clock: Clock,
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

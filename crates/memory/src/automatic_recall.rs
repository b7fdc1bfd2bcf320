//! Automatic recall: the part of a memory that a model gets in one turn without asking for it, the
//! important facts in its instruction and the facts that fit a message with that message.

use adjutant_core::recall_block;
use adjutant_core::{Message, RecalledText, Role, is_note};

use crate::key_fact::{ImportantFacts, RecallLimits};
use crate::{Memory, MemoryError};

/// Number of the user's earlier messages that count for what a message is about.
const EARLIER_MESSAGES: usize = 2;

/// The part of a memory that a model gets in one turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnRecall {
    /// Lines that are attached to the message.
    pub recalled: Vec<RecalledText>,
    /// The section of important facts in the instruction.
    pub important: ImportantFacts,
}

impl Memory {
    /// Returns the lines that are attached to a message: the facts that fit it and the messages
    /// before it best, and those that stand in `history` and were withdrawn since. A fact that
    /// stands in `history` as it is now is not attached again. Tokens are counted by `count`.
    ///
    /// # Errors
    /// [`MemoryError::Vault`] or [`MemoryError::Store`] if the facts cannot be read.
    pub async fn recall_for_message(
        &self,
        message: &str,
        history: &[Message],
        limits: RecallLimits,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Result<Vec<RecalledText>, MemoryError> {
        let recall = self.for_turn(message, history, limits, count).await?;
        Ok(recall.recalled)
    }

    /// Returns the lines for a message, as [`recall_for_message`](Self::recall_for_message) does,
    /// with the important facts of the instruction. The facts are read once for both.
    ///
    /// # Errors
    /// As [`Memory::recall_for_message`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use adjutant_core::UserId;
    /// use adjutant_core::turn::estimate_tokens;
    /// use adjutant_memory::{Cause, RecallLimits};
    /// # use adjutant_memory::{InMemoryLedger, Memory, MemoryOptions, Vault};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let (vault, options) = (Vault::open(folder.path())?, MemoryOptions::default());
    /// # let (ledger, clock) = (Arc::new(InMemoryLedger::new()), Arc::new(jiff::Zoned::now));
    /// # let memory = Memory::new(vault, UserId::local(), options, ledger, clock)?;
    /// memory.facts().add("Josh is allergic to walnuts", true, &Cause::person()).await?;
    /// memory.facts().add("Josh sails on Sundays", false, &Cause::person()).await?;
    /// let turn = memory
    ///     .for_turn("Shall we go sailing?", &[], RecallLimits::default(), &estimate_tokens)
    ///     .await?;
    /// assert!(turn.important.text.contains("walnuts"));
    /// assert!(turn.recalled[0].text.contains("sails on Sundays"));
    /// # Ok(()) }
    /// ```
    pub async fn for_turn(
        &self,
        message: &str,
        history: &[Message],
        limits: RecallLimits,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Result<TurnRecall, MemoryError> {
        let earlier = history
            .iter()
            .rev()
            .filter(|message| message.role() == Role::User && !is_note(message));
        let earlier: Vec<String> = earlier.take(EARLIER_MESSAGES).map(Message::text).collect();
        // Facts that were attached to those messages would find themselves again.
        let earlier: Vec<&str> = earlier
            .iter()
            .map(|text| recall_block::strip(text))
            .collect();
        let facts = self.facts();
        // No fact can have been withdrawn since it was attached to an empty history.
        let snapshot = facts.snapshot(!history.is_empty()).await?;
        let relevant = facts
            .relevant_in(&snapshot.facts, message, &earlier, limits, count)
            .await?;
        let relevant = relevant.into_iter().map(|fact| RecalledText {
            id: Some(fact.fact.id.to_string()),
            text: fact.line,
        });
        let withdrawn = snapshot
            .withdrawn_in(history)
            .into_iter()
            .map(|text| RecalledText { id: None, text });
        let recalled = withdrawn
            .chain(relevant)
            .filter(|line| !recall_block::contains(history, &line.text))
            .collect();
        Ok(TurnRecall {
            recalled,
            important: facts.important_in(&snapshot.facts, count),
        })
    }
}

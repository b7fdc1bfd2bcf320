//! What of the memory a model is told: the important facts in its instruction, what fits a message
//! with that message.

use adjutant_core::told::{stands_in, words_alone};
use adjutant_core::{Message, Role, Told};

use crate::key_fact::{ImportantFacts, ToldLimits};
use crate::{Memory, MemoryError};

/// Messages of the person before this one that say what it is about.
const BEFORE: usize = 2;

/// The parts of a memory that a model is told in one turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnFacts {
    /// Told with the message.
    pub told: Vec<Told>,
    /// Told in the instruction.
    pub important: ImportantFacts,
}

impl Memory {
    /// Returns what is told with a message: the facts that fit it and what was said before it best,
    /// and which facts that still stand in `history` were withdrawn since. A fact that still stands
    /// there is not told again. Tokens are counted by `count`.
    ///
    /// # Errors
    /// [`MemoryError::Vault`] or [`MemoryError::Store`] if the facts cannot be read.
    pub async fn told(
        &self,
        message: &str,
        history: &[Message],
        limits: ToldLimits,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Result<Vec<Told>, MemoryError> {
        Ok(self.for_turn(message, history, limits, count).await?.told)
    }

    /// Returns the same with the important facts of the instruction; the facts are read once for
    /// both.
    ///
    /// # Errors
    /// As [`Memory::told`].
    pub async fn for_turn(
        &self,
        message: &str,
        history: &[Message],
        limits: ToldLimits,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Result<TurnFacts, MemoryError> {
        let said = history
            .iter()
            .rev()
            .filter(|message| message.role() == Role::User);
        let said: Vec<String> = said.take(BEFORE).map(Message::text).collect();
        let before: Vec<&str> = said.iter().map(|text| words_alone(text)).collect();
        let facts = self.facts();
        let read = facts.snapshot(!history.is_empty()).await?;
        let fitting = facts.fitting_of(&read.facts, message, &before, limits, count);
        let fitting = fitting.into_iter().map(|told| Told {
            id: Some(told.fact.id.to_string()),
            text: told.line,
        });
        let withdrawn = read
            .withdrawn_in(history)
            .into_iter()
            .map(|text| Told { id: None, text });
        let told = withdrawn
            .chain(fitting)
            .filter(|told| !stands_in(history, &told.text))
            .collect();
        Ok(TurnFacts {
            told,
            important: facts.important_of(&read.facts, count),
        })
    }
}

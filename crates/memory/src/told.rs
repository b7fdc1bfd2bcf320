//! What of the memory a model is told: the important facts in its instruction, what fits a message with that message.

use adjutant_core::told::{stands_in, words_alone};
use adjutant_core::{Message, Role, Told};

use crate::key_fact::ToldLimits;
use crate::{Memory, MemoryError};

/// Messages of the person before this one that say what it is about.
const BEFORE: usize = 2;

impl Memory {
    /// Returns what is told with a message: the facts that fit it and what was said before it best, and which facts that still stand in
    /// `history` were withdrawn since. A fact that still stands there is not told again. Tokens are counted by `count`.
    ///
    /// # Errors
    /// [`MemoryError::Vault`] if the facts cannot be read.
    pub async fn told(
        &self,
        message: &str,
        history: &[Message],
        limits: ToldLimits,
        count: &(dyn Fn(&str) -> u32 + Sync),
    ) -> Result<Vec<Told>, MemoryError> {
        let said = history.iter().rev().filter(|message| message.role() == Role::User);
        let said: Vec<String> = said.take(BEFORE).map(Message::text).collect();
        let before: Vec<&str> = said.iter().map(|text| words_alone(text)).collect();
        let facts = self.facts();
        let fitting = facts.fitting(message, &before, limits, count).await?;
        let fitting =
            fitting.into_iter().map(|told| Told { id: Some(told.fact.id.to_string()), text: told.line });
        let withdrawn = facts.withdrawn(history).await?.into_iter().map(|text| Told { id: None, text });
        Ok(withdrawn.chain(fitting).filter(|told| !stands_in(history, &told.text)).collect())
    }
}

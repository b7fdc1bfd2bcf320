//! Notes of conversations in the vault, if `vault.log_conversations` is set.

use adjutant_core::{ConversationKey, Role, transcript};
use adjutant_memory::ConversationLog;

use super::UserMemory;
use crate::command::sessions;
use crate::error::CliError;
use crate::store::Store;
use crate::terminal::screen::Screen;

/// The assistant's name in these notes.
const ASSISTANT: &str = "Diana";

impl UserMemory {
    /// Writes the messages since the last call. A failure is only printed, because they are in the
    /// database.
    pub(crate) async fn log(&self, store: &dyn Store, key: &ConversationKey, screen: &Screen) {
        if let Err(error) = self.try_log(store, key).await {
            screen.note(&format!(
                "the conversation is not in the vault: {}",
                error.message
            ));
        }
    }

    async fn try_log(&self, store: &dyn Store, key: &ConversationKey) -> Result<(), CliError> {
        let (Some(memory), Some(person)) = (self.memory(), self.logs_as()) else {
            return Ok(());
        };
        // All messages: the library finds out which of them the note lacks.
        let known = store.load(key).await?;
        let (Some(first), Some(summary)) = (known.events.first(), store.summary(key).await?) else {
            return Ok(());
        };
        let mut messages = transcript(&known.events);
        // Attachments and instructions are no part of what the user and the assistant wrote.
        messages.retain(|message| message.role != Role::System);
        let log = ConversationLog {
            id: key.conversation,
            title: sessions::title(&summary),
            started: first.at,
            person: person.to_owned(),
            assistant: ASSISTANT.to_owned(),
            messages,
        };
        memory.log_conversation(log).await?;
        Ok(())
    }
}

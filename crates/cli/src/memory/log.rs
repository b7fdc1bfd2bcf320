//! A conversation as a note of its own in the vault, where `vault.log_conversations` says so.

use adjutant_core::{ConversationKey, Role, transcript};
use adjutant_memory::ConversationLog;

use super::Desk;
use crate::error::CliError;
use crate::screen::Screen;
use crate::sessions;
use crate::store::Store;

/// What the assistant is called there.
const ASSISTANT: &str = "Diana";

impl Desk {
    /// Writes what was said since the last time. It is in the database anyway, so a failure here is
    /// worth a line and no more.
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
        let known = store.load(key).await?;
        let (Some(first), Some(summary)) = (known.events.first(), store.summary(key).await?) else {
            return Ok(());
        };
        let mut messages = transcript(&known.events);
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

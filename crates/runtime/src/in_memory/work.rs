//! Taking work.

use adjutant_core::ConversationKey;
use adjutant_core::port::{Due, Take, Taken, WorkPlace};

use super::{Conversation, State, is_of, is_over};

impl State {
    /// Claims conversations with something to do.
    pub(super) fn take(&mut self, take: Take<'_>) -> Vec<Taken> {
        let mut due: Vec<(WorkPlace, &ConversationKey, &mut Conversation)> = self
            .conversations
            .iter_mut()
            .filter(|(key, conversation)| {
                is_of(key, take.agent, take.user)
                    && !conversation.is_claimed()
                    && conversation.is_due(take.due)
            })
            .map(|(key, conversation)| (conversation.place(), key, conversation))
            .filter(|(place, ..)| take.after.is_none_or(|after| *place > after))
            .collect();
        due.sort_unstable_by_key(|(place, ..)| *place);
        let claimed = due.into_iter().take(take.limit).map(|(place, key, conversation)| {
            let claim = conversation.take(take.worker, take.lease);
            Taken { key: key.clone(), claim, place }
        });
        claimed.collect()
    }
}

impl Conversation {
    fn is_due(&self, due: Due) -> bool {
        match due {
            Due::Unsettled => !self.is_settled(),
            Due::Expired(at) => is_over(&self.status, at),
        }
    }

    fn place(&self) -> WorkPlace {
        WorkPlace { since: self.updated_at, number: self.touched.cast_signed() }
    }
}

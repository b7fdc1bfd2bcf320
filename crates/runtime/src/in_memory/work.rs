//! Taking work.

use adjutant_core::ConversationKey;
use adjutant_core::port::{Beat, Due, Running, Take, Taken, WorkPlace};
use tokio::time::Instant;

use super::conversation::Conversation;
use super::state::{State, is_of};

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
        let claimed = due
            .into_iter()
            .take(take.limit)
            .map(|(place, key, conversation)| {
                let claim = conversation.take(take.worker.id, Some(take.worker.epoch), take.lease);
                Taken {
                    key: key.clone(),
                    claim,
                    place,
                }
            });
        claimed.collect()
    }
}

impl State {
    /// Extends all claims of a worker's epoch, and returns those with something to do. `None`: the
    /// epoch is over.
    pub(super) fn beat(
        &mut self,
        Beat {
            agent,
            worker,
            lease,
            is_first,
        }: Beat<'_>,
    ) -> Option<Vec<Running>> {
        let now = Instant::now();
        let until = now.checked_add(lease);
        self.workers
            .retain(|_, until| until.is_none_or(|until| now < until));
        let name = (worker.id.to_owned(), worker.epoch);
        if !is_first && !self.workers.contains_key(&name) {
            return None;
        }
        self.workers.insert(name, until);
        let mut claimed = Vec::new();
        for (key, conversation) in &mut self.conversations {
            let (is_settled, has_inputs) =
                (conversation.is_settled(), conversation.has_work_in_inbox());
            let Some(claim) = conversation
                .claim
                .as_mut()
                .filter(|claim| claim.is_of(worker))
            else {
                continue;
            };
            claim.until = until;
            if key.agent == *agent && !is_settled {
                claimed.push(Running {
                    key: key.clone(),
                    has_inputs,
                });
            }
        }
        Some(claimed)
    }
}

impl Conversation {
    fn is_due(&self, due: Due) -> bool {
        match due {
            Due::Unsettled => !self.is_settled(),
            Due::Expired(at) => self.status.has_expired(at),
        }
    }

    fn place(&self) -> WorkPlace {
        WorkPlace {
            since: self.updated_at,
            number: self.touched.cast_signed(),
        }
    }
}

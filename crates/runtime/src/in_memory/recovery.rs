//! Leasing conversations for recovery, and heartbeats.

use adjutant_core::ConversationKey;
use adjutant_core::port::{Beat, Due, Running, Take, Taken, WorkPlace};
use tokio::time::Instant;

use super::conversation::Conversation;
use super::state::{State, is_of};

impl State {
    /// Leases conversations that are due, the longest unchanged first.
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

    /// Extends all leases of a worker's epoch, and returns the conversations with open work.
    /// `None`: the epoch has ended.
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
        // Expired epochs first, so that a worker that was suspended learns that it has lost its
        // leases.
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

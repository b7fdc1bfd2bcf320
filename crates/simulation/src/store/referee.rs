//! An independent record of what the store granted and accepted, kept apart from its rules.

use std::collections::BTreeMap;

use adjutant_core::port::Worker;
use adjutant_core::{ConversationId, ConversationKey, Recorded};

/// The holder of each conversation and its last place, as granted and accepted.
#[derive(Debug, Default)]
pub(crate) struct Referee {
    holders: BTreeMap<ConversationId, (String, i64)>,
    places: BTreeMap<ConversationId, u64>,
    foul: Option<String>,
}

impl Referee {
    pub(super) fn granted(&mut self, key: &ConversationKey, worker: Worker<'_>) {
        self.holders
            .insert(key.conversation, (worker.id.to_owned(), worker.epoch));
    }

    /// Records a released lease.
    pub(super) fn released(&mut self, key: &ConversationKey, worker: Worker<'_>) {
        self.has(key, worker, "gave back the claim");
        self.holders.remove(&key.conversation);
    }

    /// Records a confirmed lease.
    pub(super) fn confirmed(&mut self, key: &ConversationKey, worker: Worker<'_>) {
        self.has(key, worker, "confirmed the claim");
    }

    /// Records an accepted write.
    pub(super) fn wrote(&mut self, key: &ConversationKey, worker: Worker<'_>, events: &[Recorded]) {
        self.has(key, worker, "wrote events");
        self.appended(key, worker, events);
    }

    /// Checks that a worker acted in the epoch in which it has the lease.
    fn has(&mut self, key: &ConversationKey, worker: Worker<'_>, did: &str) {
        let holder = self.holders.get(&key.conversation);
        if holder.is_none_or(|(id, epoch)| *id != worker.id || *epoch != worker.epoch) {
            let foul = match holder {
                Some((id, _)) if *id == worker.id => {
                    format!("{id} {did} in an epoch in which it does not have the conversation")
                }
                Some((id, _)) => format!("{} {did} of a conversation that {id} has", worker.id),
                None => format!("{} {did} of a conversation that nobody has", worker.id),
            };
            self.foul.get_or_insert(foul);
        }
    }

    /// Records the events of a turn that started, among earlier ones.
    pub(super) fn began(&mut self, key: &ConversationKey, worker: Worker<'_>, events: &[Recorded]) {
        let last = self
            .places
            .get(&key.conversation)
            .copied()
            .unwrap_or_default();
        let new = events
            .iter()
            .position(|recorded| recorded.seq > last)
            .unwrap_or(events.len());
        self.appended(key, worker, events.get(new..).unwrap_or_default());
    }

    /// Records appended events.
    fn appended(&mut self, key: &ConversationKey, worker: Worker<'_>, events: &[Recorded]) {
        let last = self.places.entry(key.conversation).or_default();
        for recorded in events {
            if recorded.seq != *last + 1 {
                let foul = format!(
                    "{} wrote place {} behind place {last}",
                    worker.id, recorded.seq
                );
                self.foul.get_or_insert(foul);
            }
            *last = (*last).max(recorded.seq);
        }
    }

    /// Returns the first operation that should not have been accepted.
    pub(crate) fn foul(&self) -> Option<&str> {
        self.foul.as_deref()
    }
}

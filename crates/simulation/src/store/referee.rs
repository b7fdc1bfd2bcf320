//! An independent record of what the store granted and accepted, kept apart from its rules.

use std::collections::BTreeMap;
use std::time::Duration;

use adjutant_core::port::Worker;
use adjutant_core::{ConversationId, ConversationKey, Event, Recorded, Verdict};
use tokio::time::Instant;

use crate::outside::CallName;

/// The holder of each conversation and its last place, as granted and accepted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Referee {
    holders: BTreeMap<ConversationId, Holding>,
    places: BTreeMap<ConversationId, u64>,
    /// The times until which the heartbeats of epochs keep their leases.
    epochs: BTreeMap<(String, i64), Instant>,
    /// The times at which calls were last started, and last permitted by a person.
    started: BTreeMap<CallName, Instant>,
    permitted: BTreeMap<CallName, Instant>,
    foul: Option<String>,
}

/// A lease as it was granted, whatever the store's rules say of it.
#[derive(Debug, Clone)]
struct Holding {
    worker: String,
    epoch: i64,
    until: Instant,
}

impl Referee {
    /// Records a granted lease. It must not be one that a worker still had.
    pub(super) fn granted(&mut self, key: &ConversationKey, worker: Worker<'_>, lease: Duration) {
        let now = Instant::now();
        let before = self.holders.get(&key.conversation);
        if let Some(before) = before.filter(|before| before.worker != worker.id) {
            let beats = self.epochs.get(&(before.worker.clone(), before.epoch));
            if before.until.max(beats.copied().unwrap_or(now)) > now {
                let foul = format!("{} took what {} still had", worker.id, before.worker);
                self.foul.get_or_insert(foul);
            }
        }
        let holding = Holding {
            worker: worker.id.to_owned(),
            epoch: worker.epoch,
            until: now + lease,
        };
        self.holders.insert(key.conversation, holding);
    }

    /// Records an accepted heartbeat.
    pub(super) fn beat(&mut self, worker: Worker<'_>, lease: Duration) {
        let epoch = (worker.id.to_owned(), worker.epoch);
        self.epochs.insert(epoch, Instant::now() + lease);
    }

    /// Records that the leases of a worker were ended.
    pub(super) fn ended(&mut self, worker: &str) {
        self.epochs.retain(|(of, _), _| of != worker);
        let now = Instant::now();
        let held = self.holders.values_mut();
        held.filter(|held| held.worker == worker)
            .for_each(|held| held.until = now);
    }

    /// Records that the lease of a conversation was ended.
    pub(super) fn ended_one(&mut self, key: &ConversationKey) {
        self.holders.remove(&key.conversation);
    }

    /// Returns the record after the store has lost what came after an earlier one. What was seen
    /// stays seen.
    pub(super) fn back_to(&mut self, earlier: Self) {
        let started = std::mem::take(&mut self.started);
        let permitted = std::mem::take(&mut self.permitted);
        let foul = self.foul.take();
        *self = Self {
            started,
            permitted,
            foul,
            ..earlier
        };
    }

    /// Records a foul unless a call that begins now may begin: after commits of its process were
    /// lost, only a person may have such a call started.
    pub(crate) fn begins(&mut self, call: &CallName, lost_at: Instant) {
        let is_after =
            |times: &BTreeMap<CallName, Instant>| times.get(call).is_some_and(|at| *at >= lost_at);
        if is_after(&self.started) && !is_after(&self.permitted) {
            let foul = format!("{} was started unasked, and commits were lost", call.2);
            self.foul.get_or_insert(foul);
        }
    }

    /// Records a released lease.
    pub(super) fn released(&mut self, key: &ConversationKey, worker: Worker<'_>) {
        self.has(key, worker, "gave back the claim");
        self.holders.remove(&key.conversation);
    }

    /// Records a confirmed lease.
    pub(super) fn confirmed(&mut self, key: &ConversationKey, worker: Worker<'_>, lease: Duration) {
        self.has(key, worker, "confirmed the claim");
        if let Some(holding) = self.holders.get_mut(&key.conversation) {
            holding.until = Instant::now() + lease;
        }
    }

    /// Records an accepted write.
    pub(super) fn wrote(&mut self, key: &ConversationKey, worker: Worker<'_>, events: &[Recorded]) {
        self.has(key, worker, "wrote events");
        self.appended(key, worker, events);
    }

    /// Checks that a worker acted in the epoch in which it has the lease.
    fn has(&mut self, key: &ConversationKey, worker: Worker<'_>, did: &str) {
        let holder = self.holders.get(&key.conversation);
        if holder.is_none_or(|held| held.worker != worker.id || held.epoch != worker.epoch) {
            let foul = match holder {
                Some(held) if held.worker == worker.id => {
                    let id = &held.worker;
                    format!("{id} {did} in an epoch in which it does not have the conversation")
                }
                Some(held) => {
                    let id = &held.worker;
                    format!("{} {did} of a conversation that {id} has", worker.id)
                }
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
        let now = Instant::now();
        for Recorded { event, .. } in events {
            let (times, turn, call) = match &**event {
                Event::CallStarted { turn, call, .. } => (&mut self.started, turn, call),
                Event::CallAnswered {
                    turn,
                    call,
                    verdict: Some(Verdict::Approved),
                    ..
                }
                | Event::DoubtResolved {
                    turn,
                    call,
                    verdict: Verdict::Retry,
                    ..
                } => (&mut self.permitted, turn, call),
                _ => continue,
            };
            times.insert((key.conversation, *turn, call.clone()), now);
        }
    }

    /// Returns the first operation that should not have been accepted.
    pub(crate) fn foul(&self) -> Option<&str> {
        self.foul.as_deref()
    }
}

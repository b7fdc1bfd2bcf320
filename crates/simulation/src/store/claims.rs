//! Leases of conversations, by the rules of the SQL stores.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use adjutant_core::port::{self, Holder, StoreError, Worker};
use adjutant_core::{ConversationId, ConversationKey};
use tokio::time::Instant;

use crate::plan::Plant;

/// The leases, and the live workers.
#[derive(Debug, Clone)]
pub(crate) struct Claims {
    plant: Option<Plant>,
    /// Milliseconds by which the clock of the process has stepped that asks.
    step_of_caller: i64,
    claims: BTreeMap<ConversationId, Claim>,
    /// The time until which the epochs of workers live.
    workers: BTreeMap<(String, i64), Instant>,
    /// Workers whose connection has ended, and whose leases have not been ended yet.
    gone: BTreeSet<String>,
}

#[derive(Debug, Clone)]
struct Claim {
    worker: String,
    epoch: i64,
    /// The end of the lease as it was granted; heartbeats extend it.
    until: Instant,
}

impl Claims {
    pub(super) fn new(plant: Option<Plant>) -> Self {
        Self {
            plant,
            step_of_caller: 0,
            claims: BTreeMap::new(),
            workers: BTreeMap::new(),
            gone: BTreeSet::new(),
        }
    }

    /// Returns the bug that the store has.
    pub(super) fn plant(&self) -> Option<Plant> {
        self.plant
    }

    /// Sets the milliseconds by which the clock of the process has stepped that asks next.
    pub(crate) fn set_clock_of_caller(&mut self, ms: i64) {
        self.step_of_caller = ms;
    }

    /// Returns the time by which leases are judged: the store's.
    fn now(&self) -> Instant {
        let (now, step) = (Instant::now(), self.step_of_caller);
        let by = Duration::from_millis(step.unsigned_abs());
        let wrong = match step < 0 {
            true => now.checked_sub(by),
            false => now.checked_add(by),
        };
        wrong
            .filter(|_| self.plant == Some(Plant::Clock))
            .unwrap_or(now)
    }

    /// Returns an error unless the worker has leased the conversation in its epoch, and no other
    /// worker has since.
    pub(super) fn check(
        &self,
        key: &ConversationKey,
        worker: Worker<'_>,
    ) -> Result<(), StoreError> {
        let is_own = |claim: &Claim| {
            claim.worker == worker.id
                && (claim.epoch == worker.epoch || self.plant == Some(Plant::Epoch))
        };
        match self.claims.get(&key.conversation).is_some_and(is_own) {
            true => Ok(()),
            false => Err(StoreError::Conflict),
        }
    }

    fn lives(&self, claim: &Claim) -> bool {
        let seen_until = self.workers.get(&(claim.worker.clone(), claim.epoch));
        let until = seen_until.map_or(claim.until, |seen| claim.until.max(*seen));
        self.now() < until
    }

    /// Returns true if no live worker has the lease.
    pub(super) fn is_free(&self, key: &ConversationKey) -> bool {
        !self
            .claims
            .get(&key.conversation)
            .is_some_and(|claim| self.lives(claim))
    }

    /// Returns true if a worker may acquire the lease: no other live worker has it.
    pub(super) fn may_have(&self, key: &ConversationKey, worker: &str) -> bool {
        let is_other_worker = |claim: &Claim| claim.worker != worker && self.lives(claim);
        !self
            .claims
            .get(&key.conversation)
            .is_some_and(is_other_worker)
    }

    pub(super) fn epoch(&self, key: &ConversationKey) -> Option<i64> {
        self.claims.get(&key.conversation).map(|claim| claim.epoch)
    }

    /// Grants the lease, unless another live worker has it. Without an epoch, the worker's own
    /// lease keeps its epoch.
    pub(super) fn claim(
        &mut self,
        key: &ConversationKey,
        worker: &str,
        epoch: Option<i64>,
        lease: Duration,
    ) -> port::Claim {
        if !self.may_have(key, worker) {
            return port::Claim::Refused;
        }
        let before = self.claims.get(&key.conversation);
        let is_other_worker = before.is_some_and(|claim| claim.worker != worker);
        let own = before
            .filter(|_| !is_other_worker)
            .map_or(0, |claim| claim.epoch);
        let claim = Claim {
            worker: worker.to_owned(),
            epoch: epoch.unwrap_or(own),
            until: self.now() + lease,
        };
        self.claims.insert(key.conversation, claim);
        if is_other_worker {
            port::Claim::TakenOver
        } else {
            port::Claim::Granted
        }
    }

    /// Extends the lease that a worker acquired in its epoch. Returns `false` if it has none.
    pub(super) fn renew(
        &mut self,
        key: &ConversationKey,
        worker: Worker<'_>,
        lease: Duration,
    ) -> bool {
        let is_own = self.check(key, worker).is_ok();
        let now = self.now();
        if let Some(claim) = self.claims.get_mut(&key.conversation).filter(|_| is_own) {
            claim.until = now + lease;
        }
        is_own
    }

    /// Returns the worker that has the lease, if it listens: all workers do.
    pub(super) fn holder(&self, key: &ConversationKey) -> Option<Holder> {
        let claim = self.claims.get(&key.conversation)?;
        Some(Holder {
            worker: claim.worker.clone(),
            epoch: claim.epoch,
        })
    }

    /// Ends the lease of a worker that does not answer. Returns `false` if it has none.
    pub(super) fn end_claim(&mut self, key: &ConversationKey, worker: Worker<'_>) -> bool {
        let is_own = |claim: &&mut Claim| claim.worker == worker.id && claim.epoch == worker.epoch;
        let now = self.now();
        let Some(claim) = self.claims.get_mut(&key.conversation).filter(is_own) else {
            return false;
        };
        // Another name: the lease of a worker is valid as long as the worker of that name lives.
        (claim.worker, claim.until) = (format!("{} (ended)", claim.worker), now);
        true
    }

    pub(super) fn end(&mut self, key: &ConversationKey) {
        self.claims.remove(&key.conversation);
    }

    /// Records a heartbeat. Returns `false` if the epoch is over.
    pub(super) fn live(&mut self, worker: Worker<'_>, lease: Duration, is_first: bool) -> bool {
        let (now, epoch) = (self.now(), (worker.id.to_owned(), worker.epoch));
        let until = self.workers.get(&epoch).copied();
        if is_first {
            self.workers
                .retain(|known, until| *until > now || *known == epoch);
        }
        let lives = until.map_or(is_first, |until| until > now);
        if lives {
            self.workers.insert(epoch, now + lease);
        }
        lives
    }

    /// Records that the connection of a worker has ended, by which it is known to be alive.
    pub(crate) fn is_gone(&mut self, worker: &str) {
        self.gone.insert(worker.to_owned());
    }

    /// Ends the leases of workers whose connections have ended, and returns these workers.
    pub(super) fn end_those_of_the_gone(&mut self) -> BTreeSet<String> {
        let (now, gone) = (self.now(), std::mem::take(&mut self.gone));
        let dead = self
            .workers
            .iter_mut()
            .filter(|((worker, _), _)| gone.contains(worker));
        dead.for_each(|(_, until)| *until = now);
        let lost = self
            .claims
            .values_mut()
            .filter(|claim| gone.contains(&claim.worker));
        lost.for_each(|claim| claim.until = now);
        gone
    }

    /// Returns the conversations that live workers have leased.
    pub(crate) fn alive(&self) -> impl Iterator<Item = (ConversationId, &str)> {
        let alive = self.claims.iter().filter(|(_, claim)| self.lives(claim));
        alive.map(|(id, claim)| (*id, claim.worker.as_str()))
    }
}

//! The simulated store: its rows are those of the store in memory, its leases follow the rules of
//! the SQL stores.
//!
//! One operation is one transaction: it runs with the whole store locked. The time is the store's
//! clock.

mod claims; // leases
mod referee; // independent record for the checks

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::conversation::Snapshot;
use adjutant_core::port::{
    self, Begin, Begun, BudgetStore as _, Due, Finished, Holder, Journal as _, JournaledChange,
    Known, Loaded, Newer, Restorable, StoreError, Take, Taken, Worker, Writer,
};
use adjutant_core::{
    AgentName, BoxFuture, ConversationId, ConversationKey, Event, Input, Recorded, UserId,
};
use adjutant_runtime::InMemory;
use adjutant_tools::{TaskFilter, TaskStore as _};
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::plan::Plant;
use claims::Claims;
use referee::Referee;

/// The worker name under which rows are changed, for the duration of the operation.
const ROWS: &str = "rows";
/// Longer than any run.
const EVER: Duration = Duration::from_secs(1_000_000);

/// Everything that is stored.
#[derive(Debug)]
pub(crate) struct Store {
    rows: Arc<InMemory>,
    pub(crate) claims: Claims,
    snapshots: BTreeMap<ConversationId, Snapshot>,
    pub(crate) referee: Referee,
}

/// Polls a future of the store in memory, which is always ready.
#[expect(clippy::expect_used, reason = "it has nothing to wait for")]
pub(crate) fn at_once<T>(answer: BoxFuture<'_, T>) -> T {
    answer
        .now_or_never()
        .expect("the store in memory answers at once")
}

impl Store {
    pub(crate) fn new(plant: Option<Plant>, midday: Timestamp) -> Self {
        let began = Instant::now();
        let clock = move || midday + SignedDuration::try_from(began.elapsed()).unwrap_or_default();
        Self {
            rows: Arc::new(InMemory::new().with_clock(clock)),
            claims: Claims::new(plant),
            snapshots: BTreeMap::new(),
            referee: Referee::default(),
        }
    }

    pub(crate) fn rows(&self) -> &Arc<InMemory> {
        &self.rows
    }

    pub(crate) fn submit(
        &mut self,
        key: &ConversationKey,
        input: &Input,
    ) -> Result<(), StoreError> {
        at_once(self.rows.submit(key, input))
    }

    /// Accepts an input, and starts its turn if the conversation is not leased and has no other
    /// work.
    pub(crate) fn submit_with_turn(
        &mut self,
        key: &ConversationKey,
        input: &Input,
        turn: &Event,
    ) -> Result<(), StoreError> {
        if self.claims.holder(key).is_some() {
            return self.submit(key, input);
        }
        let turn = std::slice::from_ref(turn);
        let begin = Begin {
            input: Some(input),
            turn,
            first: None,
            worker: ROWS.into(),
            lease: EVER,
            known: None,
            at: input.at,
        };
        let begun = at_once(self.rows.begin(key, begin))?;
        at_once(self.rows.release(key, ROWS.into()))?;
        if let Begun::Started(newer) = begun {
            self.referee.began(key, ROWS.into(), &newer.events);
        }
        Ok(())
    }

    pub(crate) fn holder(&self, key: &ConversationKey) -> Option<Holder> {
        self.claims.holder(key)
    }

    pub(crate) fn end_claim(&mut self, key: &ConversationKey, worker: Worker<'_>) -> bool {
        self.claims.end_claim(key, worker)
    }

    pub(crate) fn load(&self, key: &ConversationKey) -> Loaded {
        at_once(self.rows.load(key)).unwrap_or_default()
    }

    pub(crate) fn load_newer(
        &self,
        key: &ConversationKey,
        known: Option<Known>,
    ) -> Result<Option<Newer>, StoreError> {
        let newer = at_once(self.rows.load_newer(key, known))?;
        Ok(newer.map(|newer| self.with_snapshot(key, known, newer)))
    }

    pub(crate) fn begin(
        &mut self,
        key: &ConversationKey,
        begin: Begin<'_>,
    ) -> Result<Begun, StoreError> {
        if begin.input.is_none() && self.load_newer(key, None)?.is_none() {
            return Ok(Begun::Nothing);
        }
        let Begin {
            input,
            worker,
            lease,
            known,
            ..
        } = begin;
        if !self.claims.may_have(key, worker.id) {
            if let Some(input) = input {
                at_once(self.rows.submit(key, input))?;
            }
            return Ok(Begun::Elsewhere);
        }
        let begun = at_once(self.rows.begin(
            key,
            Begin {
                worker: ROWS.into(),
                lease: EVER,
                ..begin
            },
        ))?;
        at_once(self.rows.release(key, ROWS.into()))?;
        let claim = self.claims.claim(key, worker.id, Some(worker.epoch), lease);
        self.referee.granted(key, worker);
        Ok(match begun {
            Begun::Started(newer) => {
                self.referee.began(key, worker, &newer.events);
                Begun::Started(self.with_snapshot(key, known, newer))
            }
            Begun::Claimed { newer, .. } => Begun::Claimed {
                claim,
                newer: self.with_snapshot(key, known, newer),
            },
            other => other,
        })
    }

    /// Appends events for a caller without a lease.
    pub(crate) fn append(
        &mut self,
        key: &ConversationKey,
        events: &[Recorded],
    ) -> Result<(), StoreError> {
        at_once(self.rows.append(key, events))
    }

    pub(crate) fn append_held(
        &mut self,
        key: &ConversationKey,
        writer: Writer<'_>,
        events: &[Recorded],
    ) -> Result<(), StoreError> {
        self.claims.check(key, writer.worker)?;
        at_once(self.rows.append(key, events))?;
        self.referee.wrote(key, writer.worker, events);
        at_once(self.rows.book(writer.spent))
    }

    pub(crate) fn append_with_change(
        &mut self,
        key: &ConversationKey,
        writer: Writer<'_>,
        events: &[Recorded],
        change: JournaledChange,
    ) -> Result<Recorded, StoreError> {
        self.claims.check(key, writer.worker)?;
        let rows = Writer {
            worker: ROWS.into(),
            ..writer
        };
        at_once(self.rows.claim(key, ROWS, EVER))?;
        let ended = at_once(self.rows.append_with_change(key, rows, events, change));
        at_once(self.rows.release(key, ROWS.into()))?;
        let ended = ended?;
        let events: Vec<Recorded> = events.iter().chain([&ended]).cloned().collect();
        self.referee.wrote(key, writer.worker, &events);
        Ok(ended)
    }

    pub(crate) fn finish(
        &mut self,
        key: &ConversationKey,
        writer: Writer<'_>,
        events: &[Recorded],
        snapshot: Option<&Snapshot>,
    ) -> Result<Finished, StoreError> {
        self.claims.check(key, writer.worker)?;
        let rows = Writer {
            worker: ROWS.into(),
            ..writer
        };
        at_once(self.rows.claim(key, ROWS, EVER))?;
        let finished = at_once(self.rows.finish(key, rows, events, None));
        at_once(self.rows.release(key, ROWS.into()))?;
        let finished = finished?;
        self.referee.wrote(key, writer.worker, events);
        if let Some(snapshot) = snapshot.filter(|_| !events.is_empty()) {
            self.snapshots.insert(key.conversation, snapshot.clone());
        }
        if finished == Finished::Released {
            self.claims.end(key);
            self.referee.released(key, writer.worker);
        }
        Ok(finished)
    }

    pub(crate) fn claim(
        &mut self,
        key: &ConversationKey,
        worker: &str,
        ttl: Duration,
    ) -> Result<port::Claim, StoreError> {
        if self.load_newer(key, None)?.is_none() {
            return Ok(port::Claim::Refused);
        }
        let claim = self.claims.claim(key, worker, None, ttl);
        if let Some(epoch) = self.claims.epoch(key).filter(|_| claim.is_held()) {
            self.referee
                .granted(key, port::Worker { id: worker, epoch });
        }
        Ok(claim)
    }

    pub(crate) fn renew(
        &mut self,
        key: &ConversationKey,
        worker: port::Worker<'_>,
        ttl: Duration,
    ) -> bool {
        let is_own = self.claims.renew(key, worker, ttl);
        if is_own {
            self.referee.confirmed(key, worker);
        }
        is_own
    }

    pub(crate) fn release(&mut self, key: &ConversationKey, worker: port::Worker<'_>) {
        if self.claims.check(key, worker).is_ok() {
            self.claims.end(key);
            self.referee.released(key, worker);
        }
    }

    pub(crate) fn take(&mut self, take: Take<'_>) -> Result<Vec<Taken>, StoreError> {
        let rows = Take {
            worker: ROWS.into(),
            lease: EVER,
            limit: usize::MAX,
            ..take
        };
        let due = at_once(self.rows.take(rows))?;
        for Taken { key, .. } in &due {
            at_once(self.rows.release(key, ROWS.into()))?;
        }
        let mut free: Vec<Taken> = due
            .iter()
            .filter(|due| self.claims.is_free(&due.key))
            .cloned()
            .collect();
        // Conversations without a lease come first.
        if free.is_empty() && self.claims.end_those_of_the_gone() {
            free = due
                .into_iter()
                .filter(|due| self.claims.is_free(&due.key))
                .collect();
        }
        free.truncate(take.limit);
        for taken in &mut free {
            taken.claim = self.claims.claim(
                &taken.key,
                take.worker.id,
                Some(take.worker.epoch),
                take.lease,
            );
            self.referee.granted(&taken.key, take.worker);
        }
        Ok(free)
    }

    /// Returns the conversations with open work that no live worker has leased.
    pub(crate) fn due(
        &mut self,
        agent: &AgentName,
        user: Option<&UserId>,
        due: Due,
    ) -> Result<Vec<ConversationKey>, StoreError> {
        self.claims.end_those_of_the_gone();
        let mut keys = at_once(match due {
            Due::Unsettled => self.rows.unsettled(agent, user),
            Due::Expired(at) => self.rows.expired(agent, user, at),
        })?;
        keys.retain(|key| self.claims.is_free(key));
        Ok(keys)
    }

    pub(crate) fn parked(
        &self,
        agent: &AgentName,
        user: Option<&UserId>,
    ) -> Result<Vec<(ConversationKey, Recorded)>, StoreError> {
        let mut parked = at_once(self.rows.parked(agent, user))?;
        parked.sort_by_key(|(key, recorded)| (recorded.at, key.conversation));
        Ok(parked)
    }

    pub(crate) fn beat(
        &mut self,
        beat: port::Beat<'_>,
    ) -> Result<Option<Vec<port::Running>>, StoreError> {
        if !self.claims.live(beat.worker, beat.lease, beat.is_first) {
            return Ok(None);
        }
        let open = at_once(self.rows.unsettled(beat.agent, None))?;
        let held = open
            .into_iter()
            .filter(|key| self.claims.check(key, beat.worker).is_ok());
        let running = held.map(|key| port::Running {
            has_inputs: self.has_inputs(&key),
            key,
        });
        Ok(Some(running.collect()))
    }

    fn has_inputs(&self, key: &ConversationKey) -> bool {
        let loaded = self.load(key);
        let queued = |input: &Input| {
            let is_it = |recorded: &Recorded| match &*recorded.event {
                Event::InputQueued { input: queued, .. } => *queued == input.id,
                _ => false,
            };
            loaded.events.iter().any(is_it)
        };
        loaded.inbox.iter().any(|input| !queued(input))
    }

    /// Replaces the events that a snapshot covers by the snapshot, for a caller that knows nothing
    /// of the conversation.
    fn with_snapshot(&self, key: &ConversationKey, known: Option<Known>, newer: Newer) -> Newer {
        let Some(snapshot) = self
            .snapshots
            .get(&key.conversation)
            .filter(|_| known.is_none())
        else {
            return newer;
        };
        let (before, events): (Vec<Recorded>, Vec<Recorded>) = newer
            .events
            .into_iter()
            .partition(|recorded| recorded.seq <= snapshot.seq);
        let is_said = |recorded: &Recorded| {
            recorded.seq >= snapshot.messages_from
                && matches!(
                    *recorded.event,
                    Event::HistorySet { .. } | Event::TurnFinished { .. }
                )
        };
        let said = before.into_iter().filter(is_said).collect();
        let restorable = Some(Restorable {
            snapshot: snapshot.clone(),
            said,
        });
        Newer {
            restorable,
            after: snapshot.seq,
            events,
            ..newer
        }
    }

    /// Returns the booked spending of all users on a day.
    pub(crate) fn spent(&self, user: Option<&UserId>, at: Timestamp) -> adjutant_core::Spending {
        let day = at.to_zoned(jiff::tz::TimeZone::UTC).date();
        at_once(self.rows.spent(user, day)).unwrap_or_default()
    }

    /// Returns the number of tasks that a user has.
    pub(crate) fn tasks(&self, user: &UserId) -> usize {
        at_once(self.rows.list(user, TaskFilter::All)).map_or(0, |tasks| tasks.len())
    }
}

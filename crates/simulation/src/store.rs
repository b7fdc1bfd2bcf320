//! The simulated store: its rows are those of the store in memory, its leases follow the rules of
//! the SQL stores.
//!
//! One operation is one transaction: it runs with the whole store locked. The time is the store's
//! clock.

mod changes; // changes in their order, which a standby repeats
mod claims; // leases
mod referee; // independent record for the checks
mod tasks; // the tasks, as tools see them

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::conversation::{Snapshot, Status};
use adjutant_core::limits::ASK_AFTER_LOST_COMMITS;
use adjutant_core::port::{
    self, Begin, Begun, BudgetStore as _, Due, Finished, Holder, Journal as _, JournaledChange,
    Known, Loaded, Newer, Restorable, StoreError, Take, Taken, Worker, Writer,
};
use adjutant_core::{
    AgentName, BoxFuture, ConversationId, ConversationKey, Event, Input, Recorded, StoreId, UserId,
};
use adjutant_runtime::InMemory;
use adjutant_tools::{TaskFilter, TaskStore as _};
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::outside::CallName;
use crate::plan::Plant;
use changes::Changes;
use claims::Claims;
use referee::Referee;
pub(crate) use tasks::Tasks;

/// The worker name under which rows are changed, for the duration of the operation.
const ROWS: &str = "rows";
/// Longer than any run.
const EVER: Duration = Duration::from_secs(1_000_000);

/// Everything that is stored.
#[derive(Debug)]
pub(crate) struct Store {
    rows: Arc<InMemory>,
    /// The first rows, whose id is that of the store.
    first: Arc<InMemory>,
    clock: RowClock,
    changes: Changes,
    standby: Option<Standby>,
    pub(crate) fail_overs: u64,
    /// Workers that have lost commits, and when.
    lost_at: BTreeMap<String, Instant>,
    pub(crate) claims: Claims,
    snapshots: BTreeMap<ConversationId, Snapshot>,
    pub(crate) referee: Referee,
}

/// The clock of the rows.
#[derive(Debug, Clone, Copy)]
struct RowClock {
    midday: Timestamp,
    began: Instant,
}

impl RowClock {
    fn rows(self) -> Arc<InMemory> {
        let clock = move || {
            self.midday + SignedDuration::try_from(self.began.elapsed()).unwrap_or_default()
        };
        Arc::new(InMemory::new().with_clock(clock))
    }
}

/// A standby that was cut off: what the store had at that time.
#[derive(Debug)]
struct Standby {
    changes: usize,
    claims: Claims,
    snapshots: BTreeMap<ConversationId, Snapshot>,
    referee: Referee,
    /// Workers that have committed something since.
    writers: BTreeSet<String>,
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
        let clock = RowClock {
            midday,
            began: Instant::now(),
        };
        let rows = clock.rows();
        Self {
            first: rows.clone(),
            rows,
            clock,
            changes: Changes::default(),
            standby: None,
            fail_overs: 0,
            lost_at: BTreeMap::new(),
            claims: Claims::new(plant),
            snapshots: BTreeMap::new(),
            referee: Referee::default(),
        }
    }

    pub(crate) fn rows(&self) -> &Arc<InMemory> {
        &self.rows
    }

    /// Returns the id of the store, which stays the same after a fail-over.
    pub(crate) fn id(&self) -> StoreId {
        StoreId::of(&*self.first)
    }

    /// Carries out a change, which a standby repeats.
    fn change<T>(
        &mut self,
        change: impl Fn(&InMemory) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let done = change(&self.rows)?;
        // It succeeds as it did the first time.
        self.changes.push(move |rows| drop(change(rows)));
        Ok(done)
    }

    /// Cuts the standby off: it receives nothing more.
    pub(crate) fn cut_off_standby(&mut self) {
        self.standby = Some(Standby {
            changes: self.changes.len(),
            claims: self.claims.clone(),
            snapshots: self.snapshots.clone(),
            referee: self.referee.clone(),
            writers: BTreeSet::new(),
        });
    }

    /// Puts the standby in the place of the store. Returns the workers that have lost commits.
    pub(crate) fn fail_over(&mut self) -> BTreeSet<String> {
        let Some(standby) = self.standby.take() else {
            return BTreeSet::new();
        };
        self.fail_overs += 1;
        self.changes.truncate(standby.changes);
        self.rows = self.clock.rows();
        self.changes.repeat(&self.rows);
        self.claims = standby.claims;
        self.snapshots = standby.snapshots;
        self.referee.back_to(standby.referee);
        let now = Instant::now();
        let losers = standby.writers.iter().cloned();
        self.lost_at.extend(losers.map(|worker| (worker, now)));
        standby.writers
    }

    /// Returns the time since the store lost commits of a worker, as the worker is told.
    pub(crate) fn since_lost_commits(&self, worker: &str) -> Option<Duration> {
        let lost_at = self.lost_at.get(worker)?;
        (self.claims.plant() != Some(Plant::Loss)).then(|| lost_at.elapsed())
    }

    /// Checks that a worker may begin a call that must not be repeated.
    pub(crate) fn begins(&mut self, worker: &str, call: &CallName) {
        let lost_at = self.lost_at.get(worker);
        if let Some(at) = lost_at.filter(|at| at.elapsed() < ASK_AFTER_LOST_COMMITS) {
            self.referee.begins(call, *at);
        }
    }

    /// Records a commit of a worker.
    fn wrote(&mut self, key: &ConversationKey, worker: Worker<'_>, events: &[Recorded]) {
        self.referee.wrote(key, worker, events);
        self.committed(worker);
    }

    fn committed(&mut self, worker: Worker<'_>) {
        if let Some(standby) = &mut self.standby {
            standby.writers.insert(worker.id.to_owned());
        }
    }

    pub(crate) fn submit(
        &mut self,
        key: &ConversationKey,
        input: &Input,
    ) -> Result<(), StoreError> {
        let (key, input) = (key.clone(), input.clone());
        self.change(move |rows| at_once(rows.submit(&key, &input)))
    }

    /// Carries out [`Journal::begin`] on the rows, and releases them.
    fn begin_rows(&mut self, key: &ConversationKey, begin: Begin<'_>) -> Result<Begun, StoreError> {
        let Begin {
            input,
            turn,
            first,
            known,
            at,
            ..
        } = begin;
        let (key, input) = (key.clone(), input.cloned());
        let (turn, first) = (turn.to_vec(), first.cloned());
        self.change(move |rows| {
            let begin = Begin {
                input: input.as_ref(),
                turn: &turn,
                first: first.as_ref(),
                worker: ROWS.into(),
                lease: EVER,
                known,
                at,
            };
            let begun = at_once(rows.begin(&key, begin))?;
            at_once(rows.release(&key, ROWS.into()))?;
            Ok(begun)
        })
    }

    /// Appends events to the rows.
    fn append_rows(
        &mut self,
        key: &ConversationKey,
        events: &[Recorded],
    ) -> Result<(), StoreError> {
        let (key, events) = (key.clone(), events.to_vec());
        self.change(move |rows| at_once(rows.append(&key, &events)))
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
        let begin = Begin {
            input: Some(input),
            turn: std::slice::from_ref(turn),
            first: None,
            worker: ROWS.into(),
            lease: EVER,
            known: None,
            at: input.at,
        };
        let begun = self.begin_rows(key, begin)?;
        if let Begun::Started(newer) = begun {
            self.referee.began(key, ROWS.into(), &newer.events);
        }
        Ok(())
    }

    pub(crate) fn holder(&self, key: &ConversationKey) -> Option<Holder> {
        self.claims.holder(key)
    }

    pub(crate) fn end_claim(&mut self, key: &ConversationKey, worker: Worker<'_>) -> bool {
        let ended = self.claims.end_claim(key, worker);
        if ended {
            self.referee.ended_one(key);
        }
        ended
    }

    fn end_those_of_the_gone(&mut self) -> bool {
        let gone = self.claims.end_those_of_the_gone();
        gone.iter().for_each(|worker| self.referee.ended(worker));
        !gone.is_empty()
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
                self.submit(key, input)?;
            }
            return Ok(Begun::Elsewhere);
        }
        let begun = self.begin_rows(key, begin)?;
        let claim = self.claims.claim(key, worker.id, Some(worker.epoch), lease);
        self.referee.granted(key, worker, lease);
        Ok(match begun {
            Begun::Started(newer) => {
                self.referee.began(key, worker, &newer.events);
                self.committed(worker);
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
        self.append_rows(key, events)
    }

    pub(crate) fn append_held(
        &mut self,
        key: &ConversationKey,
        writer: Writer<'_>,
        events: &[Recorded],
    ) -> Result<(), StoreError> {
        self.claims.check(key, writer.worker)?;
        self.append_rows(key, events)?;
        self.wrote(key, writer.worker, events);
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
        let (of, before, spent) = (key.clone(), events.to_vec(), writer.spent.to_vec());
        let ended = self.change(move |rows| {
            let writer = Writer {
                worker: ROWS.into(),
                spent: &spent,
            };
            at_once(rows.claim(&of, ROWS, EVER))?;
            let ended = at_once(rows.append_with_change(&of, writer, &before, change.clone()));
            at_once(rows.release(&of, ROWS.into()))?;
            ended
        })?;
        let events: Vec<Recorded> = events.iter().chain([&ended]).cloned().collect();
        self.wrote(key, writer.worker, &events);
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
        let (of, last, spent) = (key.clone(), events.to_vec(), writer.spent.to_vec());
        let finished = self.change(move |rows| {
            let writer = Writer {
                worker: ROWS.into(),
                spent: &spent,
            };
            at_once(rows.claim(&of, ROWS, EVER))?;
            let finished = at_once(rows.finish(&of, writer, &last, None));
            at_once(rows.release(&of, ROWS.into()))?;
            finished
        })?;
        self.wrote(key, writer.worker, events);
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
                .granted(key, port::Worker { id: worker, epoch }, ttl);
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
            self.referee.confirmed(key, worker, ttl);
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
        if free.is_empty() && self.end_those_of_the_gone() {
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
            self.referee.granted(&taken.key, take.worker, take.lease);
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
        self.end_those_of_the_gone();
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
        self.referee.beat(beat.worker, beat.lease);
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
        let status = Status::from_events(&loaded.events);
        loaded
            .inbox
            .iter()
            .any(|input| !status.is_queued(&input.id))
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

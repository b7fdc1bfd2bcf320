//! One conversation: its inputs, its events, and the logs derived from them.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::time::Duration;

use adjutant_core::conversation::Status;
use adjutant_core::port::{
    self, BranchPoint, ConversationSummary, Known, Newer, StoreError, Turns, Worker,
};
use adjutant_core::{
    ConversationId, ConversationKey, DecisionRecord, Event, Input, LogContent, Recorded, StepId,
    ToolInvocationRecord, TurnId, first_words, title,
};
use jiff::Timestamp;
use tokio::time::Instant;

use super::inbox::Inbox;
use super::weight::Weight;

/// The point at which a conversation branches off another of the same user and agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) conversation: ConversationId,
    pub(super) seq: u64,
    /// Orders the branches of a point by their creation.
    pub(super) number: u64,
}

impl Origin {
    pub(super) fn point(self) -> BranchPoint {
        BranchPoint {
            conversation: self.conversation,
            seq: self.seq,
        }
    }
}

/// A conversation with its events, inbox and logs.
#[derive(Debug)]
pub(super) struct Conversation {
    /// Empty until something is said that is more than a greeting.
    pub(super) title: String,
    /// The first words of the first message, which stand for an empty title.
    pub(super) first_words: String,
    /// True if a user gave the title.
    pub(super) named: bool,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) touched: u64,
    pub(super) claim: Option<Claim>,
    pub(super) inbox: Inbox,
    pub(super) events: Vec<Recorded>,
    /// Kind and step of every event that has one, so that no step is recorded twice.
    pub(super) steps: HashSet<(&'static str, StepId)>,
    pub(super) status: Status,
    pub(super) decisions: Vec<DecisionRecord>,
    pub(super) invocations: Vec<ToolInvocationRecord>,
    /// The point at which it branches off another; the events up to there are the other's.
    pub(super) origin: Option<Origin>,
    pub(super) weight: Weight,
}

/// The lease of a worker's epoch.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) worker: String,
    pub(super) epoch: i64,
    /// `None`: the end overflows the clock.
    pub(super) until: Option<Instant>,
}

impl Claim {
    pub(super) fn is_of(&self, worker: Worker<'_>) -> bool {
        self.worker == worker.id && self.epoch == worker.epoch
    }

    pub(super) fn holds(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }
}

impl Conversation {
    pub(super) fn new(at: Timestamp, weight: Weight) -> Self {
        Self {
            title: String::new(),
            first_words: String::new(),
            named: false,
            created_at: at,
            updated_at: at,
            touched: 0,
            claim: None,
            inbox: Inbox::default(),
            events: Vec::new(),
            steps: HashSet::new(),
            status: Status::default(),
            decisions: Vec::new(),
            invocations: Vec::new(),
            origin: None,
            weight,
        }
    }

    pub(super) fn summary(&self, key: &ConversationKey) -> ConversationSummary {
        let last = self
            .events
            .last()
            .filter(|last| last.seq > self.origin_seq());
        ConversationSummary {
            id: key.conversation,
            title: match self.title.as_str() {
                "" => self.first_words.clone(),
                title => title.to_owned(),
            },
            named: self.named,
            created_at: self.created_at,
            updated_at: self.updated_at,
            pending: self.status.is_parked(),
            last_activity: last.map_or(self.updated_at, |last| last.at.max(self.updated_at)),
            turns: self.status.turns,
            ended: self.status.session_ended && last.is_some_and(|last| last.at >= self.updated_at),
            running: self.status.runs(),
            branched_from: self.origin.map(Origin::point),
            versions: None,
        }
    }

    /// Returns true if the worker has the lease in its epoch, expired or not.
    pub(super) fn is_held(&self, worker: Worker<'_>) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.is_of(worker))
    }

    pub(super) fn is_claimed(&self) -> bool {
        self.claim.as_ref().is_some_and(Claim::holds)
    }

    /// Returns true if an input waits that is not queued behind an open turn.
    pub(super) fn has_work_in_inbox(&self) -> bool {
        self.inbox
            .waiting()
            .iter()
            .any(|input| !self.status.is_queued(&input.id))
    }

    pub(super) fn is_settled(&self) -> bool {
        !self.has_work_in_inbox() && !self.status.runs()
    }

    /// Returns true if it has no open work, waits for nobody and is not leased.
    pub(super) fn is_idle(&self) -> bool {
        self.is_settled() && !self.status.is_parked() && !self.is_claimed()
    }

    /// Accepts an input once, if at most `queued_max` messages wait with it.
    pub(super) fn accept(
        &mut self,
        input: &Input,
        touched: u64,
        queued_max: NonZeroU32,
    ) -> Result<(), StoreError> {
        let after = self.last_seq();
        if self.inbox.accept(
            Input {
                after,
                ..input.clone()
            },
            queued_max,
        )? {
            if self.first_words.is_empty() {
                self.first_words = first_words(&input.body).unwrap_or_default();
            }
            if self.title.is_empty() {
                self.title = title(&input.body).unwrap_or_default();
            }
            self.updated_at = self.updated_at.max(input.at);
            self.touched = touched;
        }
        Ok(())
    }

    /// Leases the conversation to a worker, unless a live one has it. Without an epoch, the
    /// worker's own lease keeps its epoch.
    pub(super) fn take(&mut self, worker: &str, epoch: Option<i64>, ttl: Duration) -> port::Claim {
        // The worker's own lease is granted again: its tasks take turns by the slots of their
        // process.
        let is_other_worker = self
            .claim
            .as_ref()
            .is_some_and(|claim| claim.worker != worker);
        if is_other_worker && self.is_claimed() {
            return port::Claim::Refused;
        }
        let until = Instant::now().checked_add(ttl);
        let own = self
            .claim
            .as_ref()
            .filter(|_| !is_other_worker)
            .map_or(0, |claim| claim.epoch);
        let epoch = epoch.unwrap_or(own);
        self.claim = Some(Claim {
            worker: worker.to_owned(),
            epoch,
            until,
        });
        if is_other_worker {
            port::Claim::TakenOver
        } else {
            port::Claim::Granted
        }
    }

    /// Appends all events, or none of them.
    pub(super) fn append(
        &mut self,
        key: &ConversationKey,
        events: &[Recorded],
        log: LogContent,
    ) -> Result<(), StoreError> {
        let steps = self.new_steps(events)?;
        self.steps.extend(steps);
        for recorded in events {
            self.record(key, recorded, log);
        }
        Ok(())
    }

    /// Returns the steps that events record.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the events do not follow the last one, or a step is recorded.
    pub(super) fn new_steps(
        &self,
        events: &[Recorded],
    ) -> Result<Vec<(&'static str, StepId)>, StoreError> {
        let free = self.last_seq() + 1;
        let mut steps: Vec<(&'static str, StepId)> = Vec::new();
        for (seq, recorded) in (free..).zip(events) {
            let step = recorded
                .event
                .step()
                .map(|step| (recorded.event.kind(), step));
            if recorded.seq != seq
                || step
                    .as_ref()
                    .is_some_and(|step| self.steps.contains(step) || steps.contains(step))
            {
                return Err(StoreError::Conflict);
            }
            steps.extend(step);
        }
        Ok(steps)
    }

    fn record(&mut self, key: &ConversationKey, recorded: &Recorded, log: LogContent) {
        let Recorded { seq, at, event } = recorded;
        if let Some(input) = event.takes_input() {
            self.inbox.take(input, *seq);
        }
        self.status.apply(*seq, event);
        self.decisions
            .extend(DecisionRecord::open(key, *at, event, log));
        // Events belong to the open turn, which is the last.
        if let Some(record) = self
            .decisions
            .iter_mut()
            .rev()
            .find(|record| Some(record.id) == event.turn())
        {
            record.apply(*at, event, log);
        }
        self.invocations
            .extend(ToolInvocationRecord::from_event(*at, event, log));
        self.weight.add(event, log);
        self.events.push(recorded.clone());
    }

    /// Returns the last `turns` turns before a sequence number.
    pub(super) fn turns(&self, before: Option<u64>, turns: u32) -> Turns {
        let end = before.map_or(u64::MAX, |before| before.saturating_sub(1));
        let end = usize::try_from(end)
            .unwrap_or(usize::MAX)
            .min(self.events.len());
        let earlier = self.events.get(..end).unwrap_or_default();
        let begins = |(_, recorded): &(usize, &Recorded)| {
            matches!(*recorded.event, Event::TurnStarted { .. })
        };
        let nth = usize::try_from(turns)
            .unwrap_or(usize::MAX)
            .saturating_sub(1);
        let from = earlier
            .iter()
            .enumerate()
            .rev()
            .filter(begins)
            .nth(nth)
            .map_or(0, |(at, _)| at);
        Turns {
            created_at: self.created_at,
            after: from as u64,
            events: earlier.get(from..).unwrap_or_default().to_vec(),
            inbox: self.inbox.waiting().to_vec(),
        }
    }

    /// Returns one turn, up to the beginning of the next. `None`: there is no such turn.
    pub(super) fn turn(&self, wanted: TurnId) -> Option<Turns> {
        let begins = |recorded: &Recorded| matches!(*recorded.event, Event::TurnStarted { .. });
        let is_it = |recorded: &Recorded| begins(recorded) && recorded.event.turn() == Some(wanted);
        let from = self.events.iter().position(is_it)?;
        let mut behind = self.events.iter().skip(from + 1);
        let len = behind
            .position(begins)
            .map_or(self.events.len() - from, |at| at + 1);
        Some(Turns {
            created_at: self.created_at,
            after: from as u64,
            events: self.events.iter().skip(from).take(len).cloned().collect(),
            inbox: self.inbox.waiting().to_vec(),
        })
    }

    /// Returns the events that a worker with this state does not know.
    pub(super) fn newer(&self, known: Option<Known>) -> Newer {
        let last = self.last_seq();
        let after = known
            .filter(|known| known.created_at == self.created_at && known.seq <= last)
            .map_or(0, |known| known.seq);
        let from = usize::try_from(after).unwrap_or(usize::MAX);
        Newer {
            created_at: self.created_at,
            // A snapshot would save nothing: the events are in memory anyway.
            restorable: None,
            after,
            events: self.events.get(from..).unwrap_or_default().to_vec(),
            inbox: self.inbox.waiting().to_vec(),
        }
    }

    /// Returns the sequence number of the last event that it shares with its origin.
    pub(super) fn origin_seq(&self) -> u64 {
        self.origin.map_or(0, |origin| origin.seq)
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.events.last().map_or(0, |recorded| recorded.seq)
    }

    /// Returns true if it has events or inputs behind the point at which it branches off.
    pub(super) fn has_begun(&self) -> bool {
        self.last_seq() > self.origin_seq() || self.has_work_in_inbox()
    }

    /// Returns true unless it is a branch in which nothing was said yet.
    pub(super) fn is_used(&self) -> bool {
        self.origin.is_none() || self.has_begun()
    }
}

//! The working copy of a leased conversation: its state, its inbox, and events that are recorded
//! but not written yet.

use std::any::Any;
use std::sync::Arc;

use adjutant_core::conversation::Conversation;
use adjutant_core::port::{Finished, JournaledChange, Worker, Writer};
use adjutant_core::{
    ConversationKey, Event, IdempotencyKey, Input, Loading, Recorded, StoreChange, TurnEnd, TurnId,
};
use jiff::Timestamp;

use crate::RunError;
use crate::daily_budget::UnwrittenBookings;
use crate::faults::boundary;
use crate::inner::Inner;
use crate::recent::Remembered;

/// The state of a leased conversation and its inbox. No other process can write to it: the journal
/// refuses appends without the lease.
///
/// Events whose loss in a crash is harmless are recorded here first and written together with the
/// next ones: the reply of a model with the intents of its calls, or with the end of the turn.
/// Nothing is executed before its intent is written.
#[derive(Debug)]
pub(crate) struct Log {
    remembered: Remembered,
    inbox: Vec<Input>,
    /// Number of events at the end of the state that are not written.
    unwritten: usize,
    /// True if the lease was released with the last write.
    released: bool,
    /// The worker's epoch when the lease was acquired.
    epoch: i64,
    /// Spending of recorded events, booked with the next append.
    pub(crate) bookings: UnwrittenBookings,
    /// Time and number of events that reading the state took, until a turn records them.
    loading: Option<Loading>,
}

impl Log {
    pub(crate) fn new(
        remembered: Remembered,
        inbox: Vec<Input>,
        epoch: i64,
        bookings: UnwrittenBookings,
        loading: Loading,
    ) -> Self {
        Self {
            remembered,
            inbox,
            unwritten: 0,
            released: false,
            epoch,
            bookings,
            loading: Some(loading),
        }
    }

    /// Takes the figures of reading the state. Only the first turn of a lease records them.
    pub(crate) fn take_loading(&mut self) -> Option<Loading> {
        self.loading.take()
    }

    pub(crate) fn conversation(&self) -> &Conversation {
        self.remembered.conversation()
    }

    pub(crate) fn inbox(&self) -> &[Input] {
        &self.inbox
    }

    /// Returns true if an input waits, or a turn can continue without a person.
    pub(crate) fn has_work(&self) -> bool {
        let conversation = self.conversation();
        !self.inbox.is_empty()
            || conversation.open_turn().is_some() && conversation.pending().is_empty()
    }

    /// Returns true if the lease of the conversation was released.
    pub(crate) fn is_released(&self) -> bool {
        self.released
    }

    pub(crate) fn into_remembered(self) -> Remembered {
        self.remembered
    }

    /// Records an event of the open turn, to be written with the next append.
    pub(crate) fn record(&mut self, at: Timestamp, event: Event) {
        self.take(Recorded {
            seq: self.conversation().next_seq(),
            at,
            event: event.into(),
        });
        self.unwritten += 1;
    }

    /// Appends recorded and new events to the journal.
    ///
    /// # Errors
    /// [`StoreError::Conflict`](adjutant_core::port::StoreError::Conflict) if the lease was lost.
    pub(crate) async fn append(
        &mut self,
        inner: &Inner,
        key: &ConversationKey,
        events: Vec<Event>,
    ) -> Result<(), RunError> {
        let at = inner.now();
        self.bookings.gather();
        // Within a turn the state is updated first, because events may be recorded already. Outside
        // of one, events apply only once they are written.
        if self.conversation().open_turn().is_some() {
            events.into_iter().for_each(|event| self.record(at, event));
            inner
                .journal
                .append_held(key, self.writer(inner), self.unwritten())
                .await?;
            self.unwritten = 0;
            self.bookings.mark_written();
            return Ok(());
        }
        let first = self.conversation().next_seq();
        let events: Vec<Recorded> = (first..)
            .zip(events)
            .map(|(seq, event)| Recorded {
                seq,
                at,
                event: event.into(),
            })
            .collect();
        inner
            .journal
            .append_held(key, self.writer(inner), &events)
            .await?;
        self.bookings.mark_written();
        events.into_iter().for_each(|recorded| self.take(recorded));
        Ok(())
    }

    /// Writes the end of a turn that is given up.
    pub(crate) async fn append_turn_end(
        &mut self,
        inner: &Inner,
        key: &ConversationKey,
        turn: TurnId,
        mut end: TurnEnd,
    ) -> Result<(), RunError> {
        end.from_others = self.conversation().turn_is_from_others();
        let input = None;
        self.append(inner, key, vec![Event::TurnFinished { turn, input, end }])
            .await
    }

    /// Appends recorded and new events, applies a change to the tasks, and appends the event of its
    /// result, in one transaction. Returns that event.
    ///
    /// # Errors
    /// [`StoreError::Conflict`](adjutant_core::port::StoreError::Conflict) if the lease was lost.
    pub(crate) async fn append_with_change(
        &mut self,
        inner: &Inner,
        key: &ConversationKey,
        events: Vec<Event>,
        change: Arc<dyn StoreChange>,
        call: IdempotencyKey,
        ended: impl Fn(&dyn Any) -> Event + Send + Sync + 'static,
    ) -> Result<Arc<Event>, RunError> {
        let at = inner.now();
        self.bookings.gather();
        events.into_iter().for_each(|event| self.record(at, event));
        let seq = self.conversation().next_seq();
        // The call ends when its change is made, inside the transaction, not when it is requested.
        let clock = inner.clock.clone();
        let ended = move |outcome: &dyn Any| Recorded {
            seq,
            at: clock(),
            event: ended(outcome).into(),
        };
        let change = JournaledChange {
            change,
            key: call,
            ended: Arc::new(ended),
        };
        let writer = self.writer(inner);
        let ended = inner
            .journal
            .append_with_change(key, writer, self.unwritten(), change)
            .await?;
        self.unwritten = 0;
        self.bookings.mark_written();
        let event = ended.event.clone();
        self.take(ended);
        Ok(event)
    }

    /// Appends recorded events and the last one, and releases the lease in the same commit, unless
    /// inputs were accepted meanwhile. Returns true if the lease was released.
    pub(crate) async fn finish(
        &mut self,
        inner: &Inner,
        key: &ConversationKey,
        event: Option<Event>,
    ) -> Result<bool, RunError> {
        if let Some(event) = event {
            self.record(inner.now(), event);
        }
        boundary("before an append");
        // Without new events a snapshot would equal the last one.
        let snapshot = if self.unwritten > 0 {
            self.remembered.due_snapshot()
        } else {
            None
        };
        self.bookings.gather_last(&key.user);
        let writer = self.writer(inner);
        let finished = inner
            .journal
            .finish(key, writer, self.unwritten(), snapshot.as_ref())
            .await?;
        boundary("after an append");
        self.bookings.mark_written();
        self.unwritten = 0;
        self.released = match finished {
            Finished::Released => true,
            Finished::Kept(inbox) => {
                self.inbox = inbox;
                false
            }
        };
        Ok(self.released)
    }

    pub(crate) fn worker<'a>(&self, inner: &'a Inner) -> Worker<'a> {
        Worker {
            id: &inner.worker,
            epoch: self.epoch,
        }
    }

    fn writer<'a>(&'a self, inner: &'a Inner) -> Writer<'a> {
        Writer {
            worker: self.worker(inner),
            spent: self.bookings.bookings(),
        }
    }

    fn unwritten(&self) -> &[Recorded] {
        let recent = self.conversation().recent();
        recent
            .get(recent.len().saturating_sub(self.unwritten)..)
            .unwrap_or_default()
    }

    fn take(&mut self, recorded: Recorded) {
        if let Some(taken) = recorded.event.takes_input() {
            // The journal takes an input from its inbox with the event too; both copies must agree.
            self.inbox.retain(|input| input.id != *taken);
        }
        self.remembered.apply(recorded);
    }
}

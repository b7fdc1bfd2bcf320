//! The conversation as this process knows it while it works on it, and what of it is not written
//! yet.

use std::sync::Arc;

use adjutant_core::conversation::Conversation;
use adjutant_core::port::{Finished, JournaledChange, Worker, Writer};
use adjutant_core::{
    ConversationKey, Event, IdempotencyKey, Input, Loading, Recorded, TaskChange, TaskChanged,
};
use jiff::Timestamp;

use crate::RunError;
use crate::faults::boundary;
use crate::inner::Inner;
use crate::purse::Spent;
use crate::recent::Remembered;

/// The state of a conversation and its inbox. Only this process writes to it meanwhile; the journal
/// refuses anybody else.
///
/// Events whose loss in a crash does no harm are recorded here first and written together with what
/// comes next: the reply of a model with the intents of its calls, or with the end of the turn.
/// Nothing is executed before its intent is written.
#[derive(Debug)]
pub(crate) struct Log {
    remembered: Remembered,
    inbox: Vec<Input>,
    /// Number of the last events that are not written.
    unwritten: usize,
    /// The claim was given back with the last write.
    released: bool,
    /// The worker's epoch at the claim.
    epoch: i64,
    /// Spending of what is recorded. It is booked with the next append.
    pub(crate) spent: Spent,
    /// Time and events it took to read the state, until a turn records it.
    loading: Option<Loading>,
}

impl Log {
    pub(crate) fn new(
        remembered: Remembered,
        inbox: Vec<Input>,
        epoch: i64,
        spent: Spent,
        loading: Loading,
    ) -> Self {
        Self {
            remembered,
            inbox,
            unwritten: 0,
            released: false,
            epoch,
            spent,
            loading: Some(loading),
        }
    }

    /// Returns how the state was read, to the first who asks: what comes later knows it from
    /// before.
    pub(crate) fn take_loading(&mut self) -> Option<Loading> {
        self.loading.take()
    }

    pub(crate) fn conversation(&self) -> &Conversation {
        self.remembered.conversation()
    }

    pub(crate) fn inbox(&self) -> &[Input] {
        &self.inbox
    }

    /// Returns whether there is anything to do in the conversation but for a human.
    pub(crate) fn has_work(&self) -> bool {
        let conversation = self.conversation();
        !self.inbox.is_empty()
            || conversation.open_turn().is_some() && conversation.pending().is_empty()
    }

    /// Returns whether the claim on the conversation was given back.
    pub(crate) fn is_released(&self) -> bool {
        self.released
    }

    pub(crate) fn into_remembered(self) -> Remembered {
        self.remembered
    }

    /// Records an event of the open turn. It is written with the next append.
    pub(crate) fn record(&mut self, at: Timestamp, event: Event) {
        self.take(Recorded {
            seq: self.conversation().next_seq(),
            at,
            event: event.into(),
        });
        self.unwritten += 1;
    }

    /// Writes events behind what is known, with what was recorded before. Refused if anybody else
    /// wrote meanwhile.
    pub(crate) async fn append(
        &mut self,
        inner: &Inner,
        key: &ConversationKey,
        events: Vec<Event>,
    ) -> Result<(), RunError> {
        let at = inner.now();
        self.spent.gather();
        if self.conversation().open_turn().is_some() {
            events.into_iter().for_each(|event| self.record(at, event));
            inner
                .journal
                .append_held(key, self.writer(inner), self.unwritten())
                .await?;
            self.unwritten = 0;
            self.spent.written();
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
        self.spent.written();
        events.into_iter().for_each(|recorded| self.take(recorded));
        Ok(())
    }

    /// Writes events of the open turn with what was recorded before, a change, and the event of
    /// what it led to, which is returned, in one transaction. Refused if anybody else wrote
    /// meanwhile.
    pub(crate) async fn append_with_change(
        &mut self,
        inner: &Inner,
        key: &ConversationKey,
        events: Vec<Event>,
        change: TaskChange,
        call: IdempotencyKey,
        ended: impl Fn(&TaskChanged) -> Event + Send + Sync + 'static,
    ) -> Result<Arc<Event>, RunError> {
        let at = inner.now();
        self.spent.gather();
        events.into_iter().for_each(|event| self.record(at, event));
        let seq = self.conversation().next_seq();
        // It is over when its change is made, not when it is asked for.
        let clock = inner.clock.clone();
        let ended = move |changed: &TaskChanged| Recorded {
            seq,
            at: clock(),
            event: ended(changed).into(),
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
        self.spent.written();
        let event = ended.event.clone();
        self.take(ended);
        Ok(event)
    }

    /// Writes an event, if there is one, with what was recorded before, and gives the claim back,
    /// unless inputs came meanwhile. Returns whether the claim was given back.
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
        let snapshot = if self.unwritten > 0 {
            self.remembered.due_snapshot()
        } else {
            None
        };
        self.spent.gather_last(&key.user);
        let writer = self.writer(inner);
        let finished = inner
            .journal
            .finish(key, writer, self.unwritten(), snapshot.as_ref())
            .await?;
        boundary("after an append");
        self.spent.written();
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
            spent: self.spent.bookings(),
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
            self.inbox.retain(|input| input.id != *taken);
        }
        self.remembered.apply(recorded);
    }
}

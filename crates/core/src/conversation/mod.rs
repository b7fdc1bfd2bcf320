//! State of a conversation: a fold over its events.
//!
//! [`Conversation`] changes only by [`Conversation::apply`], so folding in two steps gives the same
//! state as folding at once. It keeps what the next request needs and nothing that grows with the
//! conversation; for display, the journal is read in pages.

mod history;
mod learned;
mod provenance;
mod snapshot;
mod status;
#[cfg(test)]
mod tests;
mod turn;
mod view;
mod weight;

use std::collections::BTreeSet;

use jiff::Timestamp;

pub use self::history::history;
pub use self::provenance::hold_text_of_others;
pub use self::snapshot::{SNAPSHOT_VERSION, Snapshot};
pub use self::status::Status;
pub use self::turn::CurrentTurn;
pub use self::view::{
    disposition, given_history, is_queued, is_stopped, last_summary, notices_of, open_turn,
    pending, rebuilt_history, response, response_to_dropped, times_taken_up, turn_history,
    turn_of_input,
};
pub use self::weight::{event_weight, stored_weight};
use crate::calibration::Calibration;
use crate::confirmation::PendingCall;
use crate::cost::Cost;
use crate::event::{Event, Recorded};
use crate::id::{InputId, ModelId, TurnId};
use crate::message::Message;
use crate::model::Usage;
use crate::summary::{Summary, TurnHistory};
use crate::trim::trim;
use history::History;
use learned::{Learned, SummaryTries};
use provenance::Provenance;

/// The state that a turn needs of its conversation. Its size depends on the open turn and the limit
/// of history, not on the length of the conversation.
///
/// # Examples
///
/// ```
/// use adjutant_core::conversation::Conversation;
/// use adjutant_core::{Event, Message, Recorded};
///
/// let mut conversation = Conversation::new(Some(20));
/// let messages = vec![Message::user("I like tea.")?];
/// conversation.apply(Recorded { seq: 1, at: "2026-11-24T08:00:00Z".parse()?, event: Event::HistorySet { messages, from_others: false }.into() });
/// assert_eq!((conversation.next_seq(), conversation.turn_history().messages.len()), (2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    seq: u64,
    status: Status,
    history: History,
    learned: Learned,
    summary_tries: SummaryTries,
    provenance: Provenance,
    usage: Usage,
    cost: Option<Cost>,
    started_at: Option<Timestamp>,
    last_at: Option<Timestamp>,
    /// Summary written while a turn was open. It applies after that turn, whose history stays as it
    /// was at its start.
    deferred: Option<(u64, Summary)>,
    current: Option<CurrentTurn>,
}

impl Conversation {
    /// Returns the state before the first event. `messages_max` is the number of user and assistant
    /// messages that a request gets (see [`crate::turn::trim`]); older ones are dropped. `None`:
    /// all messages since the last summary.
    #[must_use]
    pub fn new(messages_max: Option<usize>) -> Self {
        Self {
            seq: 0,
            status: Status::default(),
            history: History::new(messages_max),
            learned: Learned::default(),
            summary_tries: SummaryTries::default(),
            provenance: Provenance::default(),
            usage: Usage::default(),
            cost: Some(Cost::default()),
            started_at: None,
            last_at: None,
            deferred: None,
            current: None,
        }
    }

    /// Folds events in order into a new state.
    #[must_use]
    pub fn from_events(
        messages_max: Option<usize>,
        events: impl IntoIterator<Item = Recorded>,
    ) -> Self {
        let mut conversation = Self::new(messages_max);
        conversation.extend(events);
        conversation
    }

    /// Updates the state by the next event.
    pub fn apply(&mut self, recorded: Recorded) {
        self.seq = recorded.seq;
        // Workers have clocks of their own, so a later event may have an earlier time.
        self.last_at = self.last_at.max(Some(recorded.at));
        // A conversation begins when its first input is accepted, which may have waited for a
        // worker.
        let began = match &*recorded.event {
            Event::TurnStarted { accepted_at, .. } => accepted_at.unwrap_or(recorded.at),
            _ => recorded.at,
        };
        self.started_at = Some(self.started_at.map_or(began, |known| known.min(began)));
        // Before the status: an answer ends the wait of its call.
        self.provenance
            .follow(&recorded.event, &self.status.waiting);
        self.status.apply(recorded.seq, &recorded.event);
        self.learned.follow(&recorded.event);
        self.summary_tries.follow(&recorded.event);
        match &*recorded.event {
            Event::HistorySet { messages, .. } => {
                self.history.set(recorded.seq, messages.iter().cloned())
            }
            Event::ConversationSummarized { summary, .. } => match self.status.turn {
                Some(_) => self.deferred = Some((recorded.seq, summary.clone())),
                None => self.history.summarise(recorded.seq, summary.clone()),
            },
            Event::TurnStarted { turn, .. } => self.current = Some(CurrentTurn::new(*turn)),
            Event::TurnFinished { end, .. } => {
                if let Some((seq, summary)) = self.deferred.take() {
                    self.history.summarise(seq, summary);
                }
                // After the summary: it was written when these messages were not part of the
                // history yet.
                for message in end.history() {
                    self.history.push(recorded.seq, message);
                }
                self.usage = self.usage.plus(end.usage);
                self.cost = Cost::sum(self.cost, end.cost);
            }
            _ => {}
        }
        // Last, so that the event that starts a turn is the first of that turn.
        if let Some(current) = &mut self.current {
            current.push(recorded);
        }
    }

    /// Returns the sequence number of the last event, or 0.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the sequence number of the next event.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.seq + 1
    }

    /// Returns the open turn and the calls that wait in it.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Returns the turn that started and has not ended, if there is one.
    #[must_use]
    pub fn open_turn(&self) -> Option<TurnId> {
        self.status.turn
    }

    /// Returns the calls of the open turn that wait for a person or for the caller.
    #[must_use]
    pub fn pending(&self) -> &[PendingCall] {
        &self.status.waiting
    }

    /// Returns the last turn with its events, open or finished. `None`: none has started.
    #[must_use]
    pub fn current(&self) -> Option<&CurrentTurn> {
        self.current.as_ref()
    }

    /// Returns the events since the last turn started: those of the turn, and those after its end.
    #[must_use]
    pub fn recent(&self) -> &[Recorded] {
        self.current.as_ref().map_or(&[], CurrentTurn::events)
    }

    /// Returns the history that the open turn, or else the next one, is given.
    #[must_use]
    pub fn turn_history(&self) -> TurnHistory {
        self.history.turn_history()
    }

    /// Returns [`Conversation::turn_history`] with a summary applied that was written since the open
    /// turn started.
    #[must_use]
    pub fn turn_history_now(&self) -> TurnHistory {
        let mut recalled = self.history.turn_history();
        if let Some((_, summary)) = &self.deferred {
            recalled.summarise(summary.clone());
        }
        recalled
    }

    /// Returns [`Conversation::turn_history`] with another limit of messages. `before` are the last
    /// turns before the open one; older messages are left out.
    #[must_use]
    pub fn turn_history_within(
        &self,
        messages_max: Option<usize>,
        before: &[Recorded],
    ) -> TurnHistory {
        let said = history(before);
        let summary = self.history.summary().cloned();
        let first = self.messages().saturating_sub(said.len());
        let gone = summary
            .as_ref()
            .map_or(0, |summary| summary.summarized_at.saturating_sub(first));
        let since = said.get(gone.min(said.len())..).unwrap_or_default();
        let messages = trim(since, messages_max).to_vec();
        TurnHistory {
            summary,
            from: self.messages() - messages.len(),
            messages,
        }
    }

    /// Drops the events of the last turn unless it is open, for states that are kept until the next
    /// turn.
    pub fn forget_finished_turn(&mut self) {
        if self.open_turn().is_none() {
            self.current = None;
        }
    }

    /// Returns the approximate size of the state in memory, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let current = self.current.as_ref().map_or(0, CurrentTurn::weight);
        size_of::<Self>() + self.history.weight() + current
    }

    /// Returns the kept messages of finished turns, oldest first: the last of all
    /// [`Conversation::messages`].
    #[must_use]
    pub fn kept_messages(&self) -> &[Message] {
        self.history.kept()
    }

    /// Returns the number of messages of all finished turns.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.history.total()
    }

    /// Returns the limit of kept user and assistant messages that was passed to
    /// [`Conversation::new`].
    #[must_use]
    pub fn messages_max(&self) -> Option<usize> {
        self.history.messages_max()
    }

    /// Returns the sequence number of the event with the current summary.
    #[must_use]
    pub fn summary_at(&self) -> Option<u64> {
        self.history.summary_at()
    }

    /// Returns the summary that replaces the oldest turns, if there is one.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.history.summary()
    }

    /// Returns true if the history of the next turn holds text of others, or text that was written
    /// after a model had read some. It stays true until the history is replaced.
    #[must_use]
    pub fn history_is_from_others(&self) -> bool {
        self.provenance.history_is_from_others()
    }

    /// Returns true if the model had read text of others when it made its last reply in the open
    /// turn.
    #[must_use]
    pub fn last_reply_is_from_others(&self) -> bool {
        let in_turn = |current: &CurrentTurn| {
            let before = current.before_last_reply().unwrap_or_default();
            before
                .iter()
                .any(|recorded| provenance::is_from_others(&recorded.event))
        };
        self.history_is_from_others() || self.current.as_ref().is_some_and(in_turn)
    }

    /// Returns true if the open turn, or the history that it began with, holds text of others.
    #[must_use]
    pub fn turn_is_from_others(&self) -> bool {
        self.provenance.turn_is_from_others()
    }

    /// Returns true if a program that may not answer in the person's place wrote the message, or
    /// requested the call, of the open turn.
    #[must_use]
    pub fn others_wrote_message(&self) -> bool {
        self.provenance.others_wrote_message()
    }

    /// Returns true if such a program wrote messages of the history.
    #[must_use]
    pub fn others_wrote_messages(&self) -> bool {
        self.provenance.others_wrote_messages()
    }

    /// Returns the tools whose calls the person approved for the conversation, although they are
    /// not in their own words.
    #[must_use]
    pub fn approved_tools(&self) -> &BTreeSet<String> {
        self.provenance.approved_tools()
    }

    /// Returns the calibration of request sizes for a model. `exact`: the sizes are counted by the
    /// model's own tokenizer.
    #[must_use]
    pub fn calibration(&self, model: &ModelId, exact: bool) -> Calibration {
        self.learned.calibration(model, exact)
    }

    /// Returns true if summarising old turns is worth an attempt: after a failure in the next turn,
    /// after repeated failures at growing intervals.
    #[must_use]
    pub fn is_time_to_summarize(&self) -> bool {
        self.summary_tries.is_time()
    }

    /// Returns true if an input is queued until the open turn ends.
    #[must_use]
    pub fn is_queued(&self, input: &InputId) -> bool {
        self.status.is_queued(input)
    }

    /// Returns the token usage of all finished turns, in a branch including those of its origin.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the cost of all finished turns, in a branch including those of its origin. `None`:
    /// unknown for at least one.
    #[must_use]
    pub fn cost(&self) -> Option<Cost> {
        self.cost
    }

    /// Returns the time at which the first input was accepted, or `None` without events.
    #[must_use]
    pub fn started_at(&self) -> Option<Timestamp> {
        self.started_at
    }

    /// Returns the time of the last event, or `None` without events.
    #[must_use]
    pub fn last_at(&self) -> Option<Timestamp> {
        self.last_at
    }
}

impl Extend<Recorded> for Conversation {
    fn extend<I: IntoIterator<Item = Recorded>>(&mut self, events: I) {
        for recorded in events {
            self.apply(recorded);
        }
    }
}

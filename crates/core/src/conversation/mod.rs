//! The state of a conversation: the fold over its events.
//!
//! [`Conversation`] is changed by [`Conversation::apply`] and by nothing else, so folding in two
//! steps gives what folding in one gives. It keeps what the next request needs and nothing that
//! grows with the conversation: the whole past is read from the journal by whoever shows it.

mod history;
mod learned;
mod snapshot;
mod status;
#[cfg(test)]
mod tests;
mod turn;
mod view;
mod weight;

use jiff::Timestamp;

pub use self::history::history;
pub use self::snapshot::{SNAPSHOT_VERSION, Snapshot};
pub use self::status::Status;
pub use self::turn::CurrentTurn;
pub use self::view::{
    is_queued, last_summary, notices_of, open_turn, past, pending, recalled, recalled_as, response,
    times_taken_up, turn_of_input,
};
pub use self::weight::stored_weight;
use crate::calibration::Calibration;
use crate::confirmation::PendingCall;
use crate::cost::Cost;
use crate::event::{Event, Recorded};
use crate::id::{InputId, ModelId, TurnId};
use crate::message::Message;
use crate::model::Usage;
use crate::summary::{Recalled, Summary};
use crate::trim::trim;
use history::History;
use learned::{Learned, SummaryTries};

/// Everything that a turn needs to know of its conversation. Grows with the turn that is open, not
/// with those before it.
///
/// ```
/// use adjutant_core::conversation::Conversation;
/// use adjutant_core::{Event, Message, Recorded};
///
/// let mut conversation = Conversation::new(Some(20));
/// let messages = vec![Message::user("I like tea.")?];
/// conversation.apply(Recorded { seq: 1, at: "2026-11-24T08:00:00Z".parse()?, event: Event::HistorySet { messages }.into() });
/// assert_eq!((conversation.next_seq(), conversation.recalled().messages.len()), (2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    seq: u64,
    status: Status,
    history: History,
    learned: Learned,
    summary_tries: SummaryTries,
    usage: Usage,
    cost: Option<Cost>,
    started_at: Option<Timestamp>,
    last_at: Option<Timestamp>,
    /// A summary that was made while a turn was open: what the turn was given of the past stays as
    /// it was when it started.
    deferred: Option<(u64, Summary)>,
    current: Option<CurrentTurn>,
}

impl Conversation {
    /// Returns the state before the first event. `messages_max`: how many user and assistant
    /// messages the next request gets (see [`crate::turn::trim`]); older ones are not kept. `None`:
    /// all since the last summary.
    #[must_use]
    pub fn new(messages_max: Option<usize>) -> Self {
        Self {
            seq: 0,
            status: Status::default(),
            history: History::new(messages_max),
            learned: Learned::default(),
            summary_tries: SummaryTries::default(),
            usage: Usage::default(),
            cost: Some(Cost::default()),
            started_at: None,
            last_at: None,
            deferred: None,
            current: None,
        }
    }

    /// Folds events into the state, in order.
    #[must_use]
    pub fn of(messages_max: Option<usize>, events: impl IntoIterator<Item = Recorded>) -> Self {
        let mut conversation = Self::new(messages_max);
        conversation.extend(events);
        conversation
    }

    /// Takes the next event.
    pub fn apply(&mut self, recorded: Recorded) {
        self.seq = recorded.seq;
        self.last_at = self.last_at.max(Some(recorded.at));
        let began = match &*recorded.event {
            Event::TurnStarted { accepted_at, .. } => accepted_at.unwrap_or(recorded.at),
            _ => recorded.at,
        };
        self.started_at = Some(self.started_at.map_or(began, |known| known.min(began)));
        self.status.apply(recorded.seq, &recorded.event);
        self.learned.follow(&recorded.event);
        self.summary_tries.follow(&recorded.event);
        match &*recorded.event {
            Event::HistorySet { messages } => {
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
                for message in &end.messages {
                    self.history.push(recorded.seq, message.clone());
                }
                self.usage = self.usage.plus(end.usage);
                self.cost = Cost::sum(self.cost, end.cost);
            }
            _ => {}
        }
        if let Some(current) = &mut self.current {
            current.push(recorded);
        }
    }

    /// Returns the place of the last event, 0 if there is none.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the place that the next event goes to.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.seq + 1
    }

    /// Returns the open turn and what waits.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Returns the turn that has started and not finished, if there is one.
    #[must_use]
    pub fn open_turn(&self) -> Option<TurnId> {
        self.status.turn
    }

    /// Returns the calls of the open turn that wait for a human.
    #[must_use]
    pub fn pending(&self) -> &[PendingCall] {
        &self.status.waiting
    }

    /// Returns the turn that started last, open or finished, with its events. `None`: none has
    /// started.
    #[must_use]
    pub fn current(&self) -> Option<&CurrentTurn> {
        self.current.as_ref()
    }

    /// Returns the events since the last turn started: those of that turn, and what came after its
    /// end.
    #[must_use]
    pub fn recent(&self) -> &[Recorded] {
        self.current.as_ref().map_or(&[], CurrentTurn::events)
    }

    /// Returns what the open turn, or else the next one, is given of the past.
    #[must_use]
    pub fn recalled(&self) -> Recalled {
        self.history.recalled()
    }

    /// Returns [`Conversation::recalled`] with a summary taken into account that was made since the
    /// open turn started.
    #[must_use]
    pub fn recalled_now(&self) -> Recalled {
        let mut recalled = self.history.recalled();
        if let Some((_, summary)) = &self.deferred {
            recalled.summarise(summary.clone());
        }
        recalled
    }

    /// Returns [`Conversation::recalled`] for a turn with another bound. `before`: the last turns
    /// before the open one; what was said before those is left out.
    #[must_use]
    pub fn recalled_within(&self, messages_max: Option<usize>, before: &[Recorded]) -> Recalled {
        let said = history(before);
        let summary = self.history.summary().cloned();
        let first = self.messages().saturating_sub(said.len());
        let gone = summary
            .as_ref()
            .map_or(0, |summary| summary.summarized_at.saturating_sub(first));
        let since = said.get(gone.min(said.len())..).unwrap_or_default();
        let messages = trim(since, messages_max).to_vec();
        Recalled {
            summary,
            from: self.messages() - messages.len(),
            messages,
        }
    }

    /// Forgets the events of the last turn, unless it is open: whoever keeps the state for the next
    /// turn does not need them.
    pub fn forget_finished_turn(&mut self) {
        if self.open_turn().is_none() {
            self.current = None;
        }
    }

    /// Returns about how many bytes the state takes in memory.
    #[must_use]
    pub fn weight(&self) -> usize {
        let current = self.current.as_ref().map_or(0, CurrentTurn::weight);
        size_of::<Self>() + self.history.weight() + current
    }

    /// Returns the messages of finished turns that are kept, the last ones of
    /// [`Conversation::messages`].
    #[must_use]
    pub fn kept_messages(&self) -> &[Message] {
        self.history.kept()
    }

    /// Returns how many messages finished turns have said in all.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.history.total()
    }

    /// Returns how many user and assistant messages are kept at most, as it was given to
    /// [`Conversation::new`].
    #[must_use]
    pub fn messages_max(&self) -> Option<usize> {
        self.history.messages_max()
    }

    /// Returns the place of the event that [`Conversation::summary`] is of.
    #[must_use]
    pub fn summary_at(&self) -> Option<u64> {
        self.history.summary_at()
    }

    /// Returns the summary that stands for the oldest turns, if there is one.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.history.summary()
    }

    /// Returns how our count of a request relates to this model's. `exact`: we count with its own
    /// tokenizer.
    #[must_use]
    pub fn calibration(&self, model: &ModelId, exact: bool) -> Calibration {
        self.learned.calibration(model, exact)
    }

    /// Returns whether it is worth trying to summarize old turns, after what happened before: in
    /// the next turn after a failure, and after more failures in a row less and less often.
    #[must_use]
    pub fn is_time_to_summarize(&self) -> bool {
        self.summary_tries.is_time()
    }

    /// Returns whether an input waits for the end of the open turn.
    #[must_use]
    pub fn is_queued(&self, input: &InputId) -> bool {
        self.status.is_queued(input)
    }

    /// Returns the tokens of all finished turns: in a branch, with those that it comes from.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the money of all finished turns, in a branch with those that it comes from. `None`:
    /// it is not known of each.
    #[must_use]
    pub fn cost(&self) -> Option<Cost> {
        self.cost
    }

    /// Returns when its first input was accepted. `None`: nothing has happened.
    #[must_use]
    pub fn started_at(&self) -> Option<Timestamp> {
        self.started_at
    }

    /// Returns when the last event happened. `None`: nothing has happened.
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
